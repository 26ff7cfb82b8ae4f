"""A round is taken while the rows are read, from what the hint says. The hint decides nothing (decision 0185)."""

import json
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.domain.model_io import TextDelta
from fermata.turns.next_invocation_hint import InvocationHint, hash_table_name
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.unit.turns import invariants
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    RecordingConnection,
    Stage,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)

READ_ROWS = "dynamodb.BatchGetItem"
MAX_STATE_BYTES = 2_048
SetAct = Callable[[Callable[[], object]], None]


@pytest.fixture
def answered(stage: Stage) -> Stage:
    """A turn whose browser call was answered; the workflow has the hint and starts the next invocation."""
    stage.start_turn("Hello")
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n")), "Done.")
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    return stage


def newest_hint(stage: Stage) -> dict[str, Any]:
    *_, output = stage.workflow.outputs.values()
    return dict(output["hint"])


def count_requests(stage: Stage) -> int:
    return len(stage.driver.requests)


def outcomes(stage: Stage) -> list[str]:
    return [row["outcome"] for row in stage.ledger_rows() if "outcome" in row]


@pytest.fixture
def act_when_taken(answered: Stage, monkeypatch: pytest.MonkeyPatch) -> SetAct:
    """Sets what happens right before the rows are read, with the round taken in the other thread."""
    is_taken = threading.Event()
    write, read = answered.resources.tables.write_items, answered.resources.tables.batch_get_items

    def write_and_tell(*writes: Any) -> Any:
        result = write(*writes)
        is_taken.set()
        return result

    def set_act(act: Callable[[], object]) -> None:
        def act_and_read(*arguments: Any) -> Any:
            monkeypatch.setattr(answered.resources.tables, "batch_get_items", read)
            assert is_taken.wait(MAX_THREAD_WAIT_SECONDS), "nothing was written beside the reads"
            act()
            return read(*arguments)

        monkeypatch.setattr(answered.resources.tables, "batch_get_items", act_and_read)

    monkeypatch.setattr(answered.resources.tables, "write_items", write_and_tell)
    return set_act


def test_the_round_is_taken_while_the_rows_are_read(answered: Stage, act_when_taken: SetAct) -> None:
    act_when_taken(lambda: None)
    assert answered.run_workflow() == "finished"
    assert answered.event_types().count("roundStarted") == 2
    invariants.check_invariants(answered)


def test_a_turn_that_has_ended_meanwhile_is_not_asked(answered: Stage) -> None:
    answered.cancel_turn()
    answered.advance_turn(hint=newest_hint(answered))
    assert count_requests(answered) == 1
    assert answered.event_types()[-1] == "cancelled"
    invariants.check_invariants(answered)


def test_the_same_hint_twice_asks_once(answered: Stage) -> None:
    hint = newest_hint(answered)
    answered.advance_turn(hint=hint)
    answered.advance_turn(hint=hint)
    assert count_requests(answered) == 2
    invariants.check_invariants(answered)


def test_a_turn_that_ends_while_the_rows_are_read_slowly_is_not_asked(answered: Stage, act_when_taken: SetAct) -> None:
    def cancel_late() -> None:
        answered.cancel_turn()
        answered.pass_time(1)

    act_when_taken(cancel_late)
    answered.advance_turn(hint=newest_hint(answered))
    assert count_requests(answered) == 1
    assert answered.event_types()[-1] == "cancelled"


def test_a_turn_that_ends_before_its_start_is_known_to_be_stored_is_not_asked(
    answered: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = answered.resources.tables.write_items

    def write_and_answer_late(*writes: Any) -> Any:
        monkeypatch.setattr(answered.resources.tables, "write_items", write)
        result = write(*writes)
        answered.cancel_turn()
        answered.pass_time(1)
        return result

    monkeypatch.setattr(answered.resources.tables, "write_items", write_and_answer_late)
    answered.advance_turn(hint=newest_hint(answered))
    assert count_requests(answered) == 1
    assert answered.event_types()[-2:] == ["usage", "cancelled"]


def test_a_start_that_is_stored_though_nobody_was_told_is_superseded_as_any_other(answered: Stage) -> None:
    newer_calls = reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="Newer.")

    def take_over() -> None:
        answered.script_replies(newer_calls)
        answered.advance_turn(newer, RecordingConnection())

    older, newer = answered.make_invocation(hint=newest_hint(answered)), answered.make_invocation()
    answered.driver.scripts.clear()
    answered.script_replies([TextDelta(text="Ol"), take_over, *reply_with_text("der.", after="Ol")])
    answered.faults.lose_response("dynamodb.PutItem", contains="roundStarted")
    answered.faults.fail_call("dynamodb.GetItem", "AccessDeniedException", contains="e#")
    answered.advance_turn(older)
    assert answered.faults.is_spent
    assert answered.streamed_text() == "OlNewer."
    assert answered.event_types()[-1] == "toolRequest"


