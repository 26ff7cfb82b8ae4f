"""The processes that run a function: one template per revision, one environment per invocation at a time."""

import contextlib
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
from typing import Any

from local.emulator.runtime.bootstrap import END_OF_LOG

BOOTSTRAP_PATH = Path(__file__).with_name("bootstrap.py")
INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


@dataclass(frozen=True)
class InvocationOutcome:
    """What an invocation came to. `failed` has the shape AWS gives to a function's error."""

    result: Any = None
    failed: dict[str, Any] | None = None
    log: str = ""


class EnvironmentFailedError(Exception):
    """The process did not start, or ended before it answered. The outcome says what AWS would."""

    def __init__(self, failed: dict[str, Any], log: str = "") -> None:
        super().__init__(failed["errorMessage"])
        self.outcome = InvocationOutcome(failed=failed, log=log)

    @classmethod
    def from_error(cls, kind: str, message: str, log: bytes = b"") -> "EnvironmentFailedError":
        return cls({"errorType": kind, "errorMessage": message}, "\n".join(filter(None, [_text(log), message])))


class FunctionTemplate:
    """A function revision, imported. Raises NoAnswerError when the import fails."""

    def __init__(self, python: str, handler: str, code: bytes, variables: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._directory = Path(tempfile.mkdtemp(prefix=f"{variables['AWS_LAMBDA_FUNCTION_NAME']}-"))
        with zipfile.ZipFile(BytesIO(code)) as archive:
            archive.extractall(self._directory)
        self._control, self._process = self._start(python, handler, variables)
        self._lines = self._control.makefile("rb")
        self._await_import()

    def _start(
        self, python: str, handler: str, variables: dict[str, str]
    ) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        clients = os.environ.get("FUNCTION_CLIENTS", "").split()
        plan = json.dumps({"code": str(self._directory), "handler": handler, "clients": clients})
        environment = inherited_environment() | variables | {"LAMBDA_TASK_ROOT": str(self._directory)}
        with theirs:
            process = subprocess.Popen(  # noqa: S603  our own interpreter and script
                [python, "-P", str(BOOTSTRAP_PATH), plan, str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
        return ours, process

    def _await_import(self) -> None:
        said = json.loads(self._lines.readline() or "{}")
        if "ready" not in said:
            self.close()
            unexplained = {
                "errorType": "Runtime.ExitError",
                "errorMessage": "Runtime exited while it imported the handler",
            }
            raise EnvironmentFailedError(said.get("failed", unexplained))

    def fork_environment(self) -> "ExecutionEnvironment":
        ours, theirs = socket.socketpair()
        log_read, log_write = os.pipe()
        leash_read, leash_write = os.pipe()
        environment, answer = ExecutionEnvironment(ours, log_read, leash_write), b""
        with self._lock, theirs, contextlib.suppress(BrokenPipeError):
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
        """Forked environments are left to finish what they are doing."""
        self._lines.close()
        self._control.close()
        self._process.wait()
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
        """Raises NoAnswerError when the process ends, or `timeout` seconds pass, before it has answered."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.sendall(json.dumps(job).encode() + b"\n")
        answer, log = bytearray(), bytearray(self._unread_log)
        deadline = time.monotonic() + timeout
        while not (answer.endswith(b"\n") and END_OF_LOG in log):
            if trouble := self._read_more(answer, log, deadline):
                kind, what = trouble
                what = what.format(timeout=timeout)
                raise EnvironmentFailedError.from_error(
                    kind, f"RequestId: {job['requestId']} Error: {what}", bytes(log)
                )
        mine, _, self._unread_log = bytes(log).partition(END_OF_LOG)
        return InvocationOutcome(**json.loads(answer), log=_text(mine))

    def _read_more(self, answer: bytearray, log: bytearray, deadline: float) -> tuple[str, str] | None:
        """Read whichever end has something, so that neither blocks the other; says what went wrong, if it did."""
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
        """End the process, whatever it is doing: it dies when its leash does."""
        os.close(self._leash)
        os.close(self._log)
        self._channel.close()


def inherited_environment() -> dict[str, str]:
    """What a function sees of the machine: nothing of the developer's shell but where programs and certificates are.

    `no_proxy` keeps calls to the emulator away from a proxy, and on macOS away from the system's proxy settings,
    which a forked process must not ask for.
    """
    proxies = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy")}
    kept = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return kept | proxies | {"no_proxy": "127.0.0.1,localhost", "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES"}


def _text(log: bytes) -> str:
    return log.replace(END_OF_LOG, b"").decode("utf-8", "replace").rstrip("\n")
