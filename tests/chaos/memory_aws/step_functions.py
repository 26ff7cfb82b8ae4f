"""Step Functions in memory: it interprets the real state machine of `statemachines/turn.asl.yaml` on the scheduler.

Covered is what that machine uses: JSONata, Task (`lambda:invoke` and `.waitForTaskToken`), Choice, Succeed, Fail,
Retry, Catch, HeartbeatSeconds, TimeoutSeconds. A state type or member that is not covered is an error, so that a
changed machine cannot be misread.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonata.jsonata import Jsonata

from tests.chaos.memory_aws.errors import aws_error
from tests.chaos.scheduler import Process, Scheduler

MACHINE_FILE = Path(__file__).parents[3] / "statemachines" / "turn.asl.yaml"
STATE_MEMBERS = {
    "Task": {"Resource", "Arguments", "HeartbeatSeconds", "TimeoutSeconds", "Retry", "Catch", "Output", "Next"},
    "Choice": {"Choices", "Default"},
    "Succeed": set[str](),
    "Fail": {"Error", "Cause"},
}
WAIT_RESOURCE = "arn:aws:states:::lambda:invoke.waitForTaskToken"
INVOKE_RESOURCE = "arn:aws:states:::lambda:invoke"
STEP_SECONDS = (0.005, 0.08)
"""Simulated seconds between two states."""

InvokeFunction = Callable[[str, dict[str, Any]], Any]


class TaskError(Exception):
    """A task that failed, with the error name that Retry and Catch match."""

    def __init__(self, name: str, cause: str = "") -> None:
        super().__init__(f"{name}: {cause}")
        self.name, self.cause = name, cause


@dataclass(eq=False)
class WaitingTask:
    token: str
    deadline: float
    heartbeat_seconds: float | None
    heartbeat_at: float = 0.0
    output: Any = None
    error: TaskError | None = None
    is_over: bool = False


@dataclass(eq=False)
class Execution:
    name: str
    input: dict[str, Any]
    status: str = "RUNNING"
    error: str = ""
    transitions: int = 0
    visited: list[str] = field(default_factory=list)
    task: WaitingTask | None = None
    is_stopped: bool = False
    ended_at: float = 0.0


@cache
def load_machine(**substitutions: str) -> dict[str, Any]:
    text = MACHINE_FILE.read_text()
    for name, value in substitutions.items():
        text = text.replace("${" + name + "}", value)
    machine: dict[str, Any] = yaml.safe_load(text)
    for name, state in machine["States"].items():
        unknown = set(state) - STATE_MEMBERS[state["Type"]] - {"Type", "Comment"}
        assert not unknown, f"state {name} has members that are not simulated: {unknown}"
    return machine


class MemoryStepFunctions:
    """The executions of one machine. `invoke` calls a function by its name in a process of its own."""

    def __init__(self, scheduler: Scheduler, invoke: InvokeFunction, heartbeat_seconds: int) -> None:
        self._scheduler, self._invoke = scheduler, invoke
        self._machine = load_machine(
            Partition="aws",
            HeartbeatSeconds=str(heartbeat_seconds),
            RoundFunctionArn="round",
            HoldFunctionArn="hold",
            RecoverFunctionArn="recover",
        )
        self._expressions: dict[str, Jsonata] = {}
        self._numbers = itertools.count(1)
        self._service = Process("step-functions")
        self.executions: dict[str, Execution] = {}
        self._tokens: dict[str, WaitingTask] = {}
        self.on_end: Callable[[Execution], None] | None = None
        """Called when an execution ends, as EventBridge reports it."""

    # the calls of a boto3 client

    def start_execution(self, *, name: str, input: str, **_: Any) -> dict[str, Any]:
        if name in self.executions:
            known = self.executions[name]
            if known.status == "RUNNING" and known.input == json.loads(input):
                return {"executionArn": name}
            raise aws_error("ExecutionAlreadyExists", "StartExecution")
        execution = self.executions[name] = Execution(name, json.loads(input))
        self._scheduler.start(self._service, lambda: self._run(execution), name=f"execution-{name}")
        return {"executionArn": name}

    def stop_execution(self, name: str) -> None:
        execution = self.executions[name]
        if execution.status == "RUNNING":
            execution.is_stopped = True
            self._end(execution, "ABORTED")

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:
        found = self.executions.get(executionArn.rpartition(":")[2])
        if found is None:
            raise aws_error("ExecutionDoesNotExist", "DescribeExecution")
        return {"status": found.status, **({"error": found.error} if found.error else {})}

    def send_task_success(self, *, taskToken: str, output: str) -> dict[str, Any]:
        task = self._waiting(taskToken, "SendTaskSuccess")
        task.output, task.is_over = json.loads(output), True
        return {}

    def send_task_heartbeat(self, *, taskToken: str) -> dict[str, Any]:
        self._waiting(taskToken, "SendTaskHeartbeat").heartbeat_at = self._scheduler.now
        return {}

    def _waiting(self, token: str, operation: str) -> WaitingTask:
        task = self._tokens.get(token)
        if task is None:
            raise aws_error("InvalidToken", operation)
        if task.is_over:
            raise aws_error("TaskTimedOut", operation)
        return task

    # one execution

    def _run(self, execution: Execution) -> None:
        name: str | None = self._machine["StartAt"]
        value: Any = execution.input
        while name is not None and not execution.is_stopped:
            execution.visited.append(name)
            execution.transitions += 1
            self._scheduler.switch("state", self._scheduler.random.uniform(*STEP_SECONDS))
            name, value = self._enter(execution, name, self._machine["States"][name], value)

    def _enter(self, execution: Execution, name: str, state: dict[str, Any], value: Any) -> tuple[str | None, Any]:
        if state["Type"] == "Succeed":
            self._end(execution, "SUCCEEDED")
            return None, None
        if state["Type"] == "Fail":
            self._end(execution, "FAILED", state["Error"])
            return None, None
        if state["Type"] == "Choice":
            for choice in state["Choices"]:
                if self._evaluate(choice["Condition"], value, execution, {}):
                    return choice["Next"], value
            return state["Default"], value
        return self._task(execution, name, state, value)

    def _task(self, execution: Execution, name: str, state: dict[str, Any], value: Any) -> tuple[str, Any]:
        entered, retries, attempts = self._scheduler.now, 0, [0] * len(state.get("Retry", []))
        while True:
            try:
                output = self._attempt(execution, name, state, value, entered, retries)
                return state["Next"], state.get("Output", output)
            except TaskError as error:
                number = self._matching(state.get("Retry", []), error)
                if number is not None and attempts[number] < state["Retry"][number].get("MaxAttempts", 3):
                    self._scheduler.switch("retry", self._delay(state["Retry"][number], attempts[number]))
                    attempts[number] += 1
                    retries += 1
                    continue
                caught = self._matching(state.get("Catch", []), error)
                if caught is None:
                    return self._fail(execution, error)
                return state["Catch"][caught]["Next"], state["Catch"][caught]["Output"]

    def _fail(self, execution: Execution, error: TaskError) -> tuple[Any, Any]:
        self._end(execution, "FAILED", error.name)
        return None, None

    def _delay(self, retry: dict[str, Any], attempt: int) -> float:
        seconds = float(retry.get("IntervalSeconds", 1) * retry.get("BackoffRate", 2.0) ** attempt)
        seconds = min(seconds, retry.get("MaxDelaySeconds", seconds))
        return self._scheduler.random.uniform(0, seconds) if retry.get("JitterStrategy") == "FULL" else seconds

    @staticmethod
    def _matching(rules: list[dict[str, Any]], error: TaskError) -> int | None:
        for number, rule in enumerate(rules):
            for name in rule["ErrorEquals"]:
                is_task_failure = name == "States.TaskFailed" and error.name != "States.Timeout"
                if name in (error.name, "States.ALL") or is_task_failure:
                    return number
        return None

    def _attempt(
        self, execution: Execution, name: str, state: dict[str, Any], value: Any, entered: float, retries: int
    ) -> Any:
        instant = datetime.fromtimestamp(entered, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        context = {
            "Execution": {"Input": execution.input},
            "State": {"Name": name, "EnteredTime": instant, "RetryCount": retries},
        }
        if state["Resource"] == INVOKE_RESOURCE:
            arguments = self._resolve(state["Arguments"], value, execution, context)
            return self._call(arguments["FunctionName"], arguments["Payload"], state["TimeoutSeconds"])
        assert state["Resource"] == WAIT_RESOURCE, state["Resource"]
        return self._wait_for_token(execution, state, value, context)

    def _wait_for_token(self, execution: Execution, state: dict[str, Any], value: Any, context: dict[str, Any]) -> Any:
        seconds = self._resolve(state["TimeoutSeconds"], value, execution, context)
        heartbeat = (
            self._resolve(state["HeartbeatSeconds"], value, execution, context) if "HeartbeatSeconds" in state else None
        )
        token, now = f"token-{next(self._numbers)}", self._scheduler.now
        task = self._tokens[token] = WaitingTask(token, now + seconds, heartbeat, now)
        arguments = self._resolve(state["Arguments"], value, execution, context | {"Task": {"Token": token}})
        self._start_call(task, arguments["FunctionName"], arguments["Payload"])
        execution.task = task
        while not task.is_over and not execution.is_stopped:
            alarm = min(task.deadline, float("inf") if heartbeat is None else task.heartbeat_at + heartbeat)
            if self._scheduler.now >= alarm:
                task.error = TaskError("States.Timeout" if alarm == task.deadline else "States.HeartbeatTimeout")
                break
            self._scheduler.wait("token", lambda: task.is_over or execution.is_stopped, alarm - self._scheduler.now)
        task.is_over = True
        if task.error is not None:
            raise task.error
        return task.output

    def _start_call(self, task: WaitingTask, function: str, payload: dict[str, Any]) -> None:
        """Call the function; its task fails with it, and its return value counts for nothing."""

        def call() -> None:
            try:
                self._invoke(function, payload)
            except TaskError as error:
                if not task.is_over:
                    task.error, task.is_over = error, True

        self._scheduler.start(self._service, call, name=f"invoke-{function}")

    def _call(self, function: str, payload: dict[str, Any], seconds: float) -> Any:
        task = WaitingTask("", self._scheduler.now + seconds, None)
        self._start_call_and_return(task, function, payload)
        if not self._scheduler.wait("function", lambda: task.is_over, seconds):
            raise TaskError("States.Timeout")
        if task.error is not None:
            raise task.error
        return task.output

    def _start_call_and_return(self, task: WaitingTask, function: str, payload: dict[str, Any]) -> None:
        def call() -> None:
            try:
                task.output = self._invoke(function, payload)
            except TaskError as error:
                task.error = error
            task.is_over = True

        self._scheduler.start(self._service, call, name=f"invoke-{function}")

    def _end(self, execution: Execution, status: str, error: str = "") -> None:
        if execution.status != "RUNNING":
            return
        execution.status, execution.error = status, error
        if execution.task is not None:
            execution.task.is_over = True
        execution.ended_at = self._scheduler.now
        if self.on_end is not None:
            self.on_end(execution)

    # JSONata

    def _resolve(self, part: Any, value: Any, execution: Execution, context: dict[str, Any]) -> Any:
        if isinstance(part, dict):
            return {name: self._resolve(inner, value, execution, context) for name, inner in part.items()}
        if isinstance(part, str) and part.startswith("{%"):
            return self._evaluate(part, value, execution, context)
        return part

    def _evaluate(self, text: str, value: Any, execution: Execution, context: dict[str, Any]) -> Any:
        if text not in self._expressions:
            self._expressions[text] = Jsonata(text.removeprefix("{%").removesuffix("%}").strip())
        expression = self._expressions[text]
        expression.assign("states", {"input": value, "context": context})
        return expression.evaluate(value)
