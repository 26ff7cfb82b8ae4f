"""Processes of the local cloud: none outlives the one that started it."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
PROJECT_PYTHON = ROOT / ".venv/bin/python"
FUNCTION_SERVICES = "dynamodb kms s3 stepfunctions"
"""What the project's functions talk to."""
EMULATOR_PYTHON = ROOT / ".venv-emulator/bin/python"


def inherited_environment() -> dict[str, str]:
    """The shell's variables, without accounts, keys and settings that are not meant for the local cloud."""
    apart = ("AWS_", "PYTEST_", "ANTHROPIC_", "FERMATA_", "STATE_DIR", "WORK_DIR")
    return {name: value for name, value in os.environ.items() if not name.startswith(apart)}


class DidNotStartError(RuntimeError):
    """A process ended, or said nothing, instead of becoming ready."""


class ChildProcess:
    """A process that says one line when it is ready, and ends when its standard input does.

    It has its own process group, so that Ctrl-C reaches us alone and we stop things in order; and since the pipe
    breaks when we are gone, even a kill of ours is the end of it.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], log: Path, start_timeout_seconds: float = 30.0
    ) -> None:
        self._log = log
        with log.open("ab") as sink:
            self._process = subprocess.Popen(  # noqa: S603  the project's own programs
                list(command),
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                start_new_session=True,
            )
        self.ready_line = self._first_line(command, start_timeout_seconds)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def request_stop(self) -> None:
        self._close_input()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Ask it to end; insist when it does not."""
        self.request_stop()
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._output().close()

    def kill(self) -> None:
        """As a power cut would: nothing is saved."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._close_input()
        self._output().close()

    def _first_line(self, command: Sequence[str], patience: float) -> str:
        deadline, output = time.monotonic() + patience, self._output()
        while select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if line := output.readline():
                return line.decode().strip()
            break
        self.kill()
        tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
        raise DidNotStartError(f"`{' '.join(command)}` did not start. The end of {self._log}:\n{tail}")

    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _close_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()


class EmulatorProcess(ChildProcess):
    """AWS on this machine, listening at `endpoint`. A schedule's minute lasts `minute` seconds."""

    def __init__(self, directory: Path, *, keep_state: bool = False, port: int = 0, minute_seconds: float = 60) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        env = inherited_environment() | {
            "PYTHONPATH": str(ROOT),
            "GATEWAY_PORT": str(port),
            "FUNCTION_PYTHON": str(PROJECT_PYTHON),
            "FUNCTION_CLIENTS": FUNCTION_SERVICES,
            "WORK_DIR": str(directory / "work"),
            "SCHEDULE_MINUTE_SECONDS": str(minute_seconds),
        }
        if keep_state:
            env["STATE_DIR"] = str(directory / "state")
        super().__init__([str(EMULATOR_PYTHON), "-m", "local.emulator"], env, directory / "emulator.log")
        self.endpoint = self.ready_line

    def list_function_processes(self) -> dict[str, list[dict[str, Any]]]:
        """The processes of every function: `pid`, and whether it is `busy` with an invocation."""
        return dict(httpx.get(f"{self.endpoint}/_fermata/processes", trust_env=False).json())

    def save_snapshot(self) -> None:
        """Write everything down now; it does so by itself every second or so while things change."""
        httpx.get(f"{self.endpoint}/_fermata/snapshot", trust_env=False, timeout=60).raise_for_status()
