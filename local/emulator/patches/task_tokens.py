"""Task tokens of Step Functions: one per attempt, answered once, alive between the start and the end of that attempt.

On AWS a token that was used, timed out or belongs to a stopped execution gives TaskTimedOut, and a string that is no
token InvalidToken. A token of an emulator that has since been restarted gives TaskDoesNotExist, for its execution is
gone. Waiting sleeps until the answer or the next deadline; nothing polls.
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
_EPOCH = secrets.token_hex(8)
"""This emulator process, told by every token it hands out."""

pin_functions(stepfunctions, _ExecutionError="82f3c23a59f9")


@dataclass
class TaskAttempt:
    """One open token and how its attempt ends: by an answer, a failure, a deadline, or its execution's end."""

    execution: Json
    token: str = field(default_factory=lambda: f"AQC{_EPOCH}{secrets.token_urlsafe(450)}")
    output: Any = None
    error: tuple[str, str] | None = None
    stopped: bool = False
    last_heartbeat: float = field(default_factory=time.monotonic)
    _settled: threading.Event = field(default_factory=threading.Event)

    def wait_settled(self, until: float, heartbeat: float = math.inf) -> bool:
        """True once settled; False when `until`, or `heartbeat` seconds without a beat, have passed."""
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
    """The first to settle an attempt wins; from then on its token is used."""
    with _lock:
        if _open.pop(attempt.token, None) is None:
            return False
    attempt.output, attempt.error, attempt.stopped = output, error, stopped
    attempt._settled.set()
    return True


def expire_attempt(attempt: TaskAttempt) -> bool:
    """Take the token back; False when somebody has settled the attempt in the meantime."""
    return settle_attempt(attempt)


def sleep_until_stopped(execution: Json, seconds: float) -> None:
    """Wait, but not beyond the end of the execution."""
    attempt = open_attempt(execution)
    attempt.wait_settled(time.monotonic() + seconds)
    expire_attempt(attempt)


def stop_attempts(execution: Json) -> None:
    with _lock:
        attempts = [attempt for attempt in _open.values() if attempt.execution is execution]
    for attempt in attempts:
        settle_attempt(attempt, stopped=True)


@patch_function(stepfunctions, "_send_task_success", "12eff48bce57")
def send_task_success(stock: Function, data: Json) -> Any:
    output = data.get("output", "")
    if len(output) > MAX_PAYLOAD_BYTES:
        return _refused("ValidationException", f"Value at 'output' is longer than {MAX_PAYLOAD_BYTES} characters")
    try:
        value = json.loads(output)
    except ValueError as error:
        return _refused("InvalidOutput", f"Invalid Output: {error}")
    return _answered(stock, data, output=value)


@patch_function(stepfunctions, "_send_task_failure", "c2a489b4ed33")
def send_task_failure(stock: Function, data: Json) -> Any:
    return _answered(stock, data, error=(data.get("error", ""), data.get("cause", "")))


@patch_function(stepfunctions, "_send_task_heartbeat", "56879a4655d1")
def send_task_heartbeat(stock: Function, data: Json) -> Any:
    token = data.get("taskToken", "")
    with _lock:
        attempt = _open.get(token)
        if attempt is not None:
            attempt.last_heartbeat = time.monotonic()
    return _unknown(stock, data) if attempt is None else stepfunctions.json_response({})


def _answered(stock: Function, data: Json, **answer: Any) -> Any:
    attempt = _open.get(data.get("taskToken", ""))
    if attempt is None or not settle_attempt(attempt, **answer):
        return _unknown(stock, data)
    return stepfunctions.json_response({})


def _unknown(stock: Function, data: Json) -> Any:
    token = data.get("taskToken", "")
    if token in stepfunctions._task_tokens:
        return stock(data)
    if not token.startswith("AQC"):
        return _refused("InvalidToken", "Invalid Token: 'Invalid token'")
    if not token.startswith(f"AQC{_EPOCH}"):
        return _refused("TaskDoesNotExist", "Task does not exist: its execution ended with an earlier emulator")
    return _refused("TaskTimedOut", "Task Timed Out: 'Provided task does not exist anymore'")


def _refused(error: str, message: str) -> Any:
    return stepfunctions.error_response_json(error, message, 400)
