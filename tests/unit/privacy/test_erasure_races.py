"""Erasures meet prompts, undos, other jobs and the end of their time."""

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.blob_store import prompt_folder
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import create_conversation
from fermata.conversations.purge import purge_deleted_conversations
from fermata.domain.errors import ApiError, NotFound, TooManyRequests
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS
from fermata.limits.count_use import delete_empty_counts
from fermata.limits.leases import build_lease_removal
from fermata.limits.limit_keys import COUNTS_SORT_KEY, build_user_limits_key
from fermata.limits.usage_counters import UsageCounters, Use
from fermata.privacy import erase_user_rows, erasure, export, privacy_job
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.export import EXPORT_SECONDS, iter_export_lines
from fermata.privacy.privacy_job import (
    JobKind,
    PrivacyJob,
    create_privacy_job,
    get_privacy_job,
    list_open_jobs,
)
from fermata.privacy.run_jobs import run_open_jobs
from fermata.turns.answer.submit_tool_result import submit_tool_result
from fermata.turns.start.start_turn import start_turn
from fermata.turns.store_snapshot_early import CAUTION_SECONDS
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.wire.auth.api_key_store import create_api_key
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TestClock
from tests.unit.privacy.filled_tenant import (
    ADA,
    BEN,
    NAME,
    SECRETS_OF_ADA,
    USER,
    fill_tenant,
    find_traces,
    list_objects,
    list_rows,
    read_row,
    run_edited_turn,
)
from tests.unit.privacy.saved_tenant import SavedTenant
from tests.unit.turns.stage import Stage

pytestmark = pytest.mark.exhaustive  # a race at every place

OF_ADA = DataSubject(kind="user", tenant="bakery", id=USER)
OF_ALL = DataSubject(kind="tenant", tenant="bakery", id="bakery")


