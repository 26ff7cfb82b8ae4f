"""Patch Step Functions: run `lambda:invoke.waitForTaskToken` tasks as AWS does.

Unpatched MiniStack uses one token for all attempts, waits for the function to return before it reads the answer,
ignores heartbeats, waits forever after an error of the function, and cannot read a timeout that is an expression. Here
the function runs beside the waiting. An answer continues the execution at once. An error or exit before the answer
fails the attempt under its own name; after the answer it has no effect.
"""

import contextvars
import json
import math
import random
import threading
import time
from typing import Any

from ministack.services import stepfunctions

from local.emulator.patches import executions, task_tokens
from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions
from local.emulator.patches.task_tokens import MAX_PAYLOAD_BYTES, Json, TaskAttempt

CALLBACK_RESOURCE = "arn:aws:states:::lambda:invoke.waitForTaskToken"
TIMEOUT_ERROR = "States.Timeout"
HEARTBEAT_TIMEOUT_ERROR = "States.HeartbeatTimeout"

pin_functions(
    stepfunctions,
    _add_event="b1db143ccd21",
    _apply_jsonata_arguments="c74f8b18dccd",
    _apply_jsonata_output="687e63886e94",
    _apply_state_assign="f9cc15f006a0",
    _jsonata_state_field="9bf62b72170e",
    _find_matching_retrier="cb494ae8503c",
    _find_matching_catcher="7fcca16317a4",
    _apply_catcher="ca17bcad86a8",
    _resolve_lambda_function_ref="80b2dbc89564",
    _next_or_end="71350d377721",
)

# A throttled function fails with Lambda.TooManyRequestsException, which retriers name, instead of Lambda.Unknown.
patch_line(
    stepfunctions,
    "_call_lambda",
    "25830369b126",
    'body.get("errorType", "Lambda.Unknown")',
    'body.get("errorType") or "Lambda." + body.get("__type", "Unknown")',
)


@patch_function(stepfunctions, "_error_matches", "519b9dc729c5")
def error_matches(original: Function, names: list[str], error: str) -> bool:
    """Match an error, except that States.ALL leaves out errors that no state may catch."""
    if error in ("States.DataLimitExceeded", "States.Runtime"):
        return error in names
    return bool(original(names, error))


@patch_function(stepfunctions, "_execute_task", "53c818d247db")
def execute_task(original: Function, state: Json, task_input: Any, execution: Json, context: Json) -> Any:
    if stepfunctions._state_query_language(state, context) != "JSONata":
        return original(state, task_input, execution, context)
    timed_state = state | _evaluate_timeouts(state, task_input, context)
    if state.get("Resource") != CALLBACK_RESOURCE:
        return original(timed_state, task_input, execution, context)
    return CallbackTask(timed_state, task_input, execution, context).run()


