"""Run a function's handler: `python -P bootstrap.py PLAN CONTROL` (decision 0031). Standard library only.

This program runs with the project's interpreter. It is the function's template process: it imports the handler once,
and forks an environment whenever the emulator sends three descriptors for one, as SnapStart restores one snapshot many
times. An environment serves one invocation at a time: a JSON line in, a JSON line out.

No process outlives the emulator: the template ends with its control socket, an environment with its leash, a pipe
whose other end only the emulator holds.
"""

import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

END_OF_LOG = b"\x1eend of invocation\n"
MAX_RESPONSE_BYTES = 6 * 1024 * 1024
Handler = Callable[[Any, Any], Any]


class LambdaContext:
    """The context object that AWS passes to every handler."""

    identity = None
    client_context = None

    def __init__(self, job: dict[str, Any]) -> None:
        self.aws_request_id = job["requestId"]
        self.invoked_function_arn = job["arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self._deadline = job["deadline"]

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._deadline - time.time()) * 1000))


def main() -> None:
    plan, control = json.loads(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    try:
        handler = load_handler(plan["code"], plan["handler"])
    except BaseException as error:  # noqa: BLE001  any error of the import is the function's answer, even an exit
        control.sendall(_line({"failed": _import_failure(plan["handler"], error)}))
        return
    control.sendall(_line({"ready": True}))
    preload_service_models(plan["clients"])
    fork_environments(handler, control)


def load_handler(code: str, name: str) -> Handler:
    os.chdir(code)
    sys.path.insert(0, code)
    module, _, function = name.rpartition(".")
    handler: Handler = getattr(importlib.import_module(module.replace("/", ".")), function)
    return handler


def preload_service_models(services: list[str]) -> None:
    """Load the service descriptions of botocore once here, instead of in every environment (0.2 s each)."""
    boto3: Any = sys.modules.get("boto3")
    for service in services if boto3 else ():
        boto3.client(service)


def fork_environments(handler: Handler, control: socket.socket) -> None:
    """Fork environments until the emulator closes the control socket. The kernel reaps ended environments."""
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, 1, 3)
        if not order:
            return
        child = os.fork()
        if child == 0:
            control.close()
            serve_invocations(handler, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.sendall(_line({"pid": child}))


def serve_invocations(handler: Handler, channel: int, log: int, leash: int) -> NoReturn:
    """Serve invocations in an environment until the emulator closes the channel."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_with(leash)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # keeps the order with lines of stderr
    with socket.socket(fileno=channel) as connection, connection.makefile("rwb") as stream:
        for line in stream:
            answer = invoke_handler(handler, json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(sys.stderr.fileno(), END_OF_LOG)
            stream.write(answer)
            stream.flush()
    os._exit(0)


def invoke_handler(handler: Handler, job: dict[str, Any]) -> bytes:
    """Run the handler and encode its answer. An exception is an answer too, and the environment stays warm."""
    _set_trace(job.get("trace"))
    try:
        result = handler(job["event"], LambdaContext(job))
    except Exception as error:  # noqa: BLE001  every error of a handler is reported to its caller
        traceback.print_exc()
        return _line({"failed": _failure(error, job["requestId"])})
    return _result(result, job["requestId"])


def _result(result: Any, request_id: str) -> bytes:
    try:
        line = _line({"result": result})
    except (TypeError, ValueError) as error:
        message = f"Unable to marshal response: {error}"
        return _line(
            {"failed": {"errorType": "Runtime.MarshalError", "errorMessage": message, "requestId": request_id}}
        )
    if len(line) > MAX_RESPONSE_BYTES:
        message = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes)."
        return _line({"failed": {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}})
    return line


def _failure(error: Exception, request_id: str) -> dict[str, Any]:
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "requestId": request_id,
        "stackTrace": traceback.format_tb(error.__traceback__)[1:],
    }


def _import_failure(name: str, error: BaseException) -> dict[str, Any]:
    kind = "Runtime.HandlerNotFound" if isinstance(error, AttributeError) else "Runtime.ImportModuleError"
    return {
        "errorMessage": f"Unable to import handler '{name}': {type(error).__name__}: {error}",
        "errorType": kind,
        "stackTrace": traceback.format_tb(error.__traceback__)[1:],
    }


def _set_trace(trace: str | None) -> None:
    if trace:
        os.environ["_X_AMZN_TRACE_ID"] = trace
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


def _end_with(leash: int) -> None:
    def watch() -> None:
        os.read(leash, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="leash").start()


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


if __name__ == "__main__":
    main()
