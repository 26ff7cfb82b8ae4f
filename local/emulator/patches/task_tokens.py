"""Patch Step Functions: one task token per attempt, which is valid until its first answer or the end of the attempt.

As on AWS, a token that was used, has timed out or belongs to a stopped execution gives TaskTimedOut, and a string that
is no token InvalidToken. A token of an earlier emulator process gives TaskDoesNotExist, because its execution is gone.
Waiting sleeps until the answer or the next deadline and does not poll.
"""

import json
import math
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ministack.services import stepfunctions

from local.emulator.patches.registry import Function, patch_function, pin_functions

Json = dict[str, Any]
MAX_PAYLOAD_BYTES = 256 * 1024
_PROCESS_ID = secrets.token_hex(8)
"""Part of every token that this emulator process makes."""

pin_functions(stepfunctions, _ExecutionError="82f3c23a59f9")


@dataclass
class TaskAttempt:
    """A token and how its attempt ends: by an answer, a failure, a timeout, or the end of its execution."""

    execution: Json
    token: str = field(default_factory=lambda: f"AQC{_PROCESS_ID}{secrets.token_urlsafe(450)}")
    output: Any = None
    error: tuple[str, str] | None = None
    stopped: bool = False
    last_heartbeat: float = field(default_factory=time.monotonic)
    _settled: threading.Event = field(default_factory=threading.Event)

    def wait_settled(self, until: float, heartbeat: float = math.inf) -> bool:
        """Wait until the attempt is settled.

        Returns:
            False when `until` (monotonic) or `heartbeat` seconds without a heartbeat have passed first.
        """
        while (left := min(until, self.last_heartbeat + heartbeat) - time.monotonic()) > 0:
            if self._settled.wait(min(left, threading.TIMEOUT_MAX)):
                return True
        return self._settled.is_set()


_open: dict[str, TaskAttempt] = {}
_lock = threading.Lock()


def open_attempt(execution: Json) -> TaskAttempt:
    attempt = TaskAttempt(execution)
    with _lock:
        _open[attempt.token] = attempt
    return attempt


def settle_attempt(
    attempt: TaskAttempt, *, output: Any = None, error: tuple[str, str] | None = None, stopped: bool = False
) -> bool:
    """Settle an attempt and invalidate its token. False when it was settled before."""
    with _lock:
        if _open.pop(attempt.token, None) is None:
            return False
    attempt.output, attempt.error, attempt.stopped = output, error, stopped
    attempt._settled.set()
    return True


def expire_attempt(attempt: TaskAttempt) -> bool:
    """Invalidate the token. False when the attempt was settled meanwhile."""
    return settle_attempt(attempt)


def sleep_until_stopped(execution: Json, seconds: float) -> None:
    """Sleep, at most until the execution ends."""
    attempt = open_attempt(execution)
    attempt.wait_settled(time.monotonic() + seconds)
    expire_attempt(attempt)


def stop_attempts(execution: Json) -> None:
    with _lock:
        attempts = [attempt for attempt in _open.values() if attempt.execution is execution]
    for attempt in attempts:
        settle_attempt(attempt, stopped=True)


@patch_function(stepfunctions, "_send_task_success", "12eff48bce57")
def send_task_success(original: Function, data: Json) -> Any:
    output = data.get("output", "")
    if len(output) > MAX_PAYLOAD_BYTES:
        return _error_response(
            "ValidationException", f"Value at 'output' is longer than {MAX_PAYLOAD_BYTES} characters"
        )
    try:
        value = json.loads(output)
    except ValueError as error:
        return _error_response("InvalidOutput", f"Invalid Output: {error}")
    return _settle_by_token(original, data, output=value)


@patch_function(stepfunctions, "_send_task_failure", "c2a489b4ed33")
def send_task_failure(original: Function, data: Json) -> Any:
    return _settle_by_token(original, data, error=(data.get("error", ""), data.get("cause", "")))


@patch_function(stepfunctions, "_send_task_heartbeat", "56879a4655d1")
def send_task_heartbeat(original: Function, data: Json) -> Any:
    token = data.get("taskToken", "")
    with _lock:
        attempt = _open.get(token)
        if attempt is not None:
            attempt.last_heartbeat = time.monotonic()
    return _refuse_unknown_token(original, data) if attempt is None else stepfunctions.json_response({})


def _settle_by_token(original: Function, data: Json, **answer: Any) -> Any:
    attempt = _open.get(data.get("taskToken", ""))
    if attempt is None or not settle_attempt(attempt, **answer):
        return _refuse_unknown_token(original, data)
    return stepfunctions.json_response({})


def _refuse_unknown_token(original: Function, data: Json) -> Any:
    token = data.get("taskToken", "")
    if token in stepfunctions._task_tokens:
        return original(data)
    if not token.startswith("AQC"):
        return _error_response("InvalidToken", "Invalid Token: 'Invalid token'")
    if not token.startswith(f"AQC{_PROCESS_ID}"):
        return _error_response("TaskDoesNotExist", "Task does not exist: its execution ended with an earlier emulator")
    return _error_response("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")


def _error_response(error: str, message: str) -> Any:
    return stepfunctions.error_response_json(error, message, 400)
