"""Recovery: a turn whose execution is gone continues in the next one, or ends with an error."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.domain.errors import Conflict
from fermata.domain.events import ErrorEvent, RoundStartedEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.end.listed_turn import delist_ended_turn
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import TABLES_RESTORED_NAME, recover_turn
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import make_patient_tool, run_until_waiting
from tests.unit.turns.stage import OK, Stage
from tests.unit.turns.state_machine import StateMachine

GONE = ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "no"}}, "StartExecution")
RESTARTED = ("FAILED", "States.ServiceRestart")
"""How the local cloud reports an execution that did not survive its restart."""
REPORTED = ("FAILED", "TurnFailed")
DIED = ["States.Runtime", "States.DataLimitExceeded", "Lambda.TooManyRequestsException", "States.ServiceRestart"]
"""Errors of an execution that ended before its workflow could do anything about it."""


def set_execution_status(stage: Stage, status: str, error: str = "", n: int = 1) -> None:
    stage.workflow.states[stage.turn.id, n] = (status, error)


def test_a_failed_start_is_repeated_by_recovery(stage: Stage) -> None:
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


def test_a_turn_younger_than_ten_seconds_is_left_alone(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    stage.start_turn()
    stage.recover_turn()
    assert not stage.workflow.started


def test_the_first_sweep_of_a_service_goes_on_at_once_with_a_turn_that_has_just_begun(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    stage.start_turn()
    assert recover_open_turns(stage.resources, start_grace_seconds=0) == 1
    assert stage.workflow.started == [(stage.turn.id, 1)]
    stage.script_replies("Hello.")
    stage.run_workflow()
    invariants.check_invariants(stage)


@pytest.mark.parametrize("status", ["RUNNING", "MISSING", "ABORTED", "FAILED", "TIMED_OUT", "SUCCEEDED", "RESTARTED"])
def test_each_execution_status_is_handled(stage: Stage, status: str) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    stage.pass_time(11)
    set_execution_status(stage, *(RESTARTED if status == "RESTARTED" else (status, "TurnFailed")))
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


def test_a_turn_continues_in_its_next_execution_and_streams_its_text_once(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    set_execution_status(stage, *RESTARTED)
    stage.recover_turn()
    stage.script_replies("Hello.")
    assert StateMachine(stage, n=2).run() == "Finished"
    assert stage.turn_row()["n"] == 2
    invariants.check_invariants(stage)


@pytest.mark.parametrize("error", DIED)
def test_a_turn_continues_when_its_execution_ended_outside_of_its_workflows_own_states(
    stage: Stage, error: str
) -> None:
    run_until_waiting(stage, "deleteNode")
    set_execution_status(stage, "FAILED", error)
    stage.recover_turn(execution_number=1)
    machine = StateMachine(stage, n=2)
    assert machine.run() == "Hold"
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_a_turn_whose_workflow_reported_its_failure_ends_with_words(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    set_execution_status(stage, *REPORTED)
    stage.recover_turn(execution_number=1)
    (end,) = stage.terminal_events()
    assert isinstance(end, ErrorEvent)
    assert "Send your message again" in end.message
    invariants.check_invariants(stage)


def test_only_the_current_execution_is_recovered(stage: Stage) -> None:
    stage.start_turn()
    set_execution_status(stage, *RESTARTED)
    stage.recover_turn(execution_number=1)
    assert stage.turn_row()["n"] == 2
    stage.recover_turn(execution_number=1)
    stage.recover_turn(execution_number=1, has_execution_failed=True)
    assert stage.turn_row()["n"] == 2
    assert not stage.terminal_events()


def test_two_simultaneous_recoveries_start_the_same_execution(stage: Stage) -> None:
    stage.start_turn()
    set_execution_status(stage, *RESTARTED)
    stage.faults.interrupt("dynamodb.UpdateItem", stage.recover_turn)
    stage.recover_turn()
    assert set(stage.workflow.started) == {(stage.turn.id, 1), (stage.turn.id, 2)}
    assert stage.turn_row()["n"] == 2


def test_a_numbered_execution_that_was_not_started_is_started_later(stage: Stage) -> None:
    stage.start_turn()
    set_execution_status(stage, *RESTARTED)
    stage.workflow.next_errors.append(GONE)
    with pytest.raises(ClientError):
        stage.recover_turn()
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    assert stage.workflow.started == [(stage.turn.id, 1), (stage.turn.id, 2)]


def test_a_turn_has_a_maximum_of_executions(stage: Stage) -> None:
    stage.start_turn()
    for n in range(1, stage.resources.settings.max_executions + 1):
        set_execution_status(stage, *RESTARTED, n=n)
        stage.recover_turn()
    assert stage.turn_row()["n"] == stage.resources.settings.max_executions
    assert [event.type for event in stage.terminal_events()] == ["error"]
    invariants.check_invariants(stage)


def test_a_failed_execution_ends_the_turn_and_frees_the_conversation(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ValueError("a bug")], [TextDelta(text="Hell"), ValueError("a bug")])
    machine = StateMachine(stage)
    assert machine.run() == "Failed"
    assert stage.event_types()[-1] == "error"
    invariants.check_invariants(stage)


def test_a_paused_turn_whose_execution_was_aborted_ends(stage: Stage) -> None:
    machine = run_until_waiting(stage, "deleteNode")
    set_execution_status(stage, "ABORTED")
    stage.recover_turn(execution_number=1)
    assert stage.event_types()[-3:] == ["toolResult", "usage", "error"]
    assert machine.invocation.token in stage.workflow.outputs
    invariants.check_invariants(stage)


def test_a_paused_turn_whose_tables_were_restored_goes_on_in_the_first_execution_that_has_a_free_number(
    stage: Stage,
) -> None:
    """The restored row has the number of an execution before the one that ran when it was stopped."""
    run_until_waiting(stage, "deleteNode")
    for n in (1, 2):
        set_execution_status(stage, "ABORTED", TABLES_RESTORED_NAME, n)
    stage.recover_turn(execution_number=2)
    assert stage.turn_row()["n"] == 1, "the event of the stopped execution is about another number"
    stage.recover_turn()
    stage.recover_turn()
    assert stage.turn_row()["n"] == 3
    stage.answer_request(OK)
    stage.script_replies("Done.")
    assert StateMachine(stage, n=3).run() == "Finished"
    invariants.check_invariants(stage)


def test_a_paused_turn_accepts_its_answer_in_the_next_execution(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    set_execution_status(stage, *RESTARTED)
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
    set_execution_status(stage, *REPORTED)
    stage.recover_turn(has_execution_failed=True)
    assert stage.entries() == before


def test_a_turn_row_without_a_log_is_logged_and_never_restarted(stage: Stage) -> None:
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


def test_one_failed_recovery_does_not_stop_the_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(4):
        stage.new_conversation()
        stage.start_turn()
    stage.pass_time(60)
    described_turns: list[str] = []

    def state(turn: str, n: int) -> tuple[str, str]:
        described_turns.append(turn)
        if len(described_turns) == 2:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")
        return "RUNNING", ""

    monkeypatch.setattr(stage.workflow, "describe_execution", state)
    assert recover_open_turns(stage.resources) == 4
    assert len(set(described_turns)) == 4
    assert "turn.recovery_failed" in caplog.text


def test_ended_turns_are_not_listed_as_open(stage: Stage) -> None:
    stage.start_turn()
    stage.cancel_turn()
    stage.pass_time(60)
    assert recover_open_turns(stage.resources) == 0


def test_recovery_resumes_a_held_turn_whose_answer_did_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is stored, but its function died before SendTaskSuccess, and Hold would wait for a day."""
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "resume_execution", die)
        with pytest.raises(ProcessDied):
            stage.answer_request(OK)
    assert machine.is_waiting
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    stage.script_replies("Done.")
    assert machine.run() == "Finished"
    invariants.check_invariants(stage)


