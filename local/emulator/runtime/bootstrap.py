"""Run functions: `python -P bootstrap.py PLAN CONTROL` (decisions 0031 and 0166). Standard library only.

This program runs with the project's interpreter. It imports what functions share, and forks a template process for each
revision of a function. A template imports the handler and forks an environment whenever the emulator sends three
descriptors for one, as SnapStart restores one snapshot many times. An environment serves one invocation at a time: a
JSON line in, a JSON line out.

No process outlives the emulator: this one and the templates end with their control sockets, an environment with its
leash, a pipe whose other end only the emulator holds.
"""

import gc
import importlib
import importlib.util
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

END_OF_LOG = b"\x1eend of invocation\n"
MAX_RESPONSE_BYTES = 6 * 1024 * 1024
MAX_DESCRIPTORS = 8
"""That a program may be given."""
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
    sys.modules.update(dict.fromkeys(plan["hidden"]))  # an import of what is None here fails
    for package in plan["packages"]:
        import_package(package, tuple(plan["left_out"]))
    preload_service_models(plan["services"])
    if plan["warm_up"]:
        warm_up(plan["warm_up"])
    freeze_memory()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended templates and environments
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not order:
            return
        child = os.fork()
        if child == 0:
            control.close()
            run_template(socket.socket(fileno=descriptors[0]))
        os.close(descriptors[0])
        control.sendall(_line({"pid": child}))


def import_package(name: str, left_out: tuple[str, ...] = ()) -> None:
    """Import a package with all its modules, those too that its code imports when it needs them.

    Args:
        name: The package.
        left_out: Packages in it whose modules are not imported for their own sake.
    """
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not f"{module.name}.".startswith(tuple(f"{skipped}." for skipped in left_out)):
            importlib.import_module(module.name)


def preload_service_models(services: list[str]) -> None:
    """Load the service descriptions of botocore once here, instead of in every environment (0.2 s each)."""
    if not services:
        return
    boto3: Any = importlib.import_module("boto3")
    boto3.setup_default_session()
    load_neighbour("compact_descriptions").read_compactly(boto3.DEFAULT_SESSION)
    load_neighbour("direct_connection").send_directly(boto3.DEFAULT_SESSION)
    for service in services:
        boto3.client(service, region_name="us-east-1", aws_access_key_id="-", aws_secret_access_key="-")  # noqa: S106  not one


def load_neighbour(name: str) -> Any:
    """Import a file of this folder, which is in no path where modules are searched for."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def warm_up(name: str) -> None:
    """Call a function that does what most environments would do at their first invocation."""
    module, _, function = name.rpartition(".")
    try:
        getattr(importlib.import_module(module), function)()
    except Exception:  # noqa: BLE001  then the first invocation does it, and reports what is wrong
        traceback.print_exc()


def run_template(control: socket.socket) -> NoReturn:
    """Import a function's handler and fork its environments. The first line on the control socket says which."""
    with control.makefile("rb") as orders:
        plan = json.loads(orders.readline())
    if "callback" in plan:
        control.close()
        run_program(plan["callback"])
    os.environ.clear()
    os.environ.update(plan["variables"])
    try:
        handler = load_handler(plan["code"], plan["handler"])
    except BaseException as error:  # noqa: BLE001  any error of the import is the function's answer, even an exit
        control.sendall(_line({"failed": _import_failure(plan["handler"], error)}))
        os._exit(1)
    control.sendall(_line({"ready": True}))
    fork_environments(handler, control)
    os._exit(0)


def run_program(socket_path: str) -> NoReturn:
    """Call back at a socket, and become the program that is named there (decision 0609).

    The connection becomes standard input and output. The first of the descriptors is the log; environment variables
    tell the numbers of the others.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(socket_path)
    start, descriptors, _, _ = socket.recv_fds(connection, 1, MAX_DESCRIPTORS)
    with connection.makefile("rb") as orders:
        plan = json.loads(start + orders.readline())
    connection.sendall(b"%d\n" % os.getpid())
    for number, target in ((connection.fileno(), 0), (connection.fileno(), 1), (descriptors[0], 2)):
        os.dup2(number, target)
    numbers = {name: str(number) for name, number in zip(plan["descriptors"], descriptors, strict=True) if name}
    os.environ.clear()
    os.environ.update(plan["environment"] | numbers)
    os.chdir(plan["directory"])
    sys.path.insert(0, plan["directory"])
    sys.argv[1:] = plan["arguments"]
    gc.enable()  # the package has disabled it, as on AWS (decision 0284)
    runpy.run_module("local.parent_watch", run_name="__main__", alter_sys=True)
    sys.exit()


def freeze_memory() -> None:
    """Keep the garbage collector of forked processes from writing to the memory that they share."""
    gc.collect()
    gc.freeze()


def load_handler(code: str, name: str) -> Handler:
    os.chdir(code)
    sys.path.insert(0, code)
    module, _, function = name.rpartition(".")
    handler: Handler = getattr(importlib.import_module(module.replace("/", ".")), function)
    return handler


def fork_environments(handler: Handler, control: socket.socket) -> None:
    """Fork environments until the emulator closes the control socket."""
    freeze_memory()
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
