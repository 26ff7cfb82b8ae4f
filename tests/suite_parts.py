"""Divide the test files among processes that run beside each other: `pytest --part 1/2` (decision 0293)."""

import functools
from pathlib import Path

TESTS = Path(__file__).parent


@functools.cache
def list_test_files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def is_in_part(path: Path, part: str) -> bool:
    """Return whether a file is one of every Nth, beginning with the Kth, by a part `K/N`. Other files are in all."""
    number, count = map(int, part.split("/"))
    return path not in list_test_files() or list_test_files().index(path) % count == number - 1
