"""Erase a conversation, a user, a tenant or a content space in passes (decisions 0257 and 0265).

The first pass deletes all that is there. Functions that read rows before that may still write for a quarter of an
hour, the longest time that one can run. So another pass after that time deletes what came late, and another one after
each that has found something. Then the job names nobody any more. Later passes leave alone what the same user has begun
since the first one. Each pass may be interrupted anywhere: the next run goes on, and deletes what is left.
"""

from collections.abc import Sequence

from fermata.aws import observability
from fermata.aws.blob_store import snapshots_folder
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import move_conversation_to_bin
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erase_content import erase_conversation, erase_partition, erase_turn
from fermata.privacy.erase_space import erase_space, finish_space_erasure
from fermata.privacy.erase_tenant import erase_tenant
from fermata.privacy.erase_user_rows import erase_user_rows
from fermata.privacy.export import expire_exports
from fermata.privacy.find_subject_rows import iter_conversations, iter_ledger_rows, list_turns_of_conversation
from fermata.privacy.ledger_pseudonyms import rename_user_in_ledger
from fermata.privacy.privacy_job import HasTime, PrivacyJob, add_counts, save_privacy_job
from fermata.privacy.trail_names import erase_trail_names
from fermata.usage.rollups.rebuild import rebuild_rollups
from fermata.usage.rollups.rollup_version import RollupEdition, read_edition_row
from fermata.wire.auth.tenant_erasure_mark import build_erasure_mark_delete

SETTLING_SECONDS = 20 * 60
"""Longer than any function runs (15 minutes), and its calls are repeated."""
MAX_PASSES = 10
MAX_REMEMBERED_IDS = 4_000
"""Ids that a job keeps for the second pass. What is beyond has rows in the ledger, which names them too."""

_TURN_STEP, _CONVERSATION_STEP = "1-turn", "2-conversation"
_STEPS_PER_SAVE = 25


def run_erasure(resources: Resources, job: PrivacyJob, has_time: HasTime) -> PrivacyJob:
    """Go on with an erasure until its pass is done or the time is over.

    Raises:
        ServiceUnavailable: A turn's workflow could not be resumed. The next run tries again.
        ConditionFailed: Another run has gone on with the job.
    """
    subject = job.subject
    assert subject is not None
    if job.state == "waiting":
        job = save_privacy_job(resources, job.model_copy(update={"state": "running"}))
    if subject.kind == "space":  # who has exported its content keeps the export for its day
        job, is_done = erase_space(resources, job, has_time)
        return _end_pass(resources, job) if is_done else save_privacy_job(resources, job)
    expire_exports(resources, subject)
    if subject.kind == "tenant":
        job, is_done = erase_tenant(resources, job, lambda changed: save_privacy_job(resources, changed), has_time)
    else:
        job, is_done = _erase_person_or_conversation(resources, job, subject, has_time)
    return _end_pass(resources, job) if is_done else job


