"""Run functions in processes: one that all share, a template for each revision, an environment for each invocation."""

import contextlib
import dataclasses
import json
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from local.emulator.runtime.bootstrap import END_OF_LOG

BOOTSTRAP_PATH = Path(__file__).with_name("bootstrap.py")
INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "MALLOC_ARENA_MAX",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
SHARED_VARIABLE_PREFIXES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_EXECUTION_ENV",
    "AWS_LAMBDA_LOG_FORMAT",
    "AWS_LAMBDA_LOG_LEVEL",
    "AWS_LAMBDA_INITIALIZATION_TYPE",
    "LOG_LEVEL",
    "POWERTOOLS_",
    "PYDANTIC_",
    "PYTHON",
)
"""Variables that are read while packages are imported and warmed up. Functions with others share no process."""


@dataclass(frozen=True)
class InvocationOutcome:
    """The result or error of an invocation. `failed` has the shape of a function's error on AWS."""

    result: Any = None
    failed: dict[str, Any] | None = None
    log: str = ""


class EnvironmentFailedError(Exception):
    """The process did not start, or ended before it answered. `outcome` is what AWS reports then."""

    def __init__(self, failed: dict[str, Any], log: str = "") -> None:
        super().__init__(failed["errorMessage"])
        self.outcome = InvocationOutcome(failed=failed, log=log)

    @classmethod
    def from_error(cls, error_type: str, message: str, log: bytes = b"") -> "EnvironmentFailedError":
        log_text = "\n".join(filter(None, [_decode_log(log), message]))
        return cls({"errorType": error_type, "errorMessage": message}, log_text)


@dataclass(frozen=True)
class Preload:
    """What function processes share: packages, descriptions of AWS services, and what a function has prepared."""

    packages: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    warm_up: str = ""
    left_out: tuple[str, ...] = ()
    """Packages in `packages` that a function imports when it needs them."""
    hidden: tuple[str, ...] = ()
    """Libraries that are installed here and that functions do not have on AWS."""

    @classmethod
    def from_environment(cls) -> Self:
        """Read the environment variables whose names begin with `FUNCTION_` (`local/emulator/__main__.py`)."""
        return cls(
            packages=_read_words("FUNCTION_PACKAGES"),
            services=_read_words("FUNCTION_CLIENTS"),
            warm_up=os.environ.get("FUNCTION_WARM_UP", ""),
            left_out=_read_words("FUNCTION_PACKAGES_LEFT_OUT"),
            hidden=_read_words("FUNCTION_LIBRARIES_HIDDEN"),
        )


def _read_words(variable: str) -> tuple[str, ...]:
    return tuple(os.environ.get(variable, "").split())


class SharedProcess:
    """A process that has imported what functions share and forks their templates (decision 0166)."""

    def __init__(self, python: str, preload: Preload, variables: dict[str, str]) -> None:
        """
        Args:
            variables: What packages read from the environment while they are imported.
        """
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        plan = json.dumps(dataclasses.asdict(preload))
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and script
                [python, "-P", str(BOOTSTRAP_PATH), plan, str(theirs.fileno())],
                env=inherited_environment() | variables,
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
        self._lines = self._control.makefile("rb")

    def fork_template(self, control: socket.socket) -> bool:
        """Fork a process that serves the other end of `control`. False when the shared process has ended."""
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._control, [b"t"], [control.fileno()])
            return bool(self._lines.readline())
        return False

    def close(self) -> None:
        self._lines.close()
        self._control.close()
        self._process.wait()


