"""An export holds everything of its subject, nothing of others, and no secret."""

import gzip
import json
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.limits.limit_keys import user_limits_partition
from fermata.privacy import export
from fermata.privacy.data_subject import DataSubject
from fermata.privacy.privacy_job import PrivacyJob, create_privacy_job, get_privacy_job
from fermata.privacy.run_jobs import run_open_jobs
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TestClock
from tests.unit.privacy.filled_tenant import (
    ADA,
    BEN,
    NAME,
    SECRETS_OF_ADA,
    USER,
    count_ledger,
    fill_tenant,
    list_objects,
    list_rows,
    read_row,
)
from tests.unit.privacy.saved_tenant import SavedTenant
from tests.unit.turns.stage import Stage

WEEK_SECONDS = 7 * 86_400


@pytest.fixture
def stage(resources: Resources, monkeypatch: pytest.MonkeyPatch, saved_tenant: SavedTenant) -> Stage:
    return saved_tenant.load(resources, monkeypatch, lambda: fill_stage(resources, monkeypatch))


def fill_stage(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Stage:
    other = Stage(resources, monkeypatch, caller=BEN)
    other.start_turn("What Ben asked")
    other.script_replies("An answer for Ben")
    other.run_workflow()
    filled = Stage(resources, monkeypatch, caller=ADA)
    fill_tenant(resources, filled)
    return filled


def export_subject(resources: Resources, kind: Any, subject_id: str) -> tuple[PrivacyJob, list[dict[str, Any]]]:
    job = create_privacy_job(resources, "export", DataSubject(kind=kind, tenant="bakery", id=subject_id))
    assert run_open_jobs(resources) == 1
    done = get_privacy_job(resources, "bakery", job.id, "export")
    assert done.state == "done"
    text = b"".join(gzip.decompress(resources.blobs.get_bytes(part)) for part in done.parts)
    return done, [json.loads(line) for line in text.splitlines()]


def test_a_users_export_has_rows_blobs_journal_ledger_and_images(resources: Resources, stage: Stage) -> None:
    done, lines = export_subject(resources, "user", USER)
    text = json.dumps(lines)
    rows = [line["row"] for line in lines if "row" in line]
    assert done.counts == {"lines": len(lines)}
    assert [secret for secret in SECRETS_OF_ADA if secret not in text] == []
    assert NAME in text
    assert {line["table"] for line in lines if "table" in line} == {
        "conversations",
        "bridges",
        "usage",
        "settings",
        "content",
    }
    assert {row["sk"][:2] for row in rows} >= {"me", "m#", "tu", "e#", "p#", "j#", "r0", "en"}
    own_counts = user_limits_partition("bakery", USER)
    counted = [row["sk"].partition("#")[0] for row in rows if row["pk"] == own_counts]
    assert counted == ["counts", "month", "readers", "use"]
    exported = {line["blob"] for line in lines if "blob" in line}
    stored = {key.split()[0] for key in list_objects(resources) if not key.startswith("exports/")}
    mine = {row["id"] for row in rows if row["sk"] == "meta"}
    assert exported
    assert {key for key in stored if key.startswith("conversations/") and key.split("/")[2] in mine} <= exported


def test_every_row_that_names_a_user_or_holds_words_of_theirs_is_in_the_export(
    resources: Resources, stage: Stage
) -> None:
    """Except rollups, which are computed from the ledger, and the job itself."""
    count_ledger(resources)
    stored = list_rows(resources)
    _, lines = export_subject(resources, "user", USER)
    exported = {(line["row"]["pk"], line["row"]["sk"]) for line in lines if "row" in line}
    about_user = [row for row in stored if any(text in read_row(row) for text in (USER, NAME, *SECRETS_OF_ADA))]
    keys = [(row["pk"], row["sk"]) for row in about_user if "#rollup#" not in row["pk"]]
    assert len(keys) > 20
    assert [key for key in keys if key not in exported] == []


def test_the_export_of_a_session_has_the_chats_that_wait_in_it(resources: Resources, stage: Stage) -> None:
    conversations = [row for row in list_rows(resources, "conversations") if row["sk"] == "meta"]
    session = next(row["id"] for row in conversations if row["scope"] == "planner")
    naming = {row["pk"] for row in list_rows(resources) if session in read_row(row)}
    assert any("plan-chats" in pk for pk in naming)
    _, lines = export_subject(resources, "conversation", session)
    assert naming <= {line["row"]["pk"] for line in lines if "row" in line}


def test_an_export_names_no_other_user_of_a_setting(resources: Resources, stage: Stage) -> None:
    limits = BudgetLimits(daily_usd=Decimal(1))
    set_budgets(resources, ADA, Budgets(tenant=limits, users={USER: limits, BEN.user: limits}))
    _, lines = export_subject(resources, "user", USER)
    budgets = [line["row"] for line in lines if line.get("row", {}).get("sk") == "budgets"]
    assert [list(row["users"]) for row in budgets if "users" in row] == [[USER]]
    assert BEN.user not in json.dumps(lines)


def test_the_export_of_who_has_decided_about_a_submission_holds_nothing_of_its_visitor(
    resources: Resources, stage: Stage
) -> None:
    def find_submission(kind: str, subject_id: str) -> list[dict[str, Any]]:
        _, lines = export_subject(resources, kind, subject_id)
        rows = [line["row"] for line in lines if "row" in line and line["row"]["sk"].startswith("f#")]
        return [json.loads(row["data"]) for row in rows]

    assert [{*one} & {"data", "sender", "status"} for one in find_submission("user", USER)] == [{"status"}]
    assert [one["data"] for one in find_submission("tenant", "bakery")] == [{"name": "Eve"}]


def test_an_export_holds_nothing_of_another_user(resources: Resources, stage: Stage) -> None:
    _, lines = export_subject(resources, "user", USER)
    assert not [text for text in (BEN.user, BEN.label, "What Ben asked") if text in json.dumps(lines)]


def test_one_conversation_is_exported(resources: Resources, stage: Stage) -> None:
    titled = next(row for row in list_rows(resources, "conversations") if row.get("title") == "title-of-ada")
    _, lines = export_subject(resources, "conversation", titled["id"])
    assert {line["row"]["id"] for line in lines if line.get("row", {}).get("sk") == "meta"} == {titled["id"]}


def test_a_tenants_export_has_everything_but_secrets(resources: Resources, stage: Stage) -> None:
    token = stage.load_pause().callback_token
    _, lines = export_subject(resources, "tenant", "bakery")
    text = json.dumps(lines)
    assert all(secret in text for secret in (*SECRETS_OF_ADA, "What Ben asked", "bakery-cms"))
    assert token
    assert f'"{token}"' not in text.replace('\\"', '"')
    names = {name for line in lines for name in line.get("row", {})}
    assert not names & {"sealed_key", "secrets", "sealed", "token"}


def test_a_large_export_has_several_parts(resources: Resources, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MAX_PART_BYTES", 50_000)
    done, _ = export_subject(resources, "user", USER)
    assert len(done.parts) > 2


@pytest.mark.parametrize("interval", sample_for_quick_suite([3600, 300], every=2))
def test_an_export_that_never_has_time_is_tried_less_and_less_until_an_operator_runs_it(
    resources: Resources, stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch, interval: int
) -> None:
    """The schedule runs jobs every five minutes. Every hour takes less time here."""
    monkeypatch.setattr(export, "MAX_PART_BYTES", 50_000)
    job = create_privacy_job(resources, "export", DataSubject(kind="user", tenant="bakery", id=USER))
    runs = 0
    for _ in range(WEEK_SECONDS // interval):
        answers = iter([True])
        runs += run_open_jobs(resources, lambda answers=answers: next(answers, False))
        clock.advance(interval)
    assert runs < 20
    assert run_open_jobs(resources, includes_postponed_exports=True) == 1
    assert get_privacy_job(resources, "bakery", job.id, "export").state == "done"
    assert run_open_jobs(resources, includes_postponed_exports=True) == 0
