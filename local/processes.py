"""Start and stop the processes of the local cloud. None of them outlives the process that started it."""

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from local.development_libraries import DEVELOPMENT_LIBRARIES
from local.lock_or_delete_state import EMULATOR_STATE
from local.request_signature import CREDENTIALS_VARIABLE, get_run_credentials

if TYPE_CHECKING:
    import httpx

ROOT = Path(__file__).resolve().parent.parent
PROJECT_PYTHON = ROOT / ".venv/bin/python"
EMULATOR_PYTHON = ROOT / ".venv-emulator/bin/python"
FUNCTION_SERVICES = "dynamodb kms s3 stepfunctions"
"""AWS services that the project's functions call."""
START_TIMEOUT_SECONDS = 120.0
"""The longest wait for a process that prints nothing. Starting takes a second or two; much more on a busy machine."""
STOP_TIMEOUT_SECONDS = 10.0
PAGE_TIMEOUT_SECONDS = 120.0
LOG_TAIL_LINES = 15
MEMORY_VARIABLES = {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
REMOVED_VARIABLES = ("AWS_", "PYTEST_", "ANTHROPIC_", "FERMATA_", "STATE_DIR", "WORK_DIR")


def inherited_environment() -> dict[str, str]:
    """Copy the shell's variables without accounts, keys and settings that are not meant for the local cloud.

    Two arenas of memory are enough for a process: more of them keep what was freed, a part for each thread. The other
    two values are glibc's own first ones. Set, they stay, and what is freed of large bodies goes back to the system.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(REMOVED_VARIABLES)}
    return MEMORY_VARIABLES | kept


def run_environment() -> dict[str, str]:
    """Return `inherited_environment`, with the access key of this run (decision 0230)."""
    return inherited_environment() | {CREDENTIALS_VARIABLE: get_run_credentials().to_text()}


class DidNotStartError(RuntimeError):
    """A process ended, or printed nothing, before it was ready."""


def read_log_tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


class ChildProcess:
    """A process that prints one line when it is ready, and ends when its standard input does.

    It leads its own process group, so that Ctrl-C reaches only the parent, which stops its children in order. Its
    standard input is a pipe from the parent, so that it ends even when the parent is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        inherited_descriptors: Sequence[int] = (),
    ) -> None:
        """Start the process and wait until it is ready.

        Raises:
            DidNotStartError: with the end of `log`.
        """
        self._log = log
        with log.open("ab") as log_file:
            self._process = subprocess.Popen(  # noqa: S603  the project's own programs
                list(command),
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                start_new_session=True,
                pass_fds=inherited_descriptors,
            )
        self.ready_line = self._wait_for_ready_line(command)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def request_stop(self) -> None:
        self._close_input()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def stop(self) -> None:
        """Request the end and wait for it; kill the process when it does not end in time."""
        self.request_stop()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._stdout.close()

    def kill(self) -> None:
        """Kill the process and its group as `kill -9` does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._close_input()
        self._stdout.close()

    def _wait_for_ready_line(self, command: Sequence[str]) -> str:
        if select.select([self._stdout], [], [], START_TIMEOUT_SECONDS)[0] and (line := self._stdout.readline()):
            return line.decode().strip()
        self.kill()
        tail = read_log_tail(self._log)
        raise DidNotStartError(f"`{' '.join(command)}` did not start. The end of {self._log}:\n{tail}")

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


class EmulatorProcess(ChildProcess):
    """The emulated AWS, listening at `endpoint`."""

    def __init__(
        self,
        directory: Path,
        *,
        keep_state: bool = False,
        port: int = 0,
        minute_seconds: float = 60,
        latencies: Path | None = None,
        function_limits: Mapping[str, float] | None = None,
        function_packages: str = "",
        rare_packages: str = "",
        function_warm_up: str = "",
    ) -> None:
        """Start the emulator.

        Args:
            directory: holds its log, unpacked functions and, with `keep_state`, its state.
            keep_state: whether it writes its state down and reads it at the next start, also after a kill.
            port: 0 picks a free one.
            minute_seconds: how long a minute of a schedule lasts.
            latencies: a file of milliseconds that transitions and invocations take.
            function_limits: fields of `ProcessLimits` that differ from their defaults.
            function_packages: packages that are imported once for all functions.
            rare_packages: packages in them that a function imports when it needs them.
            function_warm_up: function that is called once for all functions.
        """
        directory.mkdir(parents=True, exist_ok=True)
        environment = run_environment() | {
            "PYTHONPATH": str(ROOT),
            "GATEWAY_PORT": str(port),
            "FUNCTION_PYTHON": str(PROJECT_PYTHON),
            "FUNCTION_CLIENTS": FUNCTION_SERVICES,
            "FUNCTION_PACKAGES": function_packages,
            "FUNCTION_PACKAGES_LEFT_OUT": rare_packages,
            "FUNCTION_LIBRARIES_HIDDEN": " ".join(DEVELOPMENT_LIBRARIES),
            "FUNCTION_WARM_UP": function_warm_up,
            "WORK_DIR": str(directory / "work"),
            "SCHEDULE_MINUTE_SECONDS": str(minute_seconds),
        }
        if function_limits:
            environment["FUNCTION_LIMITS"] = json.dumps(function_limits)
        if keep_state:
            environment["STATE_DIR"] = str(directory / EMULATOR_STATE)
        if latencies is not None:
            environment["LATENCIES_FILE"] = str(latencies)
        super().__init__([str(EMULATOR_PYTHON), "-m", "local.emulator"], environment, directory / "emulator.log")
        self.endpoint = self.ready_line

    def list_function_processes(self) -> dict[str, list[dict[str, Any]]]:
        """List the processes of every function: `pid`, and whether it is `busy` with an invocation."""
        return dict(self._get_page("/_fermata/processes").json())

    def save_snapshot(self) -> None:
        """Write a snapshot now, which replaces the journal. The emulator does so by itself (decision 0160)."""
        self._get_page("/_fermata/snapshot").raise_for_status()

    def fork_copy(self, configuration: Mapping[str, Any], socket_path: str) -> None:
        """Let the process that functions share fork a copy, which calls back at a socket (`local/forked_process.py`).

        Raises:
            DidNotStartError: There is no copy.
        """
        import httpx  # as below

        from local.signed_pages import RunSignature

        answer = httpx.post(
            self.endpoint + "/_fermata/copies",
            json={"configuration": configuration, "socket": socket_path},
            auth=RunSignature(),
            trust_env=False,
            timeout=START_TIMEOUT_SECONDS,
        )
        if answer.status_code != 200:
            raise DidNotStartError(f"The emulator started no process: {answer.text}")

    def _get_page(self, path: str) -> "httpx.Response":
        import httpx  # imported here: the front door needs other things of this file, and not 4 MB more

        from local.signed_pages import RunSignature

        return httpx.get(self.endpoint + path, auth=RunSignature(), trust_env=False, timeout=PAGE_TIMEOUT_SECONDS)
