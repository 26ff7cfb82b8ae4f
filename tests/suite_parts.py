"""Choose the test files of a process: every Nth, `pytest --part 1/2`, and none in vain (decision 0293)."""

import functools
import re
from pathlib import Path

TESTS = Path(__file__).parent
_MARK_OF_WHOLE_FILE = re.compile(r"^pytestmark = .*\bmark\.(cloud|browser|exhaustive)\b", re.MULTILINE)


@functools.cache
def list_test_files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def is_in_part(path: Path, part: str) -> bool:
    """Return whether a file is one of every Nth, beginning with the Kth, by a part `K/N`. Other files are in all."""
    number, count = map(int, part.split("/"))
    return path not in list_test_files() or list_test_files().index(path) % count == number - 1


def is_left_out(path: Path, marks: str) -> bool:
    """Return whether an expression such as `not cloud and not browser` leaves out the mark that the whole file has."""
    mark = _MARK_OF_WHOLE_FILE.search(path.read_text()) if path in list_test_files() else None
    return mark is not None and f"not {mark[1]}" in marks