class CallbackTask:
    """One visit of a waiting state with all its attempts."""

    def __init__(self, state: Json, task_input: Any, execution: Json, context: Json) -> None:
        self.state = state
        self.task_input = task_input
        self.execution = execution
        self.context = context
        self._retries: dict[int, int] = {}

    def run(self) -> tuple[Any, str | None]:
        while True:
            attempt = task_tokens.open_attempt(self.execution)
            self.context["Task"] = {"Token": attempt.token}
            self.context["State"]["RetryCount"] = sum(self._retries.values())
            try:
                return self._leave(self._attempt(attempt))
            except stepfunctions._ExecutionError as error:
                task_tokens.expire_attempt(attempt)
                if not executions.is_running(self.execution):
                    raise
                self._record_failure(error)
                delay = self._delay_before_retry(error)
                if delay is None:
                    return self._catch(error)
                task_tokens.sleep_until_stopped(self.execution, delay)
                if not executions.is_running(self.execution):
                    raise

    def _attempt(self, attempt: TaskAttempt) -> Any:
        arguments = stepfunctions._apply_jsonata_arguments(self.state, self.task_input, self.context)
        payload = arguments.get("Payload", {})
        if len(json.dumps(payload)) > MAX_PAYLOAD_BYTES:
            raise stepfunctions._ExecutionError("States.DataLimitExceeded", "The task's payload is larger than 256 KiB")
        reference = stepfunctions._resolve_lambda_function_ref(arguments["FunctionName"], optimized=True)
        self._record("TaskScheduled", resourceType="lambda", resource="invoke.waitForTaskToken")
        started = time.monotonic()
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(_invoke, attempt, reference, payload), daemon=True).start()
        self._wait(attempt, started + self.state.get("TimeoutSeconds", math.inf))
        self._record("TaskSucceeded", resourceType="lambda", resource="invoke.waitForTaskToken")
        return attempt.output

    def _wait(self, attempt: TaskAttempt, until: float) -> None:
        """Wait until the attempt is settled, and raise what it failed with. `until` is its timeout, monotonic."""
        execution_deadline = executions.execution_deadline(self.execution)
        heartbeat_seconds = self.state.get("HeartbeatSeconds", math.inf)
        is_settled = attempt.wait_settled(min(until, execution_deadline), heartbeat_seconds)
        if not is_settled and task_tokens.expire_attempt(attempt):
            now = time.monotonic()
            if now >= execution_deadline:
                executions.time_out_execution(self.execution)
            raise stepfunctions._ExecutionError(TIMEOUT_ERROR if now >= until else HEARTBEAT_TIMEOUT_ERROR, "")
        attempt.wait_settled(math.inf)
        if attempt.stopped:
            raise stepfunctions._ExecutionError("States.Aborted", "The execution has ended")
        if attempt.error:
            raise stepfunctions._ExecutionError(*attempt.error)

    def _leave(self, result: Any) -> tuple[Any, str | None]:
        output = stepfunctions._apply_jsonata_output(
            self.state, self.task_input, self.context, result=result, default=result
        )
        stepfunctions._apply_state_assign(self.state, self.task_input, self.context, result=result)
        return output, stepfunctions._next_or_end(self.state)

    def _delay_before_retry(self, error: Any) -> float | None:
        """Get the seconds until the next attempt; None when no retrier allows one."""
        retrier, index = stepfunctions._find_matching_retrier(self.state.get("Retry", []), error.error, self._retries)
        if retrier is None:
            return None
        count = self._retries.get(index, 0)
        self._retries[index] = count + 1
        delay: float = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** count
        delay = min(delay, retrier.get("MaxDelaySeconds", math.inf))
        return random.uniform(0, delay) if retrier.get("JitterStrategy") == "FULL" else delay  # noqa: S311  no secret

    def _catch(self, error: Any) -> tuple[Any, str]:
        catcher = stepfunctions._find_matching_catcher(self.state.get("Catch", []), error.error)
        if catcher is None:
            raise error
        error_output = {"Error": error.error, "Cause": error.cause}
        output = stepfunctions._apply_catcher(catcher, self.task_input, self.context, "JSONata", error_output)
        return output, catcher["Next"]

    def _record(self, event: str, **details: str) -> None:
        stepfunctions._add_event(self.execution, event, {f"{event[0].lower()}{event[1:]}EventDetails": details})

    def _record_failure(self, error: Any) -> None:
        event = "TaskTimedOut" if error.error in (TIMEOUT_ERROR, HEARTBEAT_TIMEOUT_ERROR) else "TaskFailed"
        self._record(event, resourceType="lambda", error=error.error, cause=error.cause)


def _evaluate_timeouts(state: Json, task_input: Any, context: Json) -> Json:
    """Evaluate the state's timeouts, which may be expressions, to numbers."""
    names = [name for name in ("TimeoutSeconds", "HeartbeatSeconds") if name in state]
    return {name: stepfunctions._jsonata_state_field(state, name, "number", task_input, context) for name in names}


def _invoke(attempt: TaskAttempt, reference: Any, payload: Any) -> None:
    try:
        stepfunctions._call_lambda(reference, payload)
    except stepfunctions._ExecutionError as error:
        task_tokens.settle_attempt(attempt, error=(error.error, error.cause))
    except Exception as error:  # noqa: BLE001  an error of the emulator itself must fail the task
        task_tokens.settle_attempt(attempt, error=("Lambda.ServiceException", repr(error)))
