"""The simulated Step Functions runs the real machine as AWS documents it: tokens, alarms, retries, catches."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.chaos.memory_aws.step_functions import Execution, MemoryStepFunctions, TaskError
from tests.chaos.scheduler import Scheduler

INPUT = '{"v": 1, "tenant": "t", "turn": "a", "n": 1}'


class Lab:
    """One execution whose functions are written by a test."""

    def __init__(self, act: Callable[["Lab", str, dict[str, Any]], Any]) -> None:
        self.scheduler = Scheduler(1)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._act = act
        self.service = MemoryStepFunctions(self.scheduler, self._invoke, heartbeat_seconds=90)

    def _invoke(self, function: str, payload: dict[str, Any]) -> Any:
        self.calls.append((function, payload))
        return self._act(self, function, payload)

    def run(self) -> Execution:
        self.service.start_execution(name="a-1", input=INPUT)
        execution = self.service.executions["a-1"]
        self.scheduler.run(lambda: execution.status != "RUNNING", 40 * 86400)
        self.scheduler.close()
        return execution

    def succeed(self, payload: dict[str, Any], next_state: str, seconds: int = 0) -> None:
        output = f'{{"next": "{next_state}", "seconds": {seconds}, "hint": {{"entry": 1}}}}'
        self.service.send_task_success(taskToken=payload["token"], output=output)


def test_a_turn_of_two_rounds_takes_six_transitions_and_hands_the_hint_on() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> None:
        lab.succeed(payload, "round" if len(lab.calls) == 1 else "finish")

    lab = Lab(act)
    execution = lab.run()
    assert (execution.status, execution.visited) == ("SUCCEEDED", ["RunRound", "Next", "RunRound", "Next", "Finished"])
    assert [call[1]["hint"] for call in lab.calls] == [None, {"entry": 1}]
    assert lab.calls[0][1]["tenant"] == "t"


def test_a_missed_heartbeat_wakes_the_round_again_with_a_new_token() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> None:
        if len(lab.calls) == 2:
            lab.succeed(payload, "finish")

    lab = Lab(act)
    execution = lab.run()
    assert execution.visited == ["RunRound", "RunRound", "Next", "Finished"]
    first, second = (call[1]["token"] for call in lab.calls)
    assert first != second
    with pytest.raises(ClientError, match="TaskTimedOut"):
        lab.service.send_task_success(taskToken=first, output="{}")


def test_a_heartbeat_moves_the_alarm() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> None:
        if len(lab.calls) == 1:
            for _ in range(5):
                lab.scheduler.switch("work", 60)
                lab.service.send_task_heartbeat(taskToken=payload["token"])
            lab.succeed(payload, "finish")

    assert Lab(act).run().visited == ["RunRound", "Next", "Finished"]


def test_hold_waits_for_exactly_its_seconds_without_a_heartbeat() -> None:
    moments: list[float] = []

    def act(lab: Lab, function: str, payload: dict[str, Any]) -> None:
        moments.append(lab.scheduler.now)
        if len(lab.calls) == 1:
            lab.succeed(payload, "hold", 5000)
        elif function == "round":
            lab.succeed(payload, "finish")

    lab = Lab(act)
    assert lab.run().visited == ["RunRound", "Next", "Hold", "RunRound", "Next", "Finished"]
    assert moments[2] - moments[1] == pytest.approx(5000, abs=1)


def test_a_function_that_fails_is_retried_once_and_then_recovered() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> dict[str, Any]:
        if function == "round":
            raise TaskError("RuntimeError")
        return {}

    lab = Lab(act)
    execution = lab.run()
    assert [call[0] for call in lab.calls] == ["round", "round", "recover"]
    assert [call[1]["retry"] for call in lab.calls[:2]] == [0, 1]
    assert execution.status == "FAILED"


@pytest.mark.parametrize("throttled", ["round", "hold", "recover"])
def test_a_function_that_is_throttled_for_four_minutes_is_tried_until_it_runs(throttled: str) -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> dict[str, Any]:
        if function == throttled and lab.scheduler.now - began < 240:
            raise TaskError("Lambda.TooManyRequestsException")
        if throttled == "recover" and function == "round":
            raise TaskError("RuntimeError")
        if throttled == "hold" and len(lab.calls) == 1:
            lab.succeed(payload, "hold", 5000)
        elif function != "recover":
            lab.succeed(payload, "finish")
        return {}

    lab = Lab(act)
    began = lab.scheduler.now
    assert lab.run().visited[-1] == ("Failed" if throttled == "recover" else "Finished")
    assert 240 <= lab.scheduler.now - began < 240 + 60
    assert 10 < len(lab.calls) < 30, "each attempt is a transition"


def test_a_function_that_is_throttled_for_good_leads_to_recovery_within_a_quarter_of_an_hour() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> dict[str, Any]:
        if function == "round":
            raise TaskError("Lambda.TooManyRequestsException")
        return {}

    lab = Lab(act)
    began = lab.scheduler.now
    lab.run()
    assert [call[0] for call in lab.calls] == ["round"] * 26 + ["recover"]
    assert 180 < lab.scheduler.now - began < 900


def test_a_second_start_of_a_running_execution_changes_nothing_and_of_an_ended_one_is_refused() -> None:
    def act(lab: Lab, function: str, payload: dict[str, Any]) -> None:
        lab.service.start_execution(name="a-1", input=INPUT)
        lab.succeed(payload, "finish")

    lab = Lab(act)
    lab.run()
    assert len(lab.calls) == 1
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        lab.service.start_execution(name="a-1", input=INPUT)