def test_a_start_that_was_withdrawn_is_no_attempt(answered: Stage) -> None:
    answered.driver.scripts.clear()
    answered.faults.fail_call(READ_ROWS, "AccessDeniedException")
    with pytest.raises(ClientError):
        answered.advance_turn(hint=newest_hint(answered))
    answered.script_replies([TextDelta(text="Do"), ValueError("a bug")], "Done.")
    with pytest.raises(ValueError, match="a bug"):
        answered.advance_turn(hint=newest_hint(answered), retry=1)
    answered.advance_turn()
    assert answered.event_types()[-1] == "done", "its function has died only once"
    assert [request.name.split(".")[1:] for request in answered.driver.requests] == [["1", "1"], ["2", "1"], ["2", "2"]]
    invariants.check_invariants(answered)


def test_an_invocation_of_an_earlier_execution_leaves_no_row_of_a_request(answered: Stage) -> None:
    table = answered.resources.settings.bridges_table
    answered.resources.tables.write_items(Update(table, answered.turn.pk, "turn", "SET n = :n", {":n": 2}))
    answered.advance_turn(hint=newest_hint(answered))
    assert count_requests(answered) == 1
    answered.advance_turn(n=2)
    assert count_requests(answered) == 2
    assert outcomes(answered) == ["ok", "ok"]


def test_rows_that_cannot_be_read_leave_no_row_of_a_request(answered: Stage) -> None:
    answered.faults.fail_call(READ_ROWS, "AccessDeniedException")
    with pytest.raises(ClientError):
        answered.advance_turn(hint=newest_hint(answered))
    assert count_requests(answered) == 1
    answered.advance_turn(hint=newest_hint(answered), retry=1)
    assert answered.show_turn()["status"] == "done"
    assert outcomes(answered) == ["ok", "ok"]


def test_an_invocation_that_is_superseded_while_it_fails_raises_nothing(
    answered: Stage, act_when_taken: SetAct
) -> None:
    invocation = answered.make_invocation(hint=newest_hint(answered))
    twin = answered.make_invocation()

    def run_twin_and_fail() -> None:
        answered.advance_turn(twin)
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "BatchGetItem")

    act_when_taken(run_twin_and_fail)
    answered.advance_turn(invocation)
    assert answered.show_turn()["status"] == "done"


def test_a_hint_of_another_log_stops_the_turn(answered: Stage) -> None:
    hint = newest_hint(answered)
    with pytest.raises(RuntimeError, match="not of its log"):
        answered.advance_turn(hint=hint | {"entry": hint["entry"] + 50, "next": hint["next"] + 50})
    assert count_requests(answered) == 1


def test_an_execution_that_remembers_more_than_a_restored_log_has_goes_on_behind_its_end(answered: Stage) -> None:
    """Restored tables have other names. Nothing stands at the number of the hint, so that an append would succeed."""
    hint = newest_hint(answered)
    longer = {"entry": hint["entry"] + 50, "next": hint["next"] + 50, "table": hash_table_name("lost-table")}
    answered.advance_turn(hint=hint | longer)
    assert answered.show_turn()["status"] == "done"
    invariants.check_invariants(answered)


def test_the_start_that_could_not_be_written_is_written_after_the_reads(answered: Stage) -> None:
    answered.faults.fail_call("dynamodb.PutItem", "AccessDeniedException", contains="roundStarted")
    answered.advance_turn(hint=newest_hint(answered))
    assert answered.show_turn()["status"] == "done"
    invariants.check_invariants(answered)


def test_a_start_whose_response_is_lost_is_recognized(answered: Stage) -> None:
    answered.faults.lose_response("dynamodb.PutItem", contains="roundStarted")
    answered.advance_turn(hint=newest_hint(answered))
    assert answered.show_turn()["status"] == "done"
    assert outcomes(answered) == ["ok", "ok"]


def test_a_round_with_a_budget_waits_for_its_hold(stage: Stage) -> None:
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(1000))))
    stage.start_turn("Hello")
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n")), "Done.")
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    assert newest_hint(stage)["budgeted"] is True
    assert stage.run_workflow() == "finished"
    later = stage.event_types()[stage.event_types().index("toolResult") :]
    assert later[:3] == ["toolResult", "roundStarted", "requestStarted"]
    invariants.check_invariants(stage)


def test_a_pause_of_an_earlier_version_gives_no_state_to_start_from(answered: Stage) -> None:
    pause = answered.load_pause().model_copy(update={"has_budget": None})
    assert InvocationHint.from_json(pause.build_invocation_hint("")).state is None


def test_a_hint_comes_back_from_the_workflow_as_it_was() -> None:
    state = TurnState(round=3, phase="ready", cost="0.5")
    hint = InvocationHint(3, 7, 9, "c1", state, 2_000_000_000, has_budget=True, table="0a1b2c3d")
    assert InvocationHint.from_json(json.loads(json.dumps(hint.to_json()))) == hint
    assert InvocationHint.from_json(None) == InvocationHint()


def test_a_hint_is_far_below_the_limit_of_the_workflow(answered: Stage) -> None:
    assert len(json.dumps(newest_hint(answered))) < MAX_STATE_BYTES / 2
