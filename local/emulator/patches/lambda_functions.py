"""Patch Lambda: run Python functions with the project's interpreter, in execution environments that behave as on AWS.

Unpatched MiniStack runs them with its own interpreter and packages, names every error `Runtime.HandlerError`, ends the
process after an error, waits 50 ms for missing output, keeps serving an old configuration, and kills running
invocations when new code is deployed. Here an environment survives an error of its handler. A new revision of a
function gets its own environments; those of the old one end after their last invocation.
"""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from local.emulator.patches.registry import Function, patch_function, pin_functions
from local.emulator.runtime.execution_environments import (
    EnvironmentFailedError,
    ExecutionEnvironment,
    FunctionTemplate,
    InvocationOutcome,
)

Json = dict[str, Any]
MAX_IDLE_SECONDS = 300.0

pin_functions(lambda_svc, _execute_function_dispatch="f62cd259213e", _xray_trace_id_for_invocation="46cbd1c5214a")
pin_functions(lambda_runtime, execution_credentials="cffaadc4f396")


@dataclass(frozen=True)
class FunctionRevision:
    """What an execution environment is made from. A function with another revision gets other environments."""

    code: str
    handler: str
    variables: tuple[tuple[str, str], ...]

    @classmethod
    def from_config(cls, config: Json) -> "FunctionRevision":
        return cls(
            config.get("CodeSha256", ""), config["Handler"], tuple(sorted(environment_variables(config).items()))
        )


class EnvironmentPool:
    """The execution environments of one revision of a function."""

    def __init__(self, revision: FunctionRevision, code: bytes) -> None:
        self.revision = revision
        self._code = code
        self._lock = threading.Lock()
        self._template: FunctionTemplate | None = None
        self._idle: deque[tuple[ExecutionEnvironment, float]] = deque()
        self._busy: set[ExecutionEnvironment] = set()
        self._retired = False

    def run_invocation(self, job: Json, timeout: float) -> InvocationOutcome:
        environment = None
        try:
            environment = self._lease()
            outcome = environment.invoke(job, timeout)
        except EnvironmentFailedError as failure:
            self._release(environment, usable=False)
            return failure.outcome
        self._release(environment, usable=True)
        return outcome

    def retire(self) -> None:
        """Accept no new invocations. The last running one closes the template."""
        with self._lock:
            self._retired = True
            self._close_unused()

    def list_processes(self) -> list[Json]:
        with self._lock:
            states = [(environment, True) for environment in self._busy]
            states += [(environment, False) for environment, _ in self._idle]
            return [{"pid": environment.pid, "busy": busy} for environment, busy in states]

    def _lease(self) -> ExecutionEnvironment:
        with self._lock:
            environment = self._take_idle() or self._fork()
            self._busy.add(environment)
            return environment

    def _take_idle(self) -> ExecutionEnvironment | None:
        while self._idle:
            environment, _ = self._idle.pop()
            if environment.is_alive():
                return environment
            environment.close()
        return None

    def _fork(self) -> ExecutionEnvironment:
        if self._template is None:
            revision = self.revision
            self._template = FunctionTemplate(function_python(), revision.handler, self._code, dict(revision.variables))
        try:
            return self._template.fork_environment()
        except EnvironmentFailedError:
            self._template = None
            raise

    def _release(self, environment: ExecutionEnvironment | None, *, usable: bool) -> None:
        with self._lock:
            if environment is not None:
                self._busy.discard(environment)
                if usable:
                    self._idle.append((environment, time.monotonic()))
                else:
                    environment.close()
            self._close_unused()

    def _close_unused(self) -> None:
        """Close environments that were idle too long; once retired, all of them and the template."""
        max_idle_seconds = 0.0 if self._retired else MAX_IDLE_SECONDS
        while self._idle and time.monotonic() - self._idle[0][1] >= max_idle_seconds:
            self._idle.popleft()[0].close()
        if self._retired and not self._busy and self._template is not None:
            self._template.close()
            self._template = None


_fleets: dict[str, EnvironmentPool] = {}
_lock = threading.Lock()


def get_pool(config: Json, code: bytes) -> EnvironmentPool:
    """Get the pool of a function's current revision; retire the pool of the one before."""
    key = f"{config['FunctionArn']} {config.get('Version', '$LATEST')}"
    revision = FunctionRevision.from_config(config)
    with _lock:
        current = _fleets.get(key)
        if current is not None and current.revision == revision:
            return current
        fleet = _fleets[key] = EnvironmentPool(revision, code)
    if current is not None:
        current.retire()
    return fleet


def list_processes() -> dict[str, list[Json]]:
    """List the environments of every function by its name, for tests that kill one."""
    with _lock:
        fleets = list(_fleets.values())
    return {dict(fleet.revision.variables)["AWS_LAMBDA_FUNCTION_NAME"]: fleet.list_processes() for fleet in fleets}


@patch_function(lambda_svc, "_execute_function_warm", "62b9218bef5b")
def execute_function(original: Function, func: Json, event: Any, request_id: str) -> Json:
    config, code = func.get("config") or func, func.get("code_zip")
    if not code or not config.get("Runtime", "").startswith("python"):
        return dict(original(func, event, request_id))
    timeout = float(config.get("Timeout", 3))
    job = {
        "event": event,
        "requestId": request_id,
        "arn": config["FunctionArn"],
        "deadline": time.time() + timeout,
        "trace": lambda_svc._xray_trace_id_for_invocation(config),
    }
    try:
        outcome = get_pool(config, code).run_invocation(job, timeout)
    except OSError as error:
        outcome = InvocationOutcome(failed={"errorType": "Lambda.ServiceException", "errorMessage": str(error)})
    if outcome.failed is not None:
        return {"body": outcome.failed, "error": True, "log": outcome.log}
    return {"body": outcome.result, "log": outcome.log}


@patch_function(lambda_svc, "invalidate_worker", "1be5d7f769f5")
def retire_deleted_function(
    original: Function, name: str, qualifier: str | None = None, account: str | None = None, region: str | None = None
) -> None:
    """Retire the pools of a deleted or updated function. An updated one gets a new pool at its next invocation."""
    original(name, qualifier, account, region)
    with _lock:
        gone = [key for key in _fleets if qualifier is None and key.split(" ")[0].split(":")[6] == name]
        for key in gone:
            _fleets.pop(key).retire()


def environment_variables(config: Json) -> dict[str, str]:
    """Make the environment variables of a function. Reserved variables override its own."""
    name = config["FunctionName"]
    logging_config = config.get("LoggingConfig") or {}
    region = config["FunctionArn"].split(":")[3]
    own_variables = config.get("Environment", {}).get("Variables", {})
    reserved_variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config['Runtime']}",
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.get("MemorySize", 128)),
        "AWS_LAMBDA_FUNCTION_VERSION": config.get("Version", "$LATEST"),
        "AWS_LAMBDA_LOG_GROUP_NAME": logging_config.get("LogGroup") or f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_LAMBDA_LOG_FORMAT": logging_config.get("LogFormat", "Text"),
        "AWS_LAMBDA_LOG_LEVEL": logging_config.get("ApplicationLogLevel", "INFO"),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "_HANDLER": config["Handler"],
    }
    return {**own_variables, **reserved_variables, **lambda_runtime.execution_credentials(config)}


def function_python() -> str:
    return os.environ["FUNCTION_PYTHON"]