@pytest.fixture
def stage(resources: Resources, monkeypatch: pytest.MonkeyPatch, saved_tenant: SavedTenant) -> Stage:
    resources.blobs._client.put_bucket_versioning(
        Bucket=resources.settings.bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    return saved_tenant.load(resources, monkeypatch, lambda: fill_stage(resources, monkeypatch))


def fill_stage(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Stage:
    filled = Stage(resources, monkeypatch, caller=ADA)
    fill_tenant(resources, filled)
    return filled


def run_to_the_end(resources: Resources, clock: TestClock, job: PrivacyJob) -> PrivacyJob:
    for _ in range(9):
        run_open_jobs(resources)
        found = get_privacy_job(resources, "bakery", job.id, job.kind)
        if found.state == "done":
            return found
        clock.advance(SETTLING_SECONDS)
    raise AssertionError(f"the job is still {found.state}")


def interfere(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], *, after: bool = False
) -> list[bool]:
    """Act once, right before or after the first call of a function of the erasure."""
    original, acted = getattr(erasure, name), list[bool]()

    def replaced(*args: Any) -> Any:
        result = original(*args) if after else None
        if not acted:
            acted.append(True)
            act()
        return result if after else original(*args)

    monkeypatch.setattr(erasure, name, replaced)
    return acted


@pytest.mark.parametrize("kind", sample_for_quick_suite(["user", "conversation"], every=2))
def test_the_snapshot_of_a_refused_prompt_is_gone_with_its_user_or_conversation(
    resources: Resources, stage: Stage, clock: TestClock, kind: Any
) -> None:
    stage.cancel_turn()
    no_prompts = replace(DEFAULT_CALLER_LIMITS, user=replace(DEFAULT_CALLER_LIMITS.user, prompts_per_minute=0))
    prompt = stage.make_prompt("no", snapshot={"page": "seen-in-a-refused-prompt"}, limits=no_prompts)
    with pytest.raises(TooManyRequests):
        start_turn(resources, stage.caller, prompt)
    assert find_traces(resources, "seen-in-a-refused-prompt") == ["seen-in-a-refused-prompt"]
    subject = DataSubject(kind=kind, tenant="bakery", id=USER if kind == "user" else stage.conversation.id)
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", subject))
    assert find_traces(resources, "seen-in-a-refused-prompt") == []


def send_snapshots_for_what_is_bens(resources: Resources, stage: Stage, clock: TestClock, words: str) -> None:
    """Prompt in a conversation of another user, and answer a request of another user's turn."""
    bens = create_conversation(resources, BEN, "site", None, None, "model-1")
    prompt = replace(stage.make_prompt("no", snapshot={"page": words}), conversation_id=bens.id)
    with pytest.raises(NotFound):
        start_turn(resources, stage.caller, prompt)
    clock.advance(CAUTION_SECONDS)
    with pytest.raises(ApiError):
        submit_tool_result(
            resources,
            stage.caller,
            bridge_id="a-turn-of-ben",
            request_id="r",
            result={"ok": True},
            snapshot=LazySnapshot.from_value({"result": words}),
        )


def list_exported_blobs(resources: Resources, user: str) -> list[str]:
    lines = iter_export_lines(resources, DataSubject(kind="user", tenant="bakery", id=user))
    return [str(line["blob"]) for line in lines if "blob" in line]


def test_snapshots_that_a_user_has_sent_for_what_is_anothers_are_that_users(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    stage.cancel_turn()
    before = set(list_exported_blobs(resources, USER))
    send_snapshots_for_what_is_bens(resources, stage, clock, "sent-for-what-is-bens")
    sent = set(list_exported_blobs(resources, USER)) - before
    assert len(sent) == 2
    assert not sent & set(list_exported_blobs(resources, BEN.user))
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", OF_ADA))
    assert not sent & set(list_objects(resources))
    assert find_traces(resources, "sent-for-what-is-bens") == []


def test_an_erasure_leaves_the_snapshots_of_a_conversation_that_began_after_the_request(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    stage.cancel_turn()
    job = create_privacy_job(resources, "erasure", OF_ADA)
    clock.advance(1)
    stage.conversation = stage.new_conversation()
    turn = stage.start_turn("again", snapshot={"page": "of-the-new-conversation"})
    run_to_the_end(resources, clock, job)
    folder = prompt_folder(turn.tenant, turn.user, turn.conversation, turn.id)
    assert len(resources.blobs.list_keys(folder)) == 1


@pytest.mark.parametrize("name", sample_for_quick_suite(["_find_ids", "erase_turn", "erase_conversation"], every=3))
@pytest.mark.parametrize("after", sample_for_quick_suite([False, True], every=2))
def test_a_prompt_that_comes_while_a_pass_runs_is_refused_or_erased(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    stage.cancel_turn()

    def prompt() -> None:
        """In the newest conversation, as a browser does that has it open."""
        with suppress(ApiError):
            stage.start_turn("my-prompt-is-private", idempotency_key="late")

    acted = interfere(monkeypatch, name, prompt, after=after)
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", OF_ADA))
    assert acted
    assert find_traces(resources, USER, NAME, *SECRETS_OF_ADA) == []


def test_a_later_pass_leaves_the_keys_counts_and_settings_of_a_user_who_is_back(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    """Else a prompt that is sent again would begin a second turn."""
    job = create_privacy_job(resources, "erasure", OF_ADA)
    run_open_jobs(resources)
    clock.advance(60)
    stage.new_conversation()
    begun = stage.start_turn("I am back", idempotency_key="once")
    create_api_key(resources, ADA, "New importer", ["ai.chat"])
    kept = {(row["pk"], row["sk"]) for row in list_rows(resources, "bridges", "settings") if USER in read_row(row)}
    run_to_the_end(resources, clock, job)
    assert stage.start_turn("I am back", idempotency_key="once").id == begun.id
    left = {(row["pk"], row["sk"]) for row in list_rows(resources, "bridges", "settings") if USER in read_row(row)}
    assert left == {key for key in kept if not key[0].startswith("privacy#")}


@pytest.mark.parametrize("subject", sample_for_quick_suite([OF_ADA, OF_ALL], every=2), ids=["user", "tenant"])
def test_a_pass_that_finds_something_is_followed_by_another(
    resources: Resources, stage: Stage, clock: TestClock, subject: DataSubject
) -> None:
    """A function that ran while the second pass erased its turn writes the next entry of a log that is gone."""
    log_entry = stage.stored_items(stage.turn.pk)[1]
    job = create_privacy_job(resources, "erasure", subject)
    for _ in range(2):
        run_open_jobs(resources)
        resources.tables.write_items(Put("bridges", log_entry, if_absent=True))
        clock.advance(SETTLING_SECONDS)
    run_to_the_end(resources, clock, job)
    assert find_traces(resources, *SECRETS_OF_ADA) == []
    assert [row for row in list_rows(resources, "bridges") if row["pk"] == log_entry["pk"]] == []


def test_an_undo_that_was_cancelled_at_once_is_erased_with_its_user(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    stage.cancel_turn()
    stage.new_conversation()
    run_edited_turn(stage)
    stage.start_undo()
    stage.cancel_turn()
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", OF_ADA))
    assert [row for row in list_rows(resources, "bridges") if "#turn#" in row["pk"]] == []


def test_a_person_with_many_turns_is_erased_in_several_runs_of_which_each_goes_on(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    for _ in range(12):
        stage.new_conversation()
        stage.start_turn("my-prompt-is-private")
        stage.cancel_turn()
    looked: Counter[str] = Counter()
    resources.blobs._client.meta.events.register(
        "before-parameter-build.s3.ListObjectVersions", lambda params, **_: looked.update([params["Prefix"]])
    )
    create_privacy_job(resources, "erasure", OF_ADA)
    for _ in range(5):
        steps = itertools.count()
        run_open_jobs(resources, lambda steps=steps: next(steps) < 5)
    twice = [folder for folder, times in looked.items() if times > 1 and folder.startswith("turns/")]
    assert twice == [], "no run repeats what an earlier one has done"
    assert len(looked) > 12


def test_a_job_that_never_gets_done_does_not_keep_the_others_from_their_turn(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MAX_PART_BYTES", 10_000)
    create_privacy_job(resources, "export", OF_ALL)
    clock.advance(1)
    create_privacy_job(resources, "export", DataSubject(kind="user", tenant="bakery", id=BEN.user))
    for _ in range(2):
        clock.advance(300)
        answers = iter([True])
        run_open_jobs(resources, lambda answers=answers: next(answers, False))
    done = [row["subject"]["id"] for row in list_rows(resources, "settings") if row.get("state") == "done"]
    assert done == [BEN.user]


def test_two_runs_at_once_do_not_disturb_each_other(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The schedule begins a run every five minutes, and one may take fifteen."""
    job = create_privacy_job(resources, "erasure", OF_ADA)
    acted = interfere(monkeypatch, "erase_turn", lambda: run_open_jobs(resources))
    run_to_the_end(resources, clock, job)
    assert acted
    assert find_traces(resources, USER, NAME, *SECRETS_OF_ADA) == []
    assert "privacy.job_failed" not in caplog.text


def test_a_budget_that_is_changed_meanwhile_loses_the_users_limits_nevertheless(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = BudgetLimits(daily_usd=Decimal(7))
    original, changes = erase_user_rows._without_user, iter(range(3))

    def change_and_go_on(value: object, user: str) -> object:
        if isinstance(value, dict) and next(changes, None) is not None:
            set_budgets(resources, BEN, Budgets(tenant=limits, users={USER: limits, BEN.user: limits}))
        return original(value, user)

    monkeypatch.setattr(erase_user_rows, "_without_user", change_and_go_on)
    create_privacy_job(resources, "erasure", OF_ADA)
    run_open_jobs(resources)
    row = resources.tables.get_item(resources.settings.settings_table, "t#bakery", "budgets")
    assert row
    assert list(row["users"]) == [BEN.user]


def test_the_same_request_again_is_the_same_job(resources: Resources) -> None:
    first = create_privacy_job(resources, "export", OF_ALL)
    assert create_privacy_job(resources, "export", OF_ALL).id == first.id
    assert create_privacy_job(resources, "export", OF_ADA).id != first.id
    assert create_privacy_job(resources, "erasure", OF_ADA).id != first.id


@pytest.mark.parametrize("kind", ["export", "erasure"])
@pytest.mark.parametrize("subject", sample_for_quick_suite([OF_ADA, OF_ALL], every=2), ids=["user", "tenant"])
def test_equal_requests_at_the_same_moment_are_one_job(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, kind: JobKind, subject: DataSubject
) -> None:
    """Each of ten requests is answered after the next one has begun and before it writes."""
    write, jobs, begun = resources.tables.write_items, list[PrivacyJob](), itertools.count(1)

    def write_after_the_next_request(*writes: Any) -> None:
        if next(begun) < 10:
            jobs.append(create_privacy_job(resources, kind, subject))
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_after_the_next_request)
    jobs.append(create_privacy_job(resources, kind, subject))
    assert len({job.id for job in jobs}) == 1
    assert len(list_open_jobs(resources, "bakery")) == 1


def test_a_request_is_a_new_job_once_the_equal_one_has_begun(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that has begun may have been killed before it deleted the row by which requests find the job."""
    first = create_privacy_job(resources, "export", OF_ADA)
    with monkeypatch.context() as patch:
        patch.setattr(privacy_job, "_forget_waiting_job", lambda *_: None)
        run_open_jobs(resources)
    second = create_privacy_job(resources, "export", OF_ADA)
    assert second.id != first.id
    assert create_privacy_job(resources, "export", OF_ADA).id == second.id
    run_open_jobs(resources)
    assert resources.tables.query_items(resources.settings.settings_table, "privacy#waiting") == []


def test_a_tenant_has_a_limited_number_of_jobs_at_once(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy_job, "MAX_OPEN_JOBS", 3)
    for number in range(3):
        create_privacy_job(resources, "export", DataSubject(kind="user", tenant="bakery", id=f"user-{number}"))
    with pytest.raises(TooManyRequests) as refused:
        create_privacy_job(resources, "export", OF_ADA)
    assert refused.value.retry_after
    create_privacy_job(resources, "export", DataSubject(kind="user", tenant="florist", id=USER))
    run_open_jobs(resources)
    create_privacy_job(resources, "export", OF_ADA)


def test_the_files_of_an_export_are_deleted_in_all_versions_after_a_day(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    job = create_privacy_job(resources, "export", OF_ADA)
    run_open_jobs(resources)
    done = get_privacy_job(resources, "bakery", job.id, "export")
    clock.advance(EXPORT_SECONDS - 1)
    assert run_open_jobs(resources) == 0
    assert [key for key in list_objects(resources) if key.startswith("exports/")]
    clock.advance(1)
    assert run_open_jobs(resources) == 1
    expired = get_privacy_job(resources, "bakery", job.id, "export")
    assert (expired.state, expired.parts, expired.subject) == ("expired", (), None)
    assert expired.counts == done.counts
    assert expired.to_view()["deletedBecause"] == "age"
    assert [key for key in list_objects(resources) if key.startswith("exports/")] == []
    assert run_open_jobs(resources) == 0


@pytest.mark.parametrize("exported", sample_for_quick_suite([OF_ADA, OF_ALL], every=2), ids=["user", "tenant"])
@pytest.mark.parametrize("erased", [OF_ADA, OF_ALL], ids=["user", "tenant"])
def test_an_erasure_deletes_the_exports_of_before(
    resources: Resources, stage: Stage, clock: TestClock, exported: DataSubject, erased: DataSubject
) -> None:
    job = create_privacy_job(resources, "export", exported)
    run_open_jobs(resources)
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", erased))
    assert get_privacy_job(resources, "bakery", job.id, "export").to_view()["deletedBecause"] == "erasure"
    assert find_traces(resources, USER, NAME, *SECRETS_OF_ADA) == []
    assert [key for key in list_objects(resources) if key.startswith("exports/")] == []
    if erased is OF_ALL:
        assert find_traces(resources, "bakery") == []


def test_former_versions_of_a_conversation_that_was_purged_before_are_erased(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    clock.advance(31 * 86_400)
    assert purge_deleted_conversations(resources) == 1
    [purged] = {
        entry["Key"].split("/")[2] for entry in list_deletion_marks(resources) if "conversations/" in entry["Key"]
    }
    run_to_the_end(resources, clock, create_privacy_job(resources, "erasure", OF_ADA))
    assert [key for key in list_objects(resources) if purged in key] == []
    assert list_deletion_marks(resources) == []


def list_deletion_marks(resources: Resources) -> list[Any]:
    listed = resources.blobs._client.list_object_versions(Bucket=resources.settings.bucket)
    return listed.get("DeleteMarkers", [])


@pytest.mark.parametrize("use", [Use(prompts=1), Use(turn="begun"), Use(uploads=1), Use(stored_bytes=1)])
def test_counts_of_a_user_who_begins_at_the_same_moment_stay(
    resources: Resources, stage: Stage, monkeypatch: pytest.MonkeyPatch, use: Use
) -> None:
    stage.cancel_turn()
    key = build_user_limits_key(resources, ADA.tenant, ADA.user, COUNTS_SORT_KEY)
    resources.tables.batch_delete(key.table, [(key.pk, key.sk)])
    resources.tables.write_items(build_lease_removal(key, "ended", resources.clock.time()))
    read = resources.tables.get_item_by_key

    def read_before_a_prompt(asked: ItemKey) -> Item | None:
        row = read(asked)
        if asked == key:
            monkeypatch.setattr(resources.tables, "get_item_by_key", read)
            counts = UsageCounters(key, row or {}, DEFAULT_CALLER_LIMITS.user, resources.clock.time())
            resources.tables.write_items(counts.build_update(use))
        return row

    monkeypatch.setattr(resources.tables, "get_item_by_key", read_before_a_prompt)
    delete_empty_counts(resources, ADA.tenant, ADA.user, shard=0)
    assert (read(key) or {}).keys() - {"pk", "sk", "ttl"}
    delete_empty_counts(resources, ADA.tenant, ADA.user, shard=0)
    assert (read(key) or {}).keys() - {"pk", "sk", "ttl"}
