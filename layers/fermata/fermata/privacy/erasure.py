"""Erase a conversation, a user or a tenant in two passes (decision 0257).

The first pass deletes all that is there. Functions that read rows before that may still write for a quarter of an
hour, the longest time that one can run. So a second pass after that time deletes what came late, and then the job names
nobody any more. It leaves alone what the same user has begun since the first pass. Each pass may be interrupted
anywhere: the next run deletes what is left.
"""

from collections.abc import Sequence

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erase_content import erase_conversation, erase_partition, erase_turn
from fermata.privacy.erase_tenant import erase_tenant
from fermata.privacy.erase_user_rows import erase_user_rows
from fermata.privacy.find_subject_rows import iter_conversations, iter_ledger_rows, list_turns_of_conversation
from fermata.privacy.ledger_pseudonyms import rename_user_in_ledger
from fermata.privacy.privacy_job import HasTime, PrivacyJob, add_counts, save_privacy_job
from fermata.usage.rollups.edition_row import RollupEdition, read_edition_row
from fermata.usage.rollups.rebuild import rebuild_rollups

SETTLING_SECONDS = 20 * 60
"""Longer than any function runs (15 minutes), and its calls are repeated."""
MAX_REMEMBERED_IDS = 4_000
"""Ids that a job keeps for the second pass. What is beyond has rows in the ledger, which names them too."""


def run_erasure(resources: Resources, job: PrivacyJob, has_time: HasTime) -> PrivacyJob:
    """Go on with an erasure until its pass is done or the time is over.

    Raises:
        ServiceUnavailable: A turn's workflow could not be resumed. The next run tries again.
        ConditionFailed: Another run has gone on with the job.
    """
    subject = job.subject
    assert subject is not None
    is_second_pass = job.state == "settling"
    if job.state == "waiting":
        job = save_privacy_job(resources, job.model_copy(update={"state": "running"}))
    if subject.kind == "tenant":
        job, is_done = erase_tenant(resources, job, lambda changed: save_privacy_job(resources, changed), has_time)
    else:
        job, is_done = _erase_person_or_conversation(resources, job, subject, has_time)
    if not is_done:
        return job
    return _finish(resources, job) if is_second_pass else _settle(resources, job)


def _settle(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    now = resources.clock.time()
    update = {"state": "settling", "passed_at": iso_from_epoch(now), "not_before": int(now) + SETTLING_SECONDS}
    return save_privacy_job(resources, job.model_copy(update=update))


def _finish(resources: Resources, job: PrivacyJob) -> PrivacyJob:
    """Turn the job into a receipt, which names nobody."""
    forgotten = {"subject": None, "salt": "", "conversations": (), "turns": (), "position": ()}
    done = {"state": "done", "done_at": iso_from_epoch(resources.clock.time())}
    return save_privacy_job(resources, job.model_copy(update=forgotten | done))


def _erase_person_or_conversation(
    resources: Resources, job: PrivacyJob, subject: DataSubject, has_time: HasTime
) -> tuple[PrivacyJob, bool]:
    conversations, turns = _find_ids(resources, job, subject)
    # Stored before anything is deleted that leads to them.
    remembered = {"conversations": conversations[:MAX_REMEMBERED_IDS], "turns": turns[:MAX_REMEMBERED_IDS]}
    job = save_privacy_job(resources, job.model_copy(update=remembered))
    for turn in turns:
        job = add_counts(job, **erase_turn(resources, subject.tenant, turn))
        if not has_time():
            return save_privacy_job(resources, job), False
    job = save_privacy_job(resources, job)
    for conversation in conversations:
        job = add_counts(job, **erase_conversation(resources, subject.tenant, conversation))
        if not has_time():
            return save_privacy_job(resources, job), False
    if subject.kind == "user":
        job = add_counts(job, **erase_user_rows(resources, subject, job.erased_name))
        job = _rename_in_ledger(resources, job, subject, conversations)
    return save_privacy_job(resources, job), True


def _find_ids(resources: Resources, job: PrivacyJob, subject: DataSubject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conversations and the turns of the subject, those that were found before first."""
    conversations = dict.fromkeys(job.conversations)
    if subject.kind == "conversation":
        conversations[subject.id] = None
    conversations |= dict.fromkeys(row["id"] for row in iter_conversations(resources, subject, job.requested_at))
    turns = dict.fromkeys(job.turns)
    ledger_rows = iter_ledger_rows(resources, subject, [job.erased_name])
    turns |= dict.fromkeys(row["turn"] for row in ledger_rows if _is_before_first_pass(job, row))
    for conversation in conversations:
        turns |= dict.fromkeys(list_turns_of_conversation(resources, subject.tenant, conversation))
    return tuple(conversations), tuple(turns)


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
    job = add_counts(job, ledger_rows=renamed)
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
