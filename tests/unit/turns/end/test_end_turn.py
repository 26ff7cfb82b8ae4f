"""The end of a turn: done, error or cancelled, exactly once, with everything that becomes true with it."""

from typing import Any

import pytest

from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound, ServiceUnavailable
from fermata.domain.events import CancelledEvent, DoneEvent, ToolResultEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.end.stop_turn import cancel_turn
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import (
    OK,
    RecordingConnection,
    Stage,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.unit.turns.state_machine import StateMachine

TRANSACT = "dynamodb.TransactWriteItems"


def cancel_before_it_ran(stage: Stage) -> None:
    stage.start_turn()
    stage.cancel_turn()
    stage.run_workflow()


def cancel_before_the_first_text(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([stage.cancel_turn, *reply_with_text("Hello.")])
    stage.run_workflow()


def cancel_in_the_middle_of_text(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("lo.")])
    stage.run_workflow()


def cancel_while_paused(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.cancel_turn()
    assert machine.run() == "Finished"


def cancel_while_held(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker", "deleteNode")
    assert machine.state == "Hold"
    stage.cancel_turn()
    assert machine.run() == "Finished"


def cancel_between_two_calls(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode", "deleteNode")
    stage.answer_request(OK)
    stage.cancel_turn()
    assert machine.run() == "Finished"


def cancel_between_two_rounds(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.answer_request(OK)
    stage.cancel_turn()
    assert machine.run() == "Finished"


def cancel_while_no_function_works(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    machine = StateMachine(stage)
    with pytest.raises(ProcessDied):
        stage.advance_turn(machine.invocation)
    stage.cancel_turn()
    machine.time_out()
    assert machine.run() == "Finished"


@pytest.mark.parametrize(
    "moment",
    [
        cancel_before_it_ran,
        cancel_before_the_first_text,
        cancel_in_the_middle_of_text,
        cancel_while_paused,
        cancel_while_held,
        cancel_between_two_calls,
        cancel_between_two_rounds,
        cancel_while_no_function_works,
    ],
)
def test_a_cancel_ends_the_turn_at_any_moment(stage: Stage, moment: Any) -> None:
    moment(stage)
    assert stage.events()[-1] == CancelledEvent()
    assert stage.turn_row()["state"] == "cancelled"
    assert not stage.driver.scripts or moment is cancel_before_it_ran
    invariants.check_invariants(stage)


def test_text_until_a_cancel_is_stored(stage: Stage) -> None:
    cancel_in_the_middle_of_text(stage)
    assert stage.load_messages()[-1].content == (TextBlock(text="Hel"),)


def test_calls_open_at_the_end_are_closed_on_the_stream(stage: Stage) -> None:
    cancel_between_two_calls(stage)
    results = [(event.ok, event.error) for event in stage.events() if isinstance(event, ToolResultEvent)]
    assert results[0] == (True, None)
    assert results[1] == (False, INTERRUPTED_CALL_ERROR)


def test_a_second_cancel_returns_how_the_turn_ended(stage: Stage) -> None:
    stage.start_turn()
    assert stage.cancel_turn() == "cancelled"
    before = stage.entries()
    assert stage.cancel_turn() == "cancelled"
    assert stage.entries() == before


def test_a_cancel_after_the_end_returns_how_the_turn_ended(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert stage.cancel_turn() == "done"
    stage.start_turn()
    stage.script_replies([make_provider_error(retryable=False)])
    stage.run_workflow()
    assert stage.cancel_turn() == "error"
    invariants.check_invariants(stage)


def test_a_cancel_that_loses_to_the_end_returns_done(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.faults.interrupt(TRANSACT, stage.run_workflow, contains="cancelled")
    assert stage.cancel_turn() == "done"
    assert stage.events()[-1] == DoneEvent()
    invariants.check_invariants(stage)


def test_an_end_that_loses_to_a_cancel_is_not_written(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.faults.interrupt(TRANSACT, stage.cancel_turn, contains="done")
    assert stage.run_workflow() == "finished"
    assert stage.events()[-1] == CancelledEvent()
    assert stage.load_messages()[-1].content == (TextBlock(text="Hello."),), "what the client has seen is kept"
    invariants.check_invariants(stage)


def test_two_simultaneous_cancels_end_the_turn_once(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.faults.interrupt(TRANSACT, stage.cancel_turn, contains="cancelled")
    assert stage.cancel_turn() == "cancelled"
    invariants.check_invariants(stage)


def test_a_simultaneous_cancel_and_answer_agree(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.faults.interrupt(TRANSACT, lambda: stage.answer_request(OK), contains="cancelled")
    assert stage.cancel_turn() == "cancelled"
    assert [event.ok for event in stage.events() if isinstance(event, ToolResultEvent)] == [True]
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_response_after_a_cancel_changes_nothing(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            TextDelta(text="Hel"),
            stage.cancel_turn,
            *reply_with_calls(tool_call_block("deleteNode", nodeId="n"), text="lo."),
        ]
    )
    stage.run_workflow()
    assert "toolCall" not in stage.event_types()
    invariants.check_invariants(stage)


def test_a_repeated_cancel_resumes_the_execution_again(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    stage.workflow.next_errors.append(ServiceUnavailable("The workflow could not be resumed."))
    with pytest.raises(ServiceUnavailable):
        stage.cancel_turn()
    assert stage.events()[-1] == CancelledEvent()
    assert machine.is_waiting
    assert stage.cancel_turn() == "cancelled"
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_only_the_turns_user_or_a_manager_of_turns_may_cancel(stage: Stage) -> None:
    turn = stage.start_turn()

    def of(user: str, tenant: str, *capabilities: str) -> Caller:
        return Caller(tenant=tenant, user=user, capabilities=frozenset(capabilities))

    for stranger in (of("ben", "bakery", "ai.chat"), of("ada", "butcher", "ai.turns.manage")):
        with pytest.raises(NotFound):
            cancel_turn(stage.resources, stranger, turn.id)
    assert cancel_turn(stage.resources, of("ben", "bakery", "ai.turns.manage"), turn.id)["status"] == "cancelled"


def test_cancelling_an_unknown_turn_is_not_found(stage: Stage) -> None:
    for name in ("no-such-turn", "", "x" * 5000):
        with pytest.raises(NotFound):
            cancel_turn(stage.resources, stage.caller, name)


def test_an_end_is_written_once_when_its_response_was_lost(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.faults.lose_response(TRANSACT, contains="done")
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_dies_around_the_end_leaves_one_end(stage: Stage, when: str) -> None:
    stage.start_turn()
    stage.script_replies("Hello.", "Hello.")
    stage.faults.kill_process(TRANSACT, when=when, contains="done")
    assert StateMachine(stage).run() == "Finished"
    assert stage.events()[-1] == DoneEvent()
    invariants.check_invariants(stage)


def test_a_running_request_notices_a_cancel_within_a_second(stage: Stage) -> None:
    """It notices it at its next append. For a silent provider see round/test_browser_call_deadlines.py."""
    stage.start_turn()
    continued: list[str] = []
    stage.script_replies(
        [
            TextDelta(text="1"),
            stage.cancel_turn,
            TextDelta(text="x" * 1000),
            lambda: continued.append("went on"),
            *reply_with_text("2"),
        ]
    )
    stage.advance_turn(connection=RecordingConnection())
    assert continued == []
    invariants.check_invariants(stage)
