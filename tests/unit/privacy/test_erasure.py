"""Erased data is gone from every table and object; the data of others stays; the ledger sums to the same."""

import hashlib
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.blob_store import turn_folder
from fermata.aws.dynamodb_items_and_writes import Delete, Put
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.limits.limit_keys import user_limits_partition
from fermata.privacy import privacy_job
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.erasure import SETTLING_SECONDS
from fermata.privacy.privacy_job import PrivacyJob, create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from fermata.usage.audit.audit_from_rollups import audit_usage
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import make_tenant
from tests.unit.privacy.filled_tenant import (
    ADA,
    BEN,
    NAME,
    SECRETS_OF_ADA,
    USER,
    count_ledger,
    fill_tenant,
    find_traces,
    list_objects,
    list_rows,
    make_caller,
    read_row,
)
from tests.unit.privacy.saved_tenant import SavedTenant
from tests.unit.turns.stage import Stage


@pytest.fixture
def stage(resources: Resources, monkeypatch: pytest.MonkeyPatch, saved_tenant: SavedTenant) -> Stage:
    resources.blobs._client.put_bucket_versioning(
        Bucket=resources.settings.bucket, VersioningConfiguration={"Status": "Enabled"}
    )
    return saved_tenant.load(resources, monkeypatch, lambda: fill_stage(resources, monkeypatch))


