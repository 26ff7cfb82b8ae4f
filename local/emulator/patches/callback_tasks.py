"""A Step Functions task that waits for a token, as AWS runs it.

Stock MiniStack hands one token to all attempts, waits for the function to return before it looks at the answer,
ignores heartbeats, swallows a failure of the function and then waits for ever, and cannot read a time-out that is an
expression. Here the function runs beside the waiting: an answer moves the execution on at once, an error or the end
of the process before the answer fails the attempt under its own name, after it changes nothing.
"""

import contextvars
import json
import math
import random
import threading
import time
from typing import Any

from ministack.services import stepfunctions as states

from local.emulator.patches import executions, task_tokens
from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions
from local.emulator.patches.task_tokens import MAX_PAYLOAD_BYTES, Json, TaskAttempt

CALLBACK_RESOURCE = "arn:aws:states:::lambda:invoke.waitForTaskToken"
TIMEOUT_ERRORS = ("States.Timeout", "States.HeartbeatTimeout")

pin_functions(
    states,
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

# A throttled function is Lambda.TooManyRequestsException, which retriers name, not Lambda.Unknown.
patch_line(
    states,
    "_call_lambda",
    "25830369b126",
    'body.get("errorType", "Lambda.Unknown")',
    'body.get("errorType") or "Lambda." + body.get("__type", "Unknown")',
)


@patch_function(states, "_error_matches", "519b9dc729c5")
def error_matches(stock: Function, names: list[str], error: str) -> bool:
    """States.ALL leaves out what no state may catch."""
    if error in ("States.DataLimitExceeded", "States.Runtime"):
        return error in names
    return bool(stock(names, error))


@patch_function(states, "_execute_task", "53c818d247db")
def execute_task(stock: Function, state: Json, given: Any, execution: Json, context: Json) -> Any:
    if states._state_query_language(state, context) != "JSONata":
        return stock(state, given, execution, context)
    timed = state | _seconds(state, given, context)
    if state.get("Resource") != CALLBACK_RESOURCE:
        return stock(timed, given, execution, context)
    return CallbackTask(timed, given, execution, context).run()


class CallbackTask:
    """One visit of a waiting state, all its attempts."""

    def __init__(self, state: Json, given: Any, execution: Json, context: Json) -> None:
        self.state = state
        self.given = given
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
            except states._ExecutionError as error:
                task_tokens.expire_attempt(attempt)
                if not executions.is_running(self.execution):
                    raise
                self._note_failure(error)
                pause = self._pause_before_retry(error)
                if pause is None:
                    return self._catch(error)
                task_tokens.sleep_until_stopped(self.execution, pause)
                if not executions.is_running(self.execution):
                    raise

    def _attempt(self, attempt: TaskAttempt) -> Any:
        arguments = states._apply_jsonata_arguments(self.state, self.given, self.context)
        payload = arguments.get("Payload", {})
        if len(json.dumps(payload)) > MAX_PAYLOAD_BYTES:
            raise states._ExecutionError("States.DataLimitExceeded", "The task's payload is larger than 256 KiB")
        reference = states._resolve_lambda_function_ref(arguments["FunctionName"], optimized=True)
        self._note("TaskScheduled", resourceType="lambda", resource="invoke.waitForTaskToken")
        started = time.monotonic()
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(_invoke, attempt, reference, payload), daemon=True).start()
        self._wait(attempt, started + self.state.get("TimeoutSeconds", math.inf))
        self._note("TaskSucceeded", resourceType="lambda", resource="invoke.waitForTaskToken")
        return attempt.output

    def _wait(self, attempt: TaskAttempt, until: float) -> None:
        limit = executions.execution_deadline(self.execution)
        if not attempt.wait_settled(
            min(until, limit), self.state.get("HeartbeatSeconds", math.inf)
        ) and task_tokens.expire_attempt(attempt):
            if time.monotonic() >= limit:
                executions.time_out_execution(self.execution)
            late = time.monotonic() >= until
            raise states._ExecutionError(TIMEOUT_ERRORS[0] if late else TIMEOUT_ERRORS[1], "")
        attempt.wait_settled(math.inf)
        if attempt.stopped:
            raise states._ExecutionError("States.Aborted", "The execution has ended")
        if attempt.error:
            raise states._ExecutionError(*attempt.error)

    def _leave(self, result: Any) -> tuple[Any, str | None]:
        output = states._apply_jsonata_output(self.state, self.given, self.context, result=result, default=result)
        states._apply_state_assign(self.state, self.given, self.context, result=result)
        return output, states._next_or_end(self.state)

    def _pause_before_retry(self, error: Any) -> float | None:
        """Seconds until the next attempt; None when no retrier wants one."""
        retrier, index = states._find_matching_retrier(self.state.get("Retry", []), error.error, self._retries)
        if retrier is None:
            return None
        count = self._retries.get(index, 0)
        self._retries[index] = count + 1
        pause: float = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2.0) ** count
        pause = min(pause, retrier.get("MaxDelaySeconds", math.inf))
        return random.uniform(0, pause) if retrier.get("JitterStrategy") == "FULL" else pause  # noqa: S311  a delay

    def _catch(self, error: Any) -> tuple[Any, str]:
        catcher = states._find_matching_catcher(self.state.get("Catch", []), error.error)
        if catcher is None:
            raise error
        problem = {"Error": error.error, "Cause": error.cause}
        output = states._apply_catcher(catcher, self.given, self.context, "JSONata", problem)
        return output, catcher["Next"]

    def _note(self, event: str, **details: str) -> None:
        states._add_event(self.execution, event, {f"{event[0].lower()}{event[1:]}EventDetails": details})

    def _note_failure(self, error: Any) -> None:
        event = "TaskTimedOut" if error.error in TIMEOUT_ERRORS else "TaskFailed"
        self._note(event, resourceType="lambda", error=error.error, cause=error.cause)


def _seconds(state: Json, given: Any, context: Json) -> Json:
    """The state's times as numbers, whether they were written so or as expressions."""
    names = [name for name in ("TimeoutSeconds", "HeartbeatSeconds") if name in state]
    return {name: states._jsonata_state_field(state, name, "number", given, context) for name in names}


def _invoke(attempt: TaskAttempt, reference: Any, payload: Any) -> None:
    try:
        states._call_lambda(reference, payload)
    except states._ExecutionError as error:
        task_tokens.settle_attempt(attempt, error=(error.error, error.cause))
    except Exception as error:  # noqa: BLE001  whatever stops the emulator's own Lambda must fail the task, not hang it
        task_tokens.settle_attempt(attempt, error=("Lambda.ServiceException", repr(error)))