class SharedProcesses:
    """The shared processes by what they are imported with. One that has ended is replaced."""

    def __init__(self, python: str, preload: Preload) -> None:
        self.preload = preload
        self._python = python
        self._lock = threading.Lock()
        self._processes: dict[tuple[tuple[str, str], ...], SharedProcess] = {}

    def fork_template(self, control: socket.socket, variables: dict[str, str]) -> None:
        """Fork a template process for a function with these variables.

        Raises:
            EnvironmentFailedError: The shared process does not start.
        """
        shared_variables = {
            name: value for name, value in variables.items() if name.startswith(SHARED_VARIABLE_PREFIXES)
        }
        key = tuple(sorted(shared_variables.items()))
        with self._lock:
            for _ in range(2):
                if key not in self._processes:
                    self._processes[key] = SharedProcess(self._python, self.preload, shared_variables)
                if self._processes[key].fork_template(control):
                    return
                self._processes.pop(key).close()
        raise EnvironmentFailedError.from_error("Runtime.ExitError", "The process that functions share does not start")

    def fork_program(self, socket_path: str, variables: dict[str, str]) -> None:
        """Fork a process that calls back at a Unix socket, where it is told what it becomes (decision 0609).

        Raises:
            EnvironmentFailedError: The shared process does not start.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.fork_template(theirs, variables)
            ours.sendall(json.dumps({"callback": socket_path}).encode() + b"\n")

    def close(self) -> None:
        with self._lock:
            while self._processes:
                self._processes.popitem()[1].close()


class FunctionTemplate:
    """A process that has imported a function revision and forks environments (decision 0031)."""

    def __init__(self, shared: SharedProcesses, handler: str, code: bytes, variables: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._directory = Path(tempfile.mkdtemp(prefix=f"{variables['AWS_LAMBDA_FUNCTION_NAME']}-"))
        with zipfile.ZipFile(BytesIO(code)) as archive:
            archive.extractall(self._directory)
        self._control, theirs = socket.socketpair()
        self._lines = self._control.makefile("rb")
        environment = inherited_environment() | variables | {"LAMBDA_TASK_ROOT": str(self._directory)}
        plan = {"code": str(self._directory), "handler": handler, "variables": environment}
        with theirs:
            shared.fork_template(theirs, variables)
        self._control.sendall(json.dumps(plan).encode() + b"\n")
        self._await_import()

    def _await_import(self) -> None:
        message = json.loads(self._lines.readline() or "{}")
        if "ready" not in message:
            self.close()
            unknown_error = {
                "errorType": "Runtime.ExitError",
                "errorMessage": "Runtime exited while it imported the handler",
            }
            raise EnvironmentFailedError(message.get("failed", unknown_error))

    def fork_environment(self) -> "ExecutionEnvironment":
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe()
        leash_read, leash_write = os.pipe()
        environment = ExecutionEnvironment(ours, log_read, leash_write)
        answer = b""
        with self._lock, theirs, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._control, [b"f"], [theirs.fileno(), log_write, leash_read])
            answer = self._lines.readline()
        os.close(log_write)
        os.close(leash_read)
        if not answer:
            environment.close()
            raise EnvironmentFailedError.from_error("Runtime.ExitError", "The function's template process has ended")
        environment.pid = json.loads(answer)["pid"]
        return environment

    def close(self) -> None:
        """End the template process. Forked environments finish their invocations."""
        self._lines.close()
        self._control.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class ExecutionEnvironment:
    """A process that serves one invocation at a time."""

    def __init__(self, channel: socket.socket, log: int, leash: int) -> None:
        self.pid = 0
        self._channel = channel
        self._log = log
        self._leash = leash
        self._unread_log = b""
        self._poll = select.poll()
        for descriptor in (channel.fileno(), log):
            self._poll.register(descriptor, select.POLLIN)

    def is_alive(self) -> bool:
        return not any(event & (select.POLLHUP | select.POLLERR) for _, event in self._poll.poll(0))

    def invoke(self, job: dict[str, Any], timeout: float) -> InvocationOutcome:
        """Run one invocation.

        Raises:
            EnvironmentFailedError: when the process ends, or `timeout` seconds pass, before it has answered.
        """
        with contextlib.suppress(BrokenPipeError):
            self._channel.sendall(json.dumps(job).encode() + b"\n")
        answer = bytearray()
        log = bytearray(self._unread_log)
        deadline = time.monotonic() + timeout
        while not (answer.endswith(b"\n") and END_OF_LOG in log):
            if error := self._read_more(answer, log, deadline):
                error_type, message = error
                message = f"RequestId: {job['requestId']} Error: {message.format(timeout=timeout)}"
                raise EnvironmentFailedError.from_error(error_type, message, bytes(log))
        own_log, _, self._unread_log = bytes(log).partition(END_OF_LOG)
        return InvocationOutcome(**json.loads(answer), log=_decode_log(own_log))

    def _read_more(self, answer: bytearray, log: bytearray, deadline: float) -> tuple[str, str] | None:
        """Read from the pipe that is ready, so that neither blocks the other; return an error's type and message."""
        ready = self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            return "Sandbox.Timedout", "Task timed out after {timeout:.2f} seconds"
        for descriptor, _ in ready:
            chunk = os.read(descriptor, 1 << 20)
            (log if descriptor == self._log else answer).extend(chunk)
            if not chunk:
                return "Runtime.ExitError", "Runtime exited without providing a reason"
        return None

    def close(self) -> None:
        """End the process, even if it is busy: it exits when the pipe `leash` is closed."""
        os.close(self._leash)
        os.close(self._log)
        self._channel.close()


def inherited_environment() -> dict[str, str]:
    """Copy the variables that a function may see: where programs and certificates are, and proxies.

    `no_proxy` keeps calls to the emulator away from a proxy, and on macOS away from the system's proxy settings, which
    a forked process must not read.
    """
    proxies = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy")}
    kept = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return kept | proxies | {"no_proxy": "127.0.0.1,localhost", "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}


def _decode_log(log: bytes) -> str:
    return log.replace(END_OF_LOG, b"").decode("utf-8", "replace").rstrip("\n")
