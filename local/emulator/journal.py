"""Write changes of state to a journal before the responses that acknowledge them (decision 0160).

A journal is a numbered file. Each line holds a checksum and a JSON list of changes that belong together. A transaction
is on one line, because lines are written only between two steps of the event loop that makes it. Changes are whole
values, not requests, so a line can be applied again and without the lines before it. `write()` hands a line to the
kernel, so that it outlives this process, but not a power cut.
"""

import asyncio
import json
import logging
import os
import re
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_JOURNAL_BYTES = 16 * 1024 * 1024
"""Size from which a snapshot replaces the journal."""
JOURNAL_NAME = re.compile(r"journal-(\d+)")
CHECKSUM_LENGTH = 8
Change = list[Any]

logger = logging.getLogger("journal")
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Journal:
    """The journal of this process. It records nothing until `open`, and thus nothing when no state is kept."""

    def __init__(self) -> None:
        self.byte_count = 0
        """Bytes that the next start would read."""
        self._directory: Path | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._descriptor = -1
        self._number = 0
        self._pending: list[str] = []
        self._is_line_torn = False
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        return self.byte_count > MAX_JOURNAL_BYTES

    def open(self, directory: Path, loop: asyncio.AbstractEventLoop) -> None:
        """Record changes from now on, in a new file behind those that are there.

        Args:
            loop: runs the requests, and thus makes the transactions.
        """
        self._loop = loop
        journals = list_journals(directory)
        self._directory = directory
        self._number = max((number for number, _ in journals), default=0)
        self.byte_count = sum(file.stat().st_size for _, file in journals)
        self._open_next_file()

    def append(self, *change: Any) -> None:
        """Add a change. It is written by the next `flush`, which another thread than the main one asks for.

        Such a thread does not write itself: it would write the first half of a transaction that is being made. Nor has
        it a line of its own, because the journal keeps the order in which an item or execution changes (decision 0163).
        """
        if self._directory is None:
            return
        text = _encode(change)
        with self._lock:
            self._pending.append(text)
        if threading.current_thread() is not threading.main_thread():
            self._flush_soon()

    def flush(self) -> None:
        """Write the changes so far. Call this before a response says that they were made.

        Raises:
            OSError: They could not be written, and will be with the next call.
        """
        if not self._pending:
            return
        with self._lock:
            body = f"[{','.join(self._pending)}]".encode()
            self._write_line(b"%0*x %b\n" % (CHECKSUM_LENGTH, zlib.crc32(body), body))
            self._pending.clear()

    def _flush_soon(self) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self.flush)
        except RuntimeError:  # the loop is closed: no transaction is being made any more
            self.flush()

    def start_next_file(self) -> int:
        """Write what follows to another file, and return its number."""
        self.flush()
        with self._lock:
            os.close(self._descriptor)
            self._open_next_file()
        return self._number

    def forget_bytes(self, count: int) -> None:
        """Count the bytes no longer that a snapshot has replaced."""
        with self._lock:
            self.byte_count -= count

    def _open_next_file(self) -> None:
        assert self._directory is not None
        self._number += 1
        file = self._directory / f"journal-{self._number}"
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._is_line_torn = False

    def _write_line(self, line: bytes) -> None:
        left = memoryview(b"\n" + line if self._is_line_torn else line)
        self._is_line_torn = True
        while left:
            left = left[os.write(self._descriptor, left) :]
        self._is_line_torn = False
        self.byte_count += len(line)


def list_journals(directory: Path) -> list[tuple[int, Path]]:
    """List the journals of a state directory with their numbers, the oldest first."""
    files = directory.iterdir() if directory.exists() else ()
    return sorted((int(name[1]), file) for file in files if (name := JOURNAL_NAME.fullmatch(file.name)))


def read_changes(file: Path) -> Iterator[Change]:
    """Read the changes of a journal. A damaged line is logged and left out: a kill tears the line it interrupts."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            changes = _parse_line(line)
            if changes is None:
                logger.warning("Line %d of %s is damaged and left out (%d bytes).", number, file, len(line))
            else:
                yield from changes


def _parse_line(line: bytes) -> list[Change] | None:
    if line == b"\n":
        return []  # it ends a line that could be written in part only
    checksum, body = line[:CHECKSUM_LENGTH], line[CHECKSUM_LENGTH + 1 : -1]
    if not line.endswith(b"\n") or checksum != b"%0*x" % (CHECKSUM_LENGTH, zlib.crc32(body)):
        return None
    changes: list[Change] = json.loads(body)
    return changes


change_journal = Journal()
