"""Ends of turns as they are told: the row in the ledger, lines of the audit log, and the name of the user."""

from typing import Any

import pytest

from fermata.aws import observability
from fermata.domain.errors import ProviderError
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.user_labels import load_user_labels, store_user_label
from tests.faults import raise_connection_error
from tests.late_writes import WriteRecorder
from tests.resources import TestClock
from tests.unit.turns.conftest import MakeStage, clock, shared_resources, stage, staged
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, tool_call_block
from tests.unit.usage.ledger_factories import count_ledger_rows
from tests.unit.usage.stored_ledger import read_ledger, read_turn_end_row

__all__ = ["clock", "shared_resources", "stage", "staged"]

INSERT = tool_call_block("insertHtml", parentId="p", html="<p></p>")


def test_the_ledger_has_a_row_that_says_how_a_turn_ended(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    row = read_turn_end_row(stage)
    assert (row["how"], row["billable"], row["rounds"], row["turn"]) == ("done", True, 1, stage.turn.id)


def test_a_turn_that_ends_in_a_provider_error_is_not_billable(stage: Stage) -> None:
    """Its usage stays in the ledger and in the costs."""
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    stage.start_turn()
    stage.script_replies(reply_with_calls(INSERT), [make_provider_error("provider_request", retryable=False)])
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert (read_turn_end_row(stage)["code"], read_turn_end_row(stage)["billable"]) == ("provider_request", False)
    count_ledger_rows(stage.resources, read_ledger(stage), stage.caller.tenant)
    totals = audit_usage(stage.resources, stage.caller.tenant, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.000105, 0)


def test_a_turn_whose_browser_does_not_answer_is_billable(stage: Stage, clock: TestClock) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(INSERT))
    stage.run_workflow()
    clock.advance(120)
    stage.run_workflow()
    assert (read_turn_end_row(stage)["code"], read_turn_end_row(stage)["billable"]) == ("no_answer", True)


def record_audit_events(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return a list to which all audit events are added from now on."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(
        observability, "log_audit_event", lambda event, **fields: lines.append({"event": event, **fields})
    )
    return lines


@pytest.mark.parametrize(
    ("action", "event", "how"),
    [
        ("done", "ai.chat.completed", "done"),
        ("cancel", "ai.chat.completed", "cancelled"),
        ("fail", "ai.chat.failed", "error"),
    ],
)
def test_the_audit_log_says_when_a_turn_starts_and_how_it_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, action: str, event: str, how: str
) -> None:
    lines = record_audit_events(monkeypatch)
    turn = stage.start_turn("A secret plan")
    if action == "cancel":
        stage.cancel_turn()
    else:
        stage.script_replies("Hello." if action == "done" else [make_provider_error(retryable=False)])
        stage.run_workflow()
    started, ended = lines
    assert (started["event"], ended["event"], ended["how"]) == ("ai.chat.started", event, how)
    assert {started["turn"], ended["turn"]} == {turn.id}
    assert {started["tenant"], ended["tenant"]} == {"bakery"}
    assert "secret plan" not in str(lines)


def test_the_last_audit_line_of_a_turn_says_what_it_used_and_by_which_code_it_failed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = record_audit_events(monkeypatch)
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    stage.start_turn()
    error = ProviderError("provider_request", "No. " * 200, retryable=False)
    stage.script_replies(reply_with_calls(INSERT), [error])
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    names = ("scope", "provider", "model", "prompt", "completion", "cost", "code")
    assert {name: lines[-1][name] for name in names} == {
        "scope": "site",
        "provider": "anthropic",
        "model": stage.turn.model,
        "prompt": 10,
        "completion": 5,
        "cost": "0.000105",
        "code": "provider_request",
    }
    assert "No. " not in str(lines[-1])  # a provider's words may quote what the user wrote


def test_the_audit_shows_a_user_by_the_name_in_the_token(staged: MakeStage) -> None:
    stage = staged()
    stage.caller = stage.caller.model_copy(update={"label": "Ada Lovelace"})
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    count_ledger_rows(stage.resources, read_ledger(stage), stage.caller.tenant)
    assert load_user_labels(stage.resources, stage.caller.tenant) == {"ada": "Ada Lovelace"}
    assert audit_usage(stage.resources, stage.caller.tenant)["byUser"][0]["userLabel"] == "Ada Lovelace"


def test_a_name_that_cannot_be_stored_does_not_fail_the_turn_that_has_started(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.caller = stage.caller.model_copy(update={"label": "Ada Lovelace"})
    stage.faults.interrupt("dynamodb.PutItem", raise_connection_error, contains="Ada Lovelace")
    assert stage.start_turn().id
    assert stage.faults.is_spent
    assert "user_label.not_stored" in [record.message for record in caplog.records]


def test_an_earlier_name_of_a_user_that_is_stored_again_later_does_not_replace_the_latest(
    stage: Stage, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = WriteRecorder(stage.resources, monkeypatch)
    for name in ("Ada Byron", "Ada Lovelace"):
        store_user_label(stage.resources, stage.caller.model_copy(update={"label": name}))
        clock.advance(1)
    recorder.land_again()
    assert load_user_labels(stage.resources, stage.caller.tenant) == {"ada": "Ada Lovelace"}
