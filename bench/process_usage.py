"""Read how much memory and processor time the processes of the local cloud take, from Linux's /proc."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PSS_LINE = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
USER_TIME_FIELD = 11
"""Index of the user time in /proc/<pid>/stat after the command's name; the system time follows."""


@dataclass(frozen=True)
class MemoryUsage:
    process_count: int
    pss_mb: float
    """Proportional set sizes: memory that n processes share counts 1/n in each."""


def is_available() -> bool:
    return (PROC / "self/smaps_rollup").exists()


def list_process_tree(roots: Iterable[int]) -> list[int]:
    """List processes and all their descendants, each once: a root may descend from another one."""
    children: dict[int, list[int]] = {}
    for directory in PROC.glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(int(_read_stat(int(directory.name))[1]), []).append(int(directory.name))
    found: dict[int, None] = {}
    pending = list(roots)
    while pending:
        pid = pending.pop()
        if pid not in found:
            found[pid] = None
            pending += children.get(pid, [])
    return list(found)


def read_memory(roots: Iterable[int]) -> MemoryUsage:
    """Read the memory of processes and their descendants. One that ends meanwhile is left out."""
    return read_memory_of(list_process_tree(roots))


def read_memory_of(pids: Iterable[int]) -> MemoryUsage:
    """Read the memory of these processes only."""
    sizes_kb: list[int] = []
    for pid in pids:
        with suppress(OSError):
            match = PSS_LINE.search((PROC / str(pid) / "smaps_rollup").read_text())
            if match:
                sizes_kb.append(int(match[1]))
    return MemoryUsage(len(sizes_kb), sum(sizes_kb) / 1024)


def read_cpu_seconds(roots: Iterable[int]) -> float:
    """Read the processor time that processes and their descendants have taken so far."""
    ticks = 0
    for pid in list_process_tree(roots):
        with suppress(OSError):
            ticks += sum(map(int, _read_stat(pid)[USER_TIME_FIELD : USER_TIME_FIELD + 2]))
    return ticks / CLOCK_TICKS_PER_SECOND


def _read_stat(pid: int) -> list[str]:
    """Read the fields of /proc/<pid>/stat after the command's name, which may contain spaces."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
