"""Announced work is not begun if the turn has ended before the announcement is known to be stored."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_server_tool
from tests.unit.turns.stage import Stage, make_provider_error, reply_with_calls, tool_call_block

CancelBehind = Callable[[str], None]


@pytest.fixture
def cancel_behind(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> CancelBehind:
    """Lets a turn be cancelled behind an event, whose writer hears a second later that it is stored."""
    tables = stage.resources.tables
    write = tables.write_items

    def cancel_behind(event_type: str) -> None:
        def write_and_answer_late(*writes: Any) -> Any:
            result = write(*writes)
            if any(isinstance(put, Put) and event_type in put.item.get("data", "") for put in writes):
                monkeypatch.setattr(tables, "write_items", write)
                stage.cancel_turn()
                stage.pass_time(1)
            return result

        monkeypatch.setattr(tables, "write_items", write_and_answer_late)

    return cancel_behind


def advance_cancelled_turn(stage: Stage) -> int:
    """Advance a turn that is cancelled meanwhile. Return how many requests it has sent."""
    stage.advance_turn()
    assert stage.event_types()[-1] == "cancelled"
    sent = len(stage.driver.requests)
    invariants.check_invariants(stage)
    return sent


def test_the_first_round_is_not_asked(stage: Stage, cancel_behind: CancelBehind) -> None:
    stage.start_turn()
    cancel_behind("roundStarted")
    assert advance_cancelled_turn(stage) == 0


def test_a_round_that_begins_with_the_commit_before_it_is_not_asked(stage: Stage, cancel_behind: CancelBehind) -> None:
    stage.add_tools(make_server_tool("peek", lambda: None, idempotent=True, instant=True))
    stage.start_turn()
    stage.script_replies([lambda: cancel_behind("roundStarted"), *reply_with_calls(tool_call_block("peek"))])
    assert advance_cancelled_turn(stage) == 1


def test_a_request_that_failed_is_not_repeated(stage: Stage, cancel_behind: CancelBehind) -> None:
    stage.start_turn()
    stage.script_replies([lambda: cancel_behind("requestStarted"), make_provider_error()])
    assert advance_cancelled_turn(stage) == 1


def test_a_request_with_a_budget_hold_is_not_sent(stage: Stage, cancel_behind: CancelBehind) -> None:
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(1000))))
    stage.add_tools(make_server_tool("peek", lambda: None, idempotent=True, instant=True))
    stage.start_turn()
    stage.script_replies([lambda: cancel_behind("requestStarted"), *reply_with_calls(tool_call_block("peek"))])
    assert advance_cancelled_turn(stage) == 1


def test_a_tool_with_side_effects_is_not_run(stage: Stage, cancel_behind: CancelBehind) -> None:
    runs: list[str] = []
    stage.add_tools(make_server_tool("bake", lambda: runs.append("ran")))
    stage.start_turn()
    stage.script_replies([lambda: cancel_behind("toolStarted"), *reply_with_calls(tool_call_block("bake"))])
    assert advance_cancelled_turn(stage) == 1
    assert not runs


def test_an_announcement_that_is_stored_in_time_costs_no_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    monkeypatch.setattr("fermata.turns.turn_log.TurnLog.read_new_entries", lambda _log: pytest.fail("it was read"))
    stage.advance_turn()
    assert stage.event_types()[-1] == "done"


def test_a_look_at_the_log_that_is_answered_late_is_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start_turn()
    tables = stage.resources.tables
    write, read = tables.write_items, tables.get_item

    def write_slowly(*writes: Any) -> Any:
        monkeypatch.setattr(tables, "write_items", write)
        stage.pass_time(1)
        result = write(*writes)
        monkeypatch.setattr(tables, "get_item", look_and_answer_late)
        return result

    def look_and_answer_late(table: str, pk: str, sk: str) -> Any:
        item = read(table, pk, sk)
        if sk.startswith("e#"):
            monkeypatch.setattr(tables, "get_item", read)
            stage.cancel_turn()
            stage.pass_time(1)
        return item

    monkeypatch.setattr(tables, "write_items", write_slowly)
    assert advance_cancelled_turn(stage) == 0