def fill_stage(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Stage:
    other = Stage(resources, monkeypatch, caller=BEN)
    other.start_turn("What Ben asked")
    other.script_replies("An answer for Ben")
    other.run_workflow()
    filled = Stage(resources, monkeypatch, caller=ADA)
    fill_tenant(resources, filled)
    count_ledger(resources)
    return filled


def erase(resources: Resources, clock: TestClock, kind: Any, subject_id: str, passes: int = 2) -> PrivacyJob:
    job = create_privacy_job(resources, "erasure", DataSubject(kind=kind, tenant="bakery", id=subject_id))
    assert run_open_jobs(resources) == 1
    assert run_open_jobs(resources) == 0, "the second pass waits for functions that still run"
    for _ in range(passes - 1):
        clock.advance(SETTLING_SECONDS)
        run_open_jobs(resources)
    return get_privacy_job(resources, "bakery", job.id, "erasure")


def sum_audit(resources: Resources, tenant: str = "bakery") -> tuple[Any, set[str]]:
    audit = audit_usage(resources_of_new_process(resources), tenant, "2026-01-01T00:00:00.000Z", "UTC")
    return audit["totals"], {row["userId"] for row in audit["byUser"]}


def test_the_filled_tenant_holds_what_the_tests_look_for(resources: Resources, stage: Stage) -> None:
    assert find_traces(resources, USER, NAME, *SECRETS_OF_ADA) == [USER, NAME, *SECRETS_OF_ADA]


def test_a_user_is_gone_from_every_row_and_object(resources: Resources, stage: Stage, clock: TestClock) -> None:
    ledger_rows = [row for row in list_rows(resources, "usage") if "gsk" in row]
    own_counts = user_limits_partition("bakery", USER)
    assert find_traces(resources, own_counts) == [own_counts]
    done = erase(resources, clock, "user", USER)
    assert done.state == "done"
    assert find_traces(resources, USER, NAME, own_counts, *SECRETS_OF_ADA) == []
    assert find_traces(resources, BEN.user, "What Ben asked", "An answer for Ben") == [
        BEN.user,
        "What Ben asked",
        "An answer for Ben",
    ]
    kept = [row for row in list_rows(resources, "usage") if "gsk" in row]
    assert len(kept) >= len(ledger_rows)
    assert {row["user"] for row in kept} == {BEN.user, done.erased_name}


def test_audits_sum_to_the_same_and_name_a_pseudonym(resources: Resources, stage: Stage, clock: TestClock) -> None:
    stage.cancel_turn()
    count_ledger(resources)
    before, users = sum_audit(resources)
    assert USER in users
    done = erase(resources, clock, "user", USER)
    after, users = sum_audit(resources)
    assert after == before
    assert users == {BEN.user, done.erased_name}


def test_an_open_turn_is_ended_first_and_its_workflow_finishes(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    token = stage.load_pause().callback_token
    erase(resources, clock, "user", USER)
    assert (token, "finish", 0) in stage.workflow.sent
    assert stage.stored_items(stage.turn.pk) == []


def test_the_receipt_counts_what_was_done_and_names_nobody(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    done = erase(resources, clock, "user", USER)
    assert done.subject is None
    assert done.done_at
    assert done.counts["conversations"] == 6
    assert done.counts["turns"] == 5
    assert done.counts["objects"] > 5
    assert done.counts["ledger_rows"] > 0
    assert USER not in done.model_dump_json()
    assert resources.tables.query_items(resources.settings.settings_table, "privacy#open") == []


def test_one_conversation_is_erased_and_the_others_stay(resources: Resources, stage: Stage, clock: TestClock) -> None:
    conversations = [row for row in list_rows(resources, "conversations") if row["sk"] == "meta"]
    titled = next(row for row in conversations if row.get("title") == "title-of-ada")
    erase(resources, clock, "conversation", titled["id"])
    left = [row["id"] for row in list_rows(resources, "conversations") if row["sk"] == "meta"]
    assert sorted(left) == sorted(row["id"] for row in conversations if row is not titled)
    assert find_traces(resources, "title-of-ada") == []
    assert not [key for key in list_objects(resources) if titled["id"] in key]
    assert {row["user"] for row in list_rows(resources, "usage") if "gsk" in row} == {USER, BEN.user}


def test_the_conversation_of_a_session_is_gone_with_the_chats_that_wait_in_it(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    conversations = [row for row in list_rows(resources, "conversations") if row["sk"] == "meta"]
    session = next(row["id"] for row in conversations if row["scope"] == "planner")

    def list_partitions() -> list[str]:
        return [row["pk"] for row in list_rows(resources) if session in read_row(row)]

    assert [pk for pk in list_partitions() if "plan-chats" in pk]
    erase(resources, clock, "conversation", session)
    assert list_partitions() == []


def test_a_tenant_is_gone_with_all_that_it_had_and_its_ledger_goes_on_under_a_pseudonym(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    stage.cancel_turn()
    count_ledger(resources)
    before, _ = sum_audit(resources)
    done = erase(resources, clock, "tenant", "bakery")
    secrets = (USER, NAME, BEN.user, BEN.label, *SECRETS_OF_ADA, "What Ben asked", "bakery")
    assert find_traces(resources, *secrets) == []
    assert list_objects(resources) == {}
    tables = {row["pk"].split("#")[0] for row in list_rows(resources)}
    assert tables <= {"t", "privacy", "catalogue"}
    count_ledger(resources)
    assert sum_audit(resources, done.erased_name)[0] == before


@pytest.mark.parametrize("name", ["x#turn#y#c#z#u#site", "erased-ada"])
def test_a_user_whose_name_looks_like_a_key_or_a_pseudonym_is_gone_with_the_tenant(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    odd = make_caller(name, "Odd")
    own = Stage(resources, monkeypatch, caller=odd)
    own.start_turn("odd-prompt", idempotency_key="once")
    own.script_replies("An answer")
    own.run_workflow()
    assert find_traces(resources, odd.user) == [odd.user]
    erase(resources, clock, "tenant", "bakery", passes=3)
    assert find_traces(resources, odd.user, "odd-prompt") == []


def test_a_tenant_is_added_again_only_when_its_erasure_is_done(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    """Else a late copy of a delete would hit the new tenant, or rows that came late would be the new tenant's."""
    create_privacy_job(resources, "erasure", DataSubject(kind="tenant", tenant="bakery", id="bakery"))
    run_open_jobs(resources)
    for _ in range(3):
        with pytest.raises(Conflict, match="being erased"):
            make_tenant(resources, "bakery")
        clock.advance(SETTLING_SECONDS)
        run_open_jobs(resources)
        if not resources.tables.query_items(resources.settings.settings_table, "privacy#open"):
            break
    make_tenant(resources, "bakery")
    run_open_jobs(resources)
    assert resources.tables.get_item(resources.settings.settings_table, "t#bakery", "tenant")


def test_a_mark_that_an_earlier_version_has_left_keeps_no_tenant_from_being_added(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    name_hash = hashlib.sha256(b"bakery").hexdigest()
    earlier = {"pk": f"erasing#{name_hash}", "sk": "tenant", "v": 1}
    job = create_privacy_job(resources, "erasure", DataSubject(kind="tenant", tenant="bakery", id="bakery"))
    resources.tables.write_items(Delete("settings", earlier["pk"], job.id), Put("settings", earlier))
    run_open_jobs(resources)
    with pytest.raises(Conflict, match="being erased"):
        make_tenant(resources, "bakery")
    for _ in range(3):
        clock.advance(SETTLING_SECONDS)
        run_open_jobs(resources)
    make_tenant(resources, "bakery")
    assert resources.tables.query_items("settings", earlier["pk"]) == []


def test_a_tenant_of_which_a_second_erasure_still_runs_is_not_added_again(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    subject = DataSubject(kind="tenant", tenant="bakery", id="bakery")
    first = create_privacy_job(resources, "erasure", subject)
    run_open_jobs(resources)
    second = create_privacy_job(resources, "erasure", subject)
    assert first.id != second.id
    for _ in range(9):
        clock.advance(SETTLING_SECONDS // 2)
        run_open_jobs(resources)
        states = {get_privacy_job(resources, "bakery", job.id, "erasure").state for job in (first, second)}
        if states == {"done"}:
            break
        with pytest.raises(Conflict, match="being erased"):
            make_tenant(resources, "bakery")
    make_tenant(resources, "bakery")


def test_a_job_whose_run_is_stopped_after_its_last_write_is_closed_by_the_next(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def die(*_: Any) -> None:
        raise KilledError

    job = create_privacy_job(resources, "erasure", DataSubject(kind="user", tenant="bakery", id=USER))
    run_open_jobs(resources)
    clock.advance(SETTLING_SECONDS)
    with monkeypatch.context() as patched:
        patched.setattr(privacy_job, "close_privacy_job", die)
        with pytest.raises(KilledError):
            run_open_jobs(resources)
    assert get_privacy_job(resources, "bakery", job.id, "erasure").state == "done"
    assert run_open_jobs(resources) == 0
    assert resources.tables.query_items(resources.settings.settings_table, "privacy#open") == []
    assert "privacy.job_failed" not in caplog.text


@pytest.mark.parametrize("kind", ["user", "tenant"])
@pytest.mark.parametrize("calls_until_death", sample_for_quick_suite([3, 9, 17, 29, 47, 71, 101, 149, 199], every=9))
def test_an_erasure_that_is_killed_anywhere_goes_on(
    resources: Resources, stage: Stage, clock: TestClock, kind: Any, calls_until_death: int
) -> None:
    """The process dies at a call, and another one goes on."""
    subject = DataSubject(kind=kind, tenant="bakery", id=USER if kind == "user" else "bakery")
    create_privacy_job(resources, "erasure", subject)
    _die_after(resources, calls_until_death, lambda: run_open_jobs(resources))
    for _ in range(2):
        run_open_jobs(resources)
        clock.advance(SETTLING_SECONDS)
    run_open_jobs(resources)
    assert find_traces(resources, USER, NAME, *SECRETS_OF_ADA) == [], [
        r for r in list_rows(resources) if USER in str(r)
    ]
    assert resources.tables.query_items(resources.settings.settings_table, "privacy#open") == []


class KilledError(BaseException):
    """Nothing catches it, as nothing catches the end of a process."""


def _die_after(resources: Resources, calls: int, act: Callable[[], object]) -> None:
    left = [calls]

    def count(**_: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    clients = (resources.tables._client, resources.blobs._client)
    for client in clients:
        client.meta.events.register("before-call", count, unique_id="killer")
    try:
        act()
    except KilledError:
        pass
    finally:
        for client in clients:
            client.meta.events.unregister("before-call", unique_id="killer")


def test_what_a_function_writes_after_the_first_pass_is_erased_by_the_second(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    conversation, turn = stage.conversation.id, stage.turn
    log_entry = stage.stored_items(turn.pk)[1]
    message = resources.tables.query_items("conversations", f"t#bakery#c#{conversation}", min_sk="m#")[0]
    create_privacy_job(resources, "erasure", DataSubject(kind="user", tenant="bakery", id=USER))
    run_open_jobs(resources)
    resources.tables.write_items(Put("bridges", log_entry, if_absent=True))
    resources.tables.write_items(Put("conversations", message, if_absent=True))
    resources.blobs.put_json(turn_folder("bakery", turn.id), {"text": "my-prompt-is-private"})
    for _ in range(2):
        clock.advance(SETTLING_SECONDS)
        run_open_jobs(resources)
    assert find_traces(resources, USER, *SECRETS_OF_ADA) == []


def test_a_turn_that_a_user_begins_after_the_first_pass_is_not_erased(
    resources: Resources, stage: Stage, clock: TestClock
) -> None:
    create_privacy_job(resources, "erasure", DataSubject(kind="user", tenant="bakery", id=USER))
    run_open_jobs(resources)
    clock.advance(60)
    stage.new_conversation()
    turn = stage.start_turn("I am back")
    stage.script_replies("Welcome")
    stage.run_workflow()
    clock.advance(SETTLING_SECONDS)
    run_open_jobs(resources)
    assert stage.turn is turn
    assert stage.event_types()[-1] == "done"
    assert [message.role for message in stage.load_messages()] == ["user", "assistant"]


def test_the_log_lines_of_an_erasure_hold_no_name_and_no_text(
    resources: Resources, stage: Stage, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        erase(resources, clock, "user", USER)
    lines = " ".join(json.dumps(record.__dict__, default=str) for record in caplog.records)
    assert not [text for text in (NAME, *SECRETS_OF_ADA) if text in lines]


def test_a_job_of_one_tenant_is_not_shown_to_another(resources: Resources, stage: Stage) -> None:
    from fermata.domain.errors import NotFound

    job = create_privacy_job(resources, "erasure", DataSubject(kind="user", tenant="bakery", id=USER))
    with pytest.raises(NotFound):
        get_privacy_job(resources, "florist", job.id, "erasure")
