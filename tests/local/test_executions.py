"""Test that starting, stopping and ending executions behave as on AWS."""

import json
import uuid

import pytest
from botocore.exceptions import ClientError

from local.aws_clients import get_client
from tests.local.emulator_lab import EmulatorLab
from tests.local.test_callback_tasks import END, refusal
from tests.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def ended_executions_reach_a_function(lab: EmulatorLab) -> None:
    events = get_client("events", lab.endpoint)
    pattern = {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"]},
    }
    events.put_rule(Name="ended", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="ended", Targets=[{"Id": "lab", "Arn": lab.function}])


def test_starting_twice_while_it_runs_is_one_execution(lab: EmulatorLab) -> None:
    machine, name = lab.make_callback_machine(), uuid.uuid4().hex
    given = {"stateMachineArn": machine, "name": name, "input": json.dumps({"lab": name, "script": {}})}
    first, second = lab.states.start_execution(**given), lab.states.start_execution(**given)
    assert first["executionArn"] == second["executionArn"]
    assert len(lab.wait_for_notes(name, "return")) == 1
    lab.states.stop_execution(executionArn=first["executionArn"])


def test_a_running_name_with_another_input_is_refused(lab: EmulatorLab) -> None:
    machine, name = lab.make_callback_machine(), uuid.uuid4().hex
    started = lab.states.start_execution(
        stateMachineArn=machine, name=name, input=json.dumps({"lab": name, "script": {}})
    )
    other = {"stateMachineArn": machine, "name": name, "input": "{}"}
    assert refusal(lab.states.start_execution, **other) == "ExecutionAlreadyExists"
    lab.states.stop_execution(executionArn=started["executionArn"])


def test_the_name_of_an_ended_execution_is_refused(lab: EmulatorLab) -> None:
    machine, name = lab.make_callback_machine(), uuid.uuid4().hex
    script = {"lab": name, "script": {"0.0": [["success", END]]}}
    given = {"stateMachineArn": machine, "name": name, "input": json.dumps(script)}
    lab.wait_for_end(lab.states.start_execution(**given)["executionArn"])
    assert refusal(lab.states.start_execution, **given) == "ExecutionAlreadyExists"


def test_the_first_state_is_entered_at_once(lab: EmulatorLab) -> None:
    """On a busy machine not each of them is, and executions are started until one was."""
    machine = lab.make_machine({"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}})

    def is_entered_at_once() -> bool:
        execution = lab.start_execution(machine)
        lab.wait_for_end(execution)
        gap = lab.shortest_gap([execution], "ExecutionStarted", "SucceedStateEntered")
        return gap < 0.15  # which is how long stock waits

    wait_until(is_entered_at_once, "a first state is entered at once")


def test_a_stopped_execution_stays_aborted_and_its_token_is_dead(lab: EmulatorLab) -> None:
    execution = lab.start_execution(
        lab.make_callback_machine(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}])
    )
    [note] = lab.wait_for_notes(execution, "start")
    lab.states.stop_execution(executionArn=execution, error="Cancelled", cause="by its owner")
    assert refusal(lab.states.send_task_success, taskToken=note.token, output="{}") == "TaskTimedOut"
    lab.wait_for_notes(execution, "eventbridge ABORTED")
    described = lab.states.describe_execution(executionArn=execution)
    assert (described["status"], described["error"], described["cause"]) == ("ABORTED", "Cancelled", "by its owner")


def test_a_failed_execution_is_announced_and_can_still_be_described(lab: EmulatorLab) -> None:
    execution = lab.start_execution(lab.make_callback_machine(), {"0.0": [["raise", "KeyError"]]})
    lab.wait_for_notes(execution, "eventbridge FAILED")
    described = lab.states.describe_execution(executionArn=execution)
    assert (described["status"], described["error"]) == ("FAILED", "KeyError")
    assert json.loads(described["input"])["lab"] == described["name"]


def test_the_time_of_the_machine_itself_ends_an_execution(lab: EmulatorLab) -> None:
    wait = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
        "Arguments": {"FunctionName": lab.function, "Payload": {"token": "{% $states.context.Task.Token %}"}},
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}],
        "Next": "Done",
    }
    states = {"Wait": wait, "Done": {"Type": "Succeed"}}
    execution = lab.start_execution(lab.make_machine({"StartAt": "Wait", "TimeoutSeconds": 1, "States": states}))
    assert lab.wait_for_end(execution)["status"] == "TIMED_OUT"
    lab.wait_for_notes(execution, "eventbridge TIMED_OUT")


def test_what_no_state_may_catch_is_not_caught(lab: EmulatorLab) -> None:
    machine = lab.make_callback_machine(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}])
    assert lab.run_execution(machine, {"0.0": [["failure", "States.Runtime"]]})["status"] == "FAILED"
    assert lab.run_execution(machine, {"0.0": [["failure", "Anything"]]})["status"] == "SUCCEEDED"


def test_an_execution_does_not_exist_before_it_is_started(lab: EmulatorLab) -> None:
    unknown = lab.make_callback_machine().replace(":stateMachine:", ":execution:") + ":nobody"
    with pytest.raises(ClientError, match="ExecutionDoesNotExist"):
        lab.states.describe_execution(executionArn=unknown)


def test_the_history_counts_the_states_entered(lab: EmulatorLab) -> None:
    execution = lab.start_execution(lab.make_callback_machine(), {"0.0": [["success", END]]})
    lab.wait_for_end(execution)
    entered = [event["type"] for event in lab.get_history(execution) if event["type"].endswith("StateEntered")]
    assert entered == ["TaskStateEntered", "ChoiceStateEntered", "SucceedStateEntered"]


def test_an_update_of_the_machine_leaves_running_executions_as_they_are(lab: EmulatorLab) -> None:
    machine = lab.make_callback_machine()
    execution = lab.start_execution(machine)
    [note] = lab.wait_for_notes(execution, "start")
    failing = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "New"}}}
    lab.states.update_state_machine(stateMachineArn=machine, definition=json.dumps(failing))
    lab.states.send_task_success(taskToken=note.token, output=json.dumps(END))
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"
    assert lab.wait_for_end(lab.start_execution(machine))["error"] == "New"


def test_many_executions_wait_at_once(lab: EmulatorLab) -> None:
    machine = lab.make_callback_machine()
    executions = [lab.start_execution(machine) for _ in range(40)]
    for execution in executions:
        [note] = lab.wait_for_notes(execution, "start")
        lab.states.send_task_success(taskToken=note.token, output=json.dumps(END))
    wait_until(
        lambda: all(lab.wait_for_end(execution)["status"] == "SUCCEEDED" for execution in executions), "all succeed"
    )


def test_a_schedule_calls_its_function_every_minute(lab: EmulatorLab) -> None:
    events = get_client("events", lab.endpoint)
    events.put_rule(Name="sweep", ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule="sweep", Targets=[{"Id": "lab", "Arn": lab.function}])
    lab.wait_for_notes("schedule", "schedule", times=2)
    events.disable_rule(Name="sweep")
