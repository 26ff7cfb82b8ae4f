"""Check what Lambda's callers see when no process becomes free. Functions of this emulator have one process each."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from botocore.exceptions import ClientError

from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud


@pytest.fixture(scope="module")
def full_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorLab]:
    limits = {"per_function": 1, "queue_seconds": 0}
    running = EmulatorProcess(tmp_path_factory.mktemp("full"), minute_seconds=1, function_limits=limits)
    yield EmulatorLab(running.endpoint)
    running.stop()


@pytest.fixture
def open_gate(full_lab: EmulatorLab, tmp_path: Path) -> Iterator[Path]:
    """Occupy the function's only process until this file exists. Invocations of the test before may still have it."""
    gate = tmp_path / "gate"
    script = {"lab": tmp_path.name, "script": {"0.0": [["note", "here"], ["until", str(gate)]]}}

    def run_until_the_gate_opens() -> bool:
        try:
            full_lab.invoke_function("lab", script)
        except full_lab.functions.exceptions.TooManyRequestsException:
            return False
        return True

    running = Thread(target=wait_until, args=(run_until_the_gate_opens, "the function's process is free"))
    running.start()
    full_lab.wait_for_notes(tmp_path.name, "here")
    yield gate
    gate.touch()
    running.join()


def test_a_synchronous_invocation_is_throttled(full_lab: EmulatorLab, open_gate: Path) -> None:
    with pytest.raises(full_lab.functions.exceptions.TooManyRequestsException) as caught:
        full_lab.invoke_function("lab", {})
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 429
    assert response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "1"
    assert response["Reason"] == "ConcurrentInvocationLimitExceeded"


def test_an_asynchronous_invocation_waits(full_lab: EmulatorLab, open_gate: Path) -> None:
    script = {"lab": f"{open_gate.parent.name}-waited", "script": {"0.0": [["note", "ran"]]}}
    for _ in range(3):
        full_lab.functions.invoke(FunctionName="lab", InvocationType="Event", Payload=json.dumps(script))
    assert full_lab.read_notes(script["lab"]) == []
    open_gate.touch()
    assert len(full_lab.wait_for_notes(script["lab"], "ran", times=3)) == 3


def test_a_scheduled_invocation_waits(full_lab: EmulatorLab, open_gate: Path) -> None:
    from local.aws_clients import get_client

    events = get_client("events", full_lab.endpoint)
    events.put_rule(Name="each-minute", ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule="each-minute", Targets=[{"Id": "lab", "Arn": full_lab.function}])
    with pytest.raises(ClientError):
        full_lab.invoke_function("lab", {})
    open_gate.touch()
    assert full_lab.wait_for_notes("schedule", "schedule")
    events.remove_targets(Rule="each-minute", Ids=["lab"])
    events.delete_rule(Name="each-minute")


def test_a_workflow_retries_a_throttled_task(full_lab: EmulatorLab, open_gate: Path) -> None:
    retrier = {
        "ErrorEquals": ["Lambda.TooManyRequestsException"],
        "IntervalSeconds": 1,
        "BackoffRate": 1,
        "MaxAttempts": 99,
    }
    machine = full_lab.make_callback_machine(Retry=[retrier])
    settle = [["success", {"next": "done"}]]
    execution = full_lab.start_execution(machine, {f"0.{attempt}": settle for attempt in range(100)})
    wait_until(
        lambda: any(event["type"] == "TaskFailed" for event in full_lab.get_history(execution)),
        "the first attempt is throttled",
    )
    open_gate.touch()
    assert full_lab.wait_for_end(execution)["status"] == "SUCCEEDED"
    failures = [
        event["taskFailedEventDetails"] for event in full_lab.get_history(execution) if event["type"] == "TaskFailed"
    ]
    assert {failure["error"] for failure in failures} == {"Lambda.TooManyRequestsException"}
