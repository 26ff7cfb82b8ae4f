"""Choose the tests of a process: every Nth file, `pytest --part 1/3`, no file in vain, and a few cases of a test.

Decisions 0293 and 0401 say why.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
QUICK_CASES = 2
"""How many cases of one test the quick suite tries at most."""
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


def list_exhaustive_cases(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """List the cases that the quick suite leaves out: of a test with many of them, all but a few, evenly chosen.

    What is marked as exhaustive is none of the cases.
    """
    cases_by_test = defaultdict(list)
    for item in items:
        if item.get_closest_marker("exhaustive") is None:
            cases_by_test[item.nodeid.partition("[")[0]].append(item)
    return [
        case
        for cases in cases_by_test.values()
        for index, case in enumerate(cases)
        if index % -(-len(cases) // QUICK_CASES) != 0
    ]