def _end_pass(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    """Make the job wait for another pass, or finish it after one that has found nothing."""
    now = resources.clock.time()
    passes = job.passes + 1
    if job.state == "settling" and (not job.found or passes >= MAX_PASSES):
        return _finish(resources, job)
    wait = {"state": "settling", "not_before": int(now) + SETTLING_SECONDS, "passes": passes}
    begin = {"found": 0, "position": (), "passed_at": job.passed_at or iso_from_epoch(now)}
    return save_privacy_job(resources, job.model_copy(update=wait | begin))


def _finish(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    """Turn the job into a receipt, which names nobody."""
    assert job.subject is not None
    if job.subject.kind == "tenant":
        resources.tables.write_items(build_erasure_mark_delete(resources, job.subject.tenant, job.id))
    if job.subject.kind == "space":
        finish_space_erasure(resources, job)
    if job.found:
        observability.log_warning("privacy.erasure_unsettled", job=job.id, found=job.found)
    forgotten = {"subject": None, "owner": "", "salt": "", "conversations": (), "turns": (), "position": ()}
    done = {"state": "done", "done_at": iso_from_epoch(resources.clock.time())}
    return save_privacy_job(resources, job.model_copy(update=forgotten | done))


def _erase_person_or_conversation(
    resources: Resources, job: PrivacyJob, subject: DataSubject, has_time: HasTime
) -> tuple[PrivacyJob, bool]:
    conversations, turns = _find_ids(resources, job, subject)
    # Stored before anything is deleted that leads to them.
    remembered = {"conversations": conversations[:MAX_REMEMBERED_IDS], "turns": turns[:MAX_REMEMBERED_IDS]}
    owner = job.owner or _find_owner(resources, subject)
    job = save_privacy_job(resources, job.model_copy(update={**remembered, "owner": owner}))
    # In this order, because a conversation leads to its turns.
    steps = [(_TURN_STEP, turn) for turn in sorted(turns)]
    steps += [(_CONVERSATION_STEP, conversation) for conversation in sorted(conversations)]
    for number, step in enumerate((step for step in steps if step > job.position), 1):
        job = _erase_step(resources, job, subject.tenant, step)
        if not has_time():
            return save_privacy_job(resources, job), False
        if number % _STEPS_PER_SAVE == 0:
            job = save_privacy_job(resources, job)
    job = save_privacy_job(resources, job)
    names = erase_trail_names(resources, subject.tenant, subject.id if subject.kind == "user" else "", turns)
    job = add_counts(job, {"rows": names})
    if subject.kind == "user":
        if not (job.passes and _is_user_back(resources, subject)):
            job = add_counts(job, erase_user_rows(resources, subject, job.erased_name))
        job = add_counts(job, {"objects": _erase_other_snapshots(resources, job, subject)})
        job = _rename_in_ledger(resources, job, subject, conversations)
    return save_privacy_job(resources, job), True


def _is_user_back(resources: Resources, subject: DataSubject) -> bool:
    """Return whether the user has begun anew, so that counts, keys of requests and settings are of the new time."""
    return next(iter_conversations(resources, subject), None) is not None


def _erase_step(resources: Resources, job: PrivacyJob, tenant: str, step: tuple[str, str]) -> PrivacyJob:
    kind, subject_id = step
    erase = erase_turn if kind == _TURN_STEP else erase_conversation
    counts = erase(resources, tenant, subject_id, job.owner)
    update = {"position": step, "found": job.found + counts.total()}
    return add_counts(job, counts).model_copy(update=update)


def _find_ids(resources: Resources, job: PrivacyJob, subject: DataSubject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conversations and the turns of the subject, those that were found before first.

    The conversations are closed before their turns are listed, so that none begins afterwards.
    """
    conversations = dict.fromkeys(job.conversations)
    if subject.kind == "conversation":
        conversations[subject.id] = None
    for row in iter_conversations(resources, subject, job.requested_at):
        conversations[row["id"]] = None
        if "deleted_at" not in row:
            move_conversation_to_bin(resources, row)
    turns = dict.fromkeys(job.turns)
    for row in iter_ledger_rows(resources, subject, [job.erased_name]):
        if _is_before_first_pass(job, row):
            turns[row["turn"]] = None
        if row["at"] <= job.requested_at:  # also one that was purged, whose blobs may have former versions
            conversations[row["conversation"]] = None
    for conversation in conversations:
        turns |= dict.fromkeys(list_turns_of_conversation(resources, subject.tenant, conversation))
    return tuple(conversations), tuple(turns)


def _find_owner(resources: Resources, subject: DataSubject) -> str:
    """Return the user of the subject; of a conversation that was purged, the user whom the ledger names."""
    if subject.kind == "user":
        return subject.id
    rows = [*iter_conversations(resources, subject)] or [*iter_ledger_rows(resources, subject)]
    return str(rows[0]["user"]) if rows else ""


def _erase_other_snapshots(resources: Resources, job: PrivacyJob, subject: DataSubject) -> int:
    """Delete the snapshots of a user for what was never the user's, but not those of conversations that are new."""
    folder = snapshots_folder(subject.tenant, subject.id)
    # Listed first: whoever sends a snapshot for a new conversation has begun it before.
    stored = resources.blobs.list_versions(folder)
    new = {row["id"] for row in iter_conversations(resources, subject)} - set(job.conversations)
    new |= {turn for one in new for turn in list_turns_of_conversation(resources, subject.tenant, one)}
    names = [version.key.removeprefix(f"{folder}/").partition("/")[0] for version in stored]
    return resources.blobs.erase_versions(
        [version for version, name in zip(stored, names, strict=True) if name not in new]
    )


def _is_before_first_pass(job: PrivacyJob, row: Item) -> bool:
    """Return whether a ledger row is of a turn that the first pass has ended, or could have."""
    return not job.passed_at or row["at"] <= job.passed_at or row["turn"] in job.turns


def _rename_in_ledger(
    resources: Resources, job: PrivacyJob, subject: DataSubject, conversations: Sequence[str]
) -> PrivacyJob:
    """Give the ledger pseudonyms, and rebuild the rollups, which are read by user.

    The rebuild is due until it has succeeded, also when a run is stopped between the two. The second pass repeats it:
    the stream may have counted late rows under the user's name.
    """
    must_rebuild = job.must_rebuild or bool(job.counts.get("ledger_rows"))
    job = save_privacy_job(resources, job.model_copy(update={"must_rebuild": True}))
    renamed = rename_user_in_ledger(resources, subject, job.erased_name, lambda row: _is_before_first_pass(job, row))
    job = add_counts(job, {"ledger_rows": renamed})
    if must_rebuild or renamed:
        rebuild_rollups(resources, subject.tenant)
        erase_old_editions(resources, subject.tenant, conversations)
    return job.model_copy(update={"must_rebuild": False})


def erase_old_editions(resources: Resources, tenant: str, conversations: Sequence[str]) -> None:
    """Delete what rebuilds that were stopped have left: rollups that still name users."""
    row = read_edition_row(resources, tenant)
    table = resources.settings.usage_table
    for number in range(1, row.last + 1):
        if number not in (row.current, row.building):
            edition = RollupEdition(tenant, number)
            activities = map(edition.activity_partition, conversations)
            for partition in (edition.period_partition("day"), edition.period_partition("quarter"), *activities):
                erase_partition(resources, table, partition)
