"""Start a process of the local cloud as a copy of the one that has imported what functions share (decision 0609).

The emulator lets that process fork. The copy calls back at a Unix socket that exists until then, and is given its
settings and descriptors there. The connection is its standard input and output, as pipes are of a `ChildProcess`: it
ends with the input, and says on the output when it is ready.
"""

import contextlib
import json
import os
import select
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from local.processes import (
    ROOT,
    START_TIMEOUT_SECONDS,
    STOP_TIMEOUT_SECONDS,
    ChildProcess,
    DidNotStartError,
    read_log_tail,
)

MAX_FOLDER_BYTES = 75
SHORT_FOLDER = "/tmp"  # noqa: S108  in it a folder is made that only this user can enter


class ForkedProcess:
    """A process that has called back. It leads its own process group, and outlives the emulator."""

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        log: Path,
        *,
        ask_for_copy: Callable[[str], None],
        descriptors: Mapping[str, int] | None = None,
    ) -> None:
        """Start the process and wait until it is ready.

        Args:
            module: What it runs, under `local/parent_watch.py`.
            ask_for_copy: Is called with the path of the socket at which the copy calls back.
            descriptors: What it inherits, by the environment variables that tell it their numbers.

        Raises:
            DidNotStartError: with the end of `log`.
        """
        self.module = module
        self._log = log
        plan = {"arguments": [module], "environment": dict(environment), "directory": str(ROOT)}
        with log.open("ab") as log_file:
            self._connection = self._accept_copy(ask_for_copy)
            self._send_plan(plan, {"": log_file.fileno(), **(descriptors or {})})
        try:
            self.pid = int(self._read_line() or self._fail())
            self.ready_line = self._read_line() or self._fail()
        except DidNotStartError:
            self._connection.close()  # with which it ends, should it only be slow
            raise

    def is_running(self) -> bool:
        return not self._has_ended(0)

    def request_stop(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self._signal(os.kill, signal.SIGTERM)

    def stop(self) -> None:
        """Request the end and wait for it; kill the process when it does not end in time."""
        self.request_stop()
        if not self._has_ended(STOP_TIMEOUT_SECONDS):
            self.kill()
        self._connection.close()

    def kill(self) -> None:
        """Kill the process and its group as `kill -9` does."""
        self._signal(os.killpg, signal.SIGKILL)
        self._has_ended(STOP_TIMEOUT_SECONDS)
        self._connection.close()

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        if not self._has_ended(0):  # otherwise the number may be another process's by now
            with contextlib.suppress(ProcessLookupError):
                send(self.pid, number)

    def _has_ended(self, seconds: float) -> bool:
        """Return whether the process has ended, or ends within this time: it holds the connection until then."""
        if self._connection.fileno() < 0:
            return True
        if not select.select([self._connection], [], [], seconds)[0]:
            return False
        with contextlib.suppress(OSError):
            return self._connection.recv(1, socket.MSG_PEEK) == b""
        return True

    def _accept_copy(self, ask_for_copy: Callable[[str], None]) -> socket.socket:
        """Ask for a copy and return its connection."""
        temporary = tempfile.TemporaryDirectory(prefix="fermata-", dir=_choose_socket_folder())
        with temporary as folder, socket.socket(socket.AF_UNIX) as listener:
            path = f"{folder}/socket"
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(START_TIMEOUT_SECONDS)
            ask_for_copy(path)
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                self._fail()
        connection.settimeout(START_TIMEOUT_SECONDS)
        return connection

    def _send_plan(self, plan: dict[str, Any], descriptors: Mapping[str, int]) -> None:
        line = json.dumps(plan | {"descriptors": list(descriptors)}).encode() + b"\n"
        with contextlib.suppress(OSError):  # then it has ended, and the first line is missing
            socket.send_fds(self._connection, [line[:1]], list(descriptors.values()))
            self._connection.sendall(line[1:])

    def _read_line(self) -> str:
        """Read a line, and no byte behind it."""
        line = bytearray()
        with contextlib.suppress(OSError):
            while not line.endswith(b"\n") and (byte := self._connection.recv(1)):
                line += byte
        return line.decode().strip() if line.endswith(b"\n") else ""

    def _fail(self) -> Any:
        """Report that the process did not start.

        Raises:
            DidNotStartError: always, with the end of the log.
        """
        raise DidNotStartError(f"`{self.module}` did not start. The end of {self._log}:\n{read_log_tail(self._log)}")


def _choose_socket_folder() -> str:
    """Return the folder of temporary files, or a shorter path: that of a socket has about 100 bytes at most."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= MAX_FOLDER_BYTES else SHORT_FOLDER


LocalProcess = ChildProcess | ForkedProcess