def test_recovery_resumes_a_held_turn_when_the_time_of_the_next_call_is_over(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hold waits for a day, as the answered call would have. The call behind it has 90 seconds."""
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker", "deleteNode")
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "resume_execution", die)
        with pytest.raises(ProcessDied):
            stage.answer_request(OK)
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    assert machine.is_waiting
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    machine.run()
    assert stage.events()[-1].type == "error"
    invariants.check_invariants(stage)


def start_held_turn(stage: Stage) -> StateMachine:
    stage.add_tools(make_patient_tool())
    return run_until_waiting(stage, "ask_the_baker")


def is_listed(stage: Stage) -> bool:
    return "open" in stage.turn_row()


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_sweep_finishes_the_held_execution_of_a_turn_whose_canceller_died(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_answered: bool
) -> None:
    """The end is stored, and who stored it died before SendTaskSuccess: Hold would wait for a day."""
    machine = start_held_turn(stage)
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "resume_execution", die)
        for act in [lambda: stage.answer_request(OK)] * is_answered + [stage.cancel_turn]:
            with pytest.raises(ProcessDied):
                act()
    assert machine.is_waiting
    assert is_listed(stage)
    recover_open_turns(stage.resources)
    assert machine.is_waiting, "who has just ended a turn may still be resuming its execution"
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    assert machine.run() == "Finished"
    assert recover_open_turns(stage.resources) == 0
    invariants.check_invariants(stage)


def test_a_sweep_that_cannot_finish_an_execution_leaves_it_to_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = start_held_turn(stage)
    with monkeypatch.context() as patch:
        patch.setattr(stage.workflow, "resume_execution", die)
        with pytest.raises(ProcessDied):
            stage.cancel_turn()
    stage.pass_time(60)
    stage.workflow.next_errors.append(GONE)
    recover_open_turns(stage.resources)
    assert machine.is_waiting
    stage.pass_time(60)
    recover_open_turns(stage.resources)
    assert machine.run() == "Finished"
    assert not is_listed(stage)


def test_a_held_turn_is_listed_no_more_once_its_execution_was_told_of_its_end(stage: Stage) -> None:
    machine = start_held_turn(stage)
    stage.cancel_turn()
    assert not is_listed(stage)
    assert machine.run() == "Finished"
    sent = list(stage.workflow.sent)
    stage.recover_turn()
    assert stage.workflow.sent == sent


def test_an_end_that_nobody_has_to_be_told_of_leaves_the_list_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser's call of 90 seconds waits with a heartbeat: the execution looks at the turn by itself."""
    run_until_waiting(stage, "deleteNode")
    monkeypatch.setattr(stage.workflow, "resume_execution", die)
    with pytest.raises(ProcessDied):
        stage.cancel_turn()
    assert not is_listed(stage)


def test_a_late_copy_of_what_takes_a_turn_from_the_list_changes_no_other_row(stage: Stage) -> None:
    stage.start_turn()
    delist_ended_turn(stage.resources, stage.turn)
    assert is_listed(stage), "it runs"
    gone = stage.turn.model_copy(update={"id": "gone"})
    delist_ended_turn(stage.resources, gone)
    assert stage.resources.tables.get_item(stage.resources.settings.bridges_table, gone.pk, "turn") is None


def test_recovery_resumes_no_turn_that_waits_or_works(stage: Stage) -> None:
    stage.add_tools(make_patient_tool())
    machine = run_until_waiting(stage, "ask_the_baker")
    stage.pass_time(60)
    sent = list(stage.workflow.sent)
    recover_open_turns(stage.resources)
    assert machine.is_waiting
    assert stage.workflow.sent == sent


def die(*_given: Any, **_how: Any) -> bool:
    raise ProcessDied


def test_a_silent_turn_is_recovered_by_the_next_prompt(stage: Stage) -> None:
    stage.workflow.next_errors.append(GONE)
    first = stage.start_turn()
    stage.pass_time(11)
    with pytest.raises(Conflict):
        stage.start_turn("And now?")
    assert stage.workflow.started == [(first.id, 1)]


def test_a_silent_turn_with_a_failed_execution_ends_for_the_next_prompt(stage: Stage) -> None:
    first = stage.start_turn()
    set_execution_status(stage, *REPORTED)
    stage.pass_time(11)
    second = stage.start_turn("And now?")
    assert second.id != first.id
    assert stage.claim() == second.id


def test_a_failed_recovery_makes_the_prompt_conflict(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def throttled(_turn: str, _n: int) -> tuple[str, str]:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "DescribeExecution")

    stage.start_turn()
    monkeypatch.setattr(stage.workflow, "describe_execution", throttled)
    stage.pass_time(11)
    with pytest.raises(Conflict) as refused:
        stage.start_turn("And now?")
    assert refused.value.retry_after


def test_recovery_ignores_an_unknown_turn(stage: Stage) -> None:
    recover_turn(stage.resources, "bakery", "no-such-turn")
    assert not stage.workflow.started


def test_a_function_that_dies_twice_without_a_pause_ends_the_turn(stage: Stage) -> None:
    """The task times out because no heartbeats are sent any more."""
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
