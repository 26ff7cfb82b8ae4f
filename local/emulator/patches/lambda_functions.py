"""Patch Lambda: run Python functions with the project's interpreter, in execution environments that behave as on AWS.

Unpatched MiniStack runs them with its own interpreter and packages, names every error `Runtime.HandlerError`, ends the
process after an error, waits 50 ms for missing output, keeps serving an old configuration, and kills running
invocations when new code is deployed. Here an environment survives an error of its handler. A new revision of a
function gets its own environments; those of the old one end after their last invocation.
"""

import contextvars
import functools
import math
import os
import sys
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ministack.services import eventbridge, lambda_svc

from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions
from local.emulator.runtime.environment_pool import EnvironmentFleet, EnvironmentPool, ThrottledError
from local.emulator.runtime.execution_environments import (
    FunctionTemplate,
    InvocationOutcome,
    Preload,
    SharedProcesses,
)
from local.emulator.runtime.process_limits import ProcessLimits
from local.request_signature import CREDENTIALS_VARIABLE, RunCredentials

Json = dict[str, Any]
FUNCTION_ARN_PARTS = 7
"""Parts of a function's ARN before a version or an alias."""

pin_functions(
    lambda_svc,
    _execute_function_dispatch="f62cd259213e",
    _throttle_response="647221d5b077",
    _xray_trace_id_for_invocation="46cbd1c5214a",
)


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


_shared_processes = SharedProcesses(os.environ.get("FUNCTION_PYTHON", sys.executable), Preload.from_environment())
_fleet = EnvironmentFleet(ProcessLimits.from_environment())
_pools: dict[str, tuple[FunctionRevision, EnvironmentPool]] = {}
_lock = threading.Lock()
_queue_seconds: ContextVar[float] = ContextVar("_queue_seconds", default=_fleet.limits.queue_seconds)
"""How long an invocation waits for a process. An asynchronous one waits as long as it takes."""


def get_pool(config: Json, code: bytes) -> EnvironmentPool:
    """Get the pool of a function's current revision; retire the pool of the one before.

    A published version is a revision: when an alias moves, the environments of the version before end after their last
    invocation.
    """
    key = ":".join(config["FunctionArn"].split(":")[:FUNCTION_ARN_PARTS])
    revision = FunctionRevision.from_config(config)
    with _lock:
        current = _pools.get(key)
        if current is not None and current[0] == revision:
            return current[1]
        pool = _fleet.add_pool(functools.partial(start_template, revision, code))
        _pools[key] = revision, pool
    if current is not None:
        _fleet.retire_pool(current[1])
    return pool


def start_template(revision: FunctionRevision, code: bytes) -> FunctionTemplate:
    return FunctionTemplate(_shared_processes, revision.handler, code, dict(revision.variables))


def fork_copy(config: Json, socket_path: str) -> None:
    """Fork a copy of the process that functions share, which becomes a process of the local cloud (decision 0609).

    Args:
        config: Of a function with whose variables the shared process was imported.
        socket_path: Where the copy calls back for its settings.

    Raises:
        EnvironmentFailedError: The shared process does not start.
    """
    _shared_processes.fork_program(socket_path, environment_variables(config))


def list_processes() -> dict[str, list[Json]]:
    """List the environments of every function by its name, for tests that kill one."""
    with _lock:
        pools = list(_pools.values())
    return {
        dict(revision.variables)["AWS_LAMBDA_FUNCTION_NAME"]: _fleet.list_processes(pool) for revision, pool in pools
    }


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
        "trace": lambda_svc._xray_trace_id_for_invocation(config),
    }
    try:
        outcome = _fleet.run_invocation(get_pool(config, code), job, timeout, _queue_seconds.get())
    except ThrottledError:
        message = f"Rate Exceeded: no process of {config['FunctionName']} became free"
        return dict(lambda_svc._throttle_response("ConcurrentInvocationLimitExceeded", message))
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
        gone = [key for key in _pools if qualifier is None and key.split(":")[6] == name]
        for key in gone:
            _fleet.retire_pool(_pools.pop(key)[1])


@patch_function(lambda_svc, "invoke_async_with_retry", "289fe4d3cbd4")
def invoke_asynchronously(original: Function, function: Json, event: Any) -> None:
    """Invoke in a thread, which gets a copy of this context. Such an invocation is queued, never throttled."""
    contextvars.copy_context().run(_run_without_queue_limit, original, function, event)


def run_scheduled_invocation(function: Json, event: Any) -> None:
    """Run the invocation of an EventBridge target, which is asynchronous on AWS."""
    _run_without_queue_limit(lambda_svc._execute_function_with_config_scope, function, event)


def _run_without_queue_limit(run: Function, *arguments: Any) -> None:
    _queue_seconds.set(math.inf)
    run(*arguments)


patch_line(
    eventbridge,
    "_dispatch_to_lambda",
    "1f95adbaed3a",
    "target=lambda_svc._execute_function_with_config_scope",
    "target=_run_scheduled_invocation",
    _run_scheduled_invocation=run_scheduled_invocation,
)


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
    return {**own_variables, **reserved_variables, **_run_credentials_variables()}


def _run_credentials_variables() -> dict[str, str]:
    """Return the key of this run instead of MiniStack's, which everybody knows (decision 0230)."""
    credentials = RunCredentials.parse(os.environ[CREDENTIALS_VARIABLE])
    return {
        "AWS_ACCESS_KEY_ID": credentials.access_key_id,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_access_key,
        "AWS_SESSION_TOKEN": "",
    }
