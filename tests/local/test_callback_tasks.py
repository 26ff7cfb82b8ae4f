"""Test that Step Functions tasks with a task token behave as on AWS."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.emulator_lab import EmulatorLab, Script
from tests.waiting import wait_until

END = {"next": "end"}
ONCE_MORE = [{"ErrorEquals": ["States.TaskFailed"], "MaxAttempts": 1, "IntervalSeconds": 1}]


def refusal(call: Callable[..., object], **arguments: object) -> str:
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return str(refused.value.response["Error"]["Code"])


def test_the_answer_of_the_token_is_the_tasks_result(lab: EmulatorLab) -> None:
    ended = lab.run_execution(lab.make_callback_machine(), {"0.0": [["success", END | {"answer": 42}]]})
    assert (ended["status"], json.loads(ended["output"])) == ("SUCCEEDED", END | {"answer": 42})


def test_a_failed_function_fails_the_task_under_its_own_name(lab: EmulatorLab) -> None:
    ended = lab.run_execution(lab.make_callback_machine(), {"0.0": [["raise", "KeyError"]]})
    assert (ended["status"], ended["error"]) == ("FAILED", "KeyError")


def test_a_process_that_ends_fails_the_task(lab: EmulatorLab) -> None:
    ended = lab.run_execution(lab.make_callback_machine(), {"0.0": [["exit"]]})
    assert (ended["status"], ended["error"]) == ("FAILED", "Runtime.ExitError")


def test_an_error_after_the_answer_changes_nothing(lab: EmulatorLab) -> None:
    execution = lab.start_execution(lab.make_callback_machine(), {"0.0": [["success", END], ["raise", "KeyError"]]})
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"


def test_a_failure_sent_for_the_token_fails_the_task(lab: EmulatorLab) -> None:
    assert (
        lab.run_execution(lab.make_callback_machine(), {"0.0": [["failure", "Editor.Gone"]]})["error"] == "Editor.Gone"
    )


def test_each_attempt_has_a_token_of_its_own_and_its_number(lab: EmulatorLab) -> None:
    execution = lab.start_execution(
        lab.make_callback_machine(Retry=ONCE_MORE), {"0.0": [["raise", "OSError"]], "0.1": [["success", END]]}
    )
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"
    first, second = lab.wait_for_notes(execution, "start", times=2)
    assert (first.event["retry"], second.event["retry"]) == (0, 1)
    assert first.token != second.token
    assert first.event["entered"] == second.event["entered"]


def test_the_token_of_a_failed_attempt_is_refused(lab: EmulatorLab) -> None:
    slowly = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "IntervalSeconds": 30}]
    execution = lab.start_execution(lab.make_callback_machine(Retry=slowly), {"0.0": [["raise", "OSError"]]})
    [note] = lab.wait_for_notes(execution, "start")
    failed = [event for event in lab.get_history(execution) if event["type"] == "TaskFailed"]
    while not failed:
        failed = [event for event in lab.get_history(execution) if event["type"] == "TaskFailed"]
    assert refusal(lab.states.send_task_success, taskToken=note.token, output="{}") == "TaskTimedOut"
    lab.states.stop_execution(executionArn=execution)


def test_the_answer_moves_on_while_the_function_still_runs(lab: EmulatorLab, tmp_path: Path) -> None:
    again, gate = {"next": "again", "visit": 1}, tmp_path / "gate"
    script: Script = {"0.0": [["success", again], ["until", str(gate)]], "1.0": [["success", END]]}
    execution = lab.start_execution(lab.make_callback_machine(), script)
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"
    lab.wait_for_notes(execution, "return")
    gate.touch()
    assert [note.event["visit"] for note in lab.wait_for_notes(execution, "return", times=2)] == [1, 0]


def test_a_second_answer_is_refused_and_changes_nothing(lab: EmulatorLab) -> None:
    execution = lab.start_execution(lab.make_callback_machine())
    [note] = lab.wait_for_notes(execution, "start")
    lab.states.send_task_success(taskToken=note.token, output=json.dumps(END | {"who": 1}))
    again = {"taskToken": note.token, "output": json.dumps(END | {"who": 2})}
    assert refusal(lab.states.send_task_success, **again) == "TaskTimedOut"
    assert refusal(lab.states.send_task_heartbeat, taskToken=note.token) == "TaskTimedOut"
    assert json.loads(lab.wait_for_end(execution)["output"])["who"] == 1


def test_strings_that_are_no_token_are_refused_as_such(lab: EmulatorLab) -> None:
    assert refusal(lab.states.send_task_success, taskToken="nonsense", output="{}") == "InvalidToken"
    assert refusal(lab.states.send_task_failure, taskToken="nonsense") == "InvalidToken"
    assert refusal(lab.states.send_task_heartbeat, taskToken="nonsense") == "InvalidToken"


def test_an_output_that_is_no_json_is_refused_and_leaves_the_token_open(lab: EmulatorLab) -> None:
    execution = lab.start_execution(lab.make_callback_machine())
    [note] = lab.wait_for_notes(execution, "start")
    assert refusal(lab.states.send_task_success, taskToken=note.token, output="{") == "InvalidOutput"
    lab.states.send_task_success(taskToken=note.token, output=json.dumps(END))
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"


def test_no_heartbeat_in_time_is_a_heartbeat_timeout_though_the_function_runs(lab: EmulatorLab, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    execution = lab.start_execution(lab.make_callback_machine(HeartbeatSeconds=1), {"0.0": [["until", str(gate)]]})
    ended = lab.wait_for_end(execution)
    assert (ended["status"], ended["error"]) == ("FAILED", "States.HeartbeatTimeout")
    assert "return" not in [note.what for note in lab.read_notes(execution)]
    gate.touch()


def test_heartbeats_of_a_running_function_keep_its_task_alive(lab: EmulatorLab) -> None:
    """Without them it would time out. On a busy machine one may come too late, and the next task counts."""
    beats: list[list[Any]] = [["sleep", 0.5], ["heartbeat"]] * 10
    machine = lab.make_callback_machine(HeartbeatSeconds=4)
    lab.run_execution(machine, {"0.0": [["success", END]]})  # a function that starts sends no heartbeat
    script: Script = {"0.0": [*beats, ["success", END]]}
    wait_until(lambda: lab.run_execution(machine, script)["status"] == "SUCCEEDED", "a task is kept alive")


def test_a_heartbeat_timeout_can_be_caught_and_the_state_entered_again(lab: EmulatorLab) -> None:
    catch = [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Wait", "Output": {"visit": 1}}]
    execution = lab.start_execution(
        lab.make_callback_machine(HeartbeatSeconds=1, Catch=catch), {"1.0": [["success", END]]}
    )
    assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"
    first, second, *_ = lab.wait_for_notes(execution, "start", times=2)  # on a busy machine another one was too slow
    assert first.event["entered"] < second.event["entered"]
    assert refusal(lab.states.send_task_success, taskToken=first.token, output="{}") == "TaskTimedOut"


def test_times_may_be_expressions(lab: EmulatorLab) -> None:
    seconds = "{% $states.context.Execution.Input.seconds %}"
    machine = lab.make_callback_machine(TimeoutSeconds=seconds)
    assert lab.wait_for_end(lab.start_execution(machine, seconds=1))["error"] == "States.Timeout"
    machine = lab.make_callback_machine(HeartbeatSeconds=seconds)
    assert lab.wait_for_end(lab.start_execution(machine, seconds=1))["error"] == "States.HeartbeatTimeout"


def test_a_payload_above_the_limit_of_step_functions_fails(lab: EmulatorLab) -> None:
    machine = lab.make_callback_machine(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}])
    execution = lab.start_execution(machine, {"0.0": [["success", END]]}, padding="x" * 261_900)
    assert lab.wait_for_end(execution)["error"] == "States.DataLimitExceeded"
    large = {"taskToken": "AQC", "output": json.dumps("x" * 300_000)}
    assert refusal(lab.states.send_task_success, **large) == "ValidationException"


def test_a_throttled_function_is_retried_under_the_name_aws_gives_it(lab: EmulatorLab) -> None:
    lab.make_function("rare")
    lab.functions.put_function_concurrency(FunctionName="rare", ReservedConcurrentExecutions=0)
    arguments = {"FunctionName": "rare", "Payload": {"token": "{% $states.context.Task.Token %}"}}
    assert (
        lab.run_execution(lab.make_callback_machine(Arguments=arguments), {})["error"]
        == "Lambda.TooManyRequestsException"
    )


def test_a_round_trip_through_a_waiting_state_takes_milliseconds(lab: EmulatorLab) -> None:
    """On a busy machine not each of them does, and executions are started until one has."""
    rounds = 30
    script: Script = {f"{visit}.0": [["success", {"next": "again", "visit": visit + 1}]] for visit in range(rounds)}
    script[f"{rounds}.0"] = [["success", END]]
    lab.run_execution(lab.make_callback_machine(), {"0.0": [["success", END]]})
    machine = lab.make_callback_machine()

    def is_quick() -> bool:
        execution = lab.start_execution(machine, script)
        assert lab.wait_for_end(execution)["status"] == "SUCCEEDED"
        least = lab.shortest_gap([execution], "TaskScheduled", "TaskSucceeded")
        print(f"one waiting state, its function and its answer: {least * 1000:.1f} ms")
        return least < 0.1

    wait_until(is_quick, "a round trip takes milliseconds")
