"""Recovery (design §4): a turn whose execution is gone goes on in the next one, or ends with an error."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.domain.errors import Conflict
from fermata.domain.events import ErrorEvent, RoundStartedEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import OK, Stage
from tests.unit.turns.state_machine import StateMachine

GONE = ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "no"}}, "StartExecution")
RESTARTED = ("FAILED", "States.ServiceRestart")


def set_state(stage: Stage, status: str, error: str = "", n: int = 1) -> None:
    stage.workflow.states[stage.turn.id, n] = (status, error)


def test_a_start_that_failed_is_made_up_for_by_the_sweep(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    stage.start_turn()
    assert not stage.workflow.started
    assert recover_open_turns(stage.resources) == 0, "a turn is given ten seconds to start by itself"
    stage.pass_time(11)
    assert recover_open_turns(stage.resources) == 1
    assert stage.workflow.started == [(stage.turn.id, 1)]
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


def test_a_turn_that_started_less_than_ten_seconds_ago_is_left_alone(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    stage.start_turn()
    stage.recover_turn()
    assert not stage.workflow.started


@pytest.mark.parametrize("status", ["RUNNING", "MISSING", "ABORTED", "FAILED", "TIMED_OUT", "SUCCEEDED", "RESTARTED"])
def test_every_status_of_an_execution_has_its_consequence(stage: Stage, status: str) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    stage.pass_time(11)
    set_state(stage, *(RESTARTED if status == "RESTARTED" else (status, "")))
    stage.recover_turn()
    started = [n for _, n in stage.workflow.started[1:]]
    ends = [event.code for event in stage.terminal_events() if isinstance(event, ErrorEvent)]
    assert (started, ends) == {
        "RUNNING": ([], []),
        "MISSING": ([1], []),
        "ABORTED": ([], ["aborted"]),
        "FAILED": ([], ["broken"]),
        "TIMED_OUT": ([], ["broken"]),
        "SUCCEEDED": ([2], []),
        "RESTARTED": ([2], []),
    }[status]
    if ends:
        invariants.check_invariants(stage)


def test_a_turn_goes_on_in_its_next_execution_and_shows_its_text_once(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    set_state(stage, *RESTARTED)
    stage.recover_turn()
    stage.script_replies("Hello.")
    assert StateMachine(stage, n=2).run() == "Finished"
    assert stage.turn_row()["n"] == 2
    invariants.check_invariants(stage)


def test_only_the_turns_current_execution_is_acted_on(stage: Stage) -> None:
    stage.start_turn()
    set_state(stage, *RESTARTED)
    stage.recover_turn(execution_number=1)
    assert stage.turn_row()["n"] == 2
    stage.recover_turn(execution_number=1)
    stage.recover_turn(execution_number=1, has_execution_failed=True)
    assert stage.turn_row()["n"] == 2
    assert not stage.terminal_events()


def test_two_who_recover_at_once_start_one_execution(stage: Stage) -> None:
    stage.start_turn()
    set_state(stage, *RESTARTED)
    stage.faults.interrupt("dynamodb.UpdateItem", stage.recover_turn)
    stage.recover_turn()
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]
    assert stage.turn_row()["n"] == 2


def test_an_execution_that_was_decided_on_but_not_started_is_started_by_the_next_sweep(stage: Stage) -> None:
    stage.start_turn()
    set_state(stage, *RESTARTED)
    stage.workflow.next_errors.append(GONE)
    with pytest.raises(ClientError):
        stage.recover_turn()
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]


def test_a_turn_is_not_continued_without_end(stage: Stage) -> None:
    stage.start_turn()
    for n in range(1, stage.resources.settings.max_executions + 1):
        set_state(stage, *RESTARTED, n=n)
        stage.recover_turn()
    assert stage.turn_row()["n"] == stage.resources.settings.max_executions
    assert [event.type for event in stage.terminal_events()] == ["error"]
    invariants.check_invariants(stage)


def test_what_failed_for_good_ends_with_an_error_and_frees_the_conversation(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ValueError("a bug")], [TextDelta(text="Hell"), ValueError("a bug")])
    machine = StateMachine(stage)
    assert machine.run() == "Failed"
    assert stage.event_types()[-1] == "error"
    invariants.check_invariants(stage)


def test_a_paused_turn_whose_execution_was_stopped_ends(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    set_state(stage, "ABORTED")
    stage.recover_turn(execution_number=1)
    assert stage.event_types()[-3:] == ["toolResult", "usage", "error"]
    assert machine.invocation.token in stage.workflow.outputs
    invariants.check_invariants(stage)


def test_a_paused_turn_goes_on_in_its_next_execution_and_takes_the_answer_there(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    set_state(stage, *RESTARTED)
    stage.recover_turn()
    machine = StateMachine(stage, n=2)
    assert machine.run() == "Hold", "what is left of the 90 seconds is waited for exactly"
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    assert len(stage.tool_requests()) == 1
    invariants.check_invariants(stage)


def test_an_ended_turn_is_left_alone(stage: Stage) -> None:
    stage.start_turn()
    stage.cancel_turn()
    before = stage.entries()
    set_state(stage, "FAILED")
    stage.recover_turn(has_execution_failed=True)
    assert stage.entries() == before


def test_a_turn_row_without_a_log_is_an_error_and_never_a_fresh_start(stage: Stage) -> None:
    stage.start_turn()
    stage.resources.tables._client.delete_item(
        TableName=stage.resources.settings.bridges_table,
        Key={"pk": {"S": stage.turn.pk}, "sk": {"S": "e#0000000001"}},
    )
    with pytest.raises(RuntimeError, match="no log"):
        stage.advance_turn()
    stage.recover_turn(has_execution_failed=True)
    assert not stage.entries()
    assert not stage.driver.requests


def test_the_sweep_goes_on_after_a_turn_it_cannot_recover(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        stage.new_conversation()
        stage.start_turn()
    stage.pass_time(60)
    asked: list[str] = []

    def state(turn: str, n: int) -> tuple[str, str]:
        asked.append(turn)
        if len(asked) == 2:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")
        return "RUNNING", ""

    monkeypatch.setattr(stage.workflow, "describe_execution", state)
    assert recover_open_turns(stage.resources) == 4
    assert len(set(asked)) == 4
    assert "turn.recovery_failed" in caplog.text


def test_the_sweep_sees_no_ended_turn(stage: Stage) -> None:
    stage.start_turn()
    stage.cancel_turn()
    stage.pass_time(60)
    assert recover_open_turns(stage.resources) == 0


def test_a_wake_up_lost_with_its_answerer_is_sent_again_by_the_sweep(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is stored, its sender died before SendTaskSuccess, and Hold would wait for a day."""
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "resume_execution", dies)
        with pytest.raises(ProcessDied):
            stage.answer_request(OK)
    assert machine.is_waiting
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_the_sweep_wakes_nobody_who_still_waits_or_works(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    stage.pass_time(60)
    sent = list(stage.workflow.sent)
    recover_open_turns(stage.resources)
    assert machine.is_waiting
    assert stage.workflow.sent == sent


def dies(*_given: Any, **_how: Any) -> bool:
    raise ProcessDied


def test_a_silent_turn_is_seen_to_by_the_next_prompt(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    first = stage.start_turn()
    stage.pass_time(11)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    assert stage.workflow.started == [(first.id, 1)]


def test_a_silent_turn_whose_execution_failed_gives_way_to_the_next_prompt(stage: Stage) -> None:
    first = stage.start_turn()
    set_state(stage, "FAILED")
    stage.pass_time(11)
    second = stage.start_turn("And now?")
    assert second.id != first.id
    assert stage.claim() == second.id


def test_a_prompt_is_not_the_victim_of_a_recovery_that_fails(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(_turn: str, _n: int) -> tuple[str, str]:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")

    stage.start_turn()
    monkeypatch.setattr(stage.workflow, "describe_execution", throttled)
    stage.pass_time(11)
    with pytest.raises(Conflict) as refused:
        stage.start_turn("And now?")
    assert refused.value.retry_after


def test_recovery_leaves_a_turn_that_was_never_there_alone(stage: Stage) -> None:
    recover_turn(stage.resources, "bakery", "no-such-turn")
    assert not stage.workflow.started


def test_a_function_that_died_without_a_pause_is_tried_once_more_and_then_the_turn_ends(stage: Stage) -> None:
    """The alarm clock rings because nobody sends heartbeats any more."""
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()], [TextDelta(text="Hell"), ProcessDied()])
    machine = StateMachine(stage)
    for _ in range(2):
        with pytest.raises(ProcessDied):
            stage.advance_turn(machine.invocation)
        machine.time_out()
    assert machine.run() == "Finished"
    assert [event.round for event in stage.events() if isinstance(event, RoundStartedEvent)] == [1, 1]
    assert stage.event_types().count("roundRetracted") == 1
    assert stage.event_types()[-1] == "error"
    invariants.check_invariants(stage)
