"""Import the test files of a process before they are collected: each worker of xdist its own part of them first.

pytest rewrites the assertions of each file that it imports, and keeps the result beside the file. In a new clone each
worker would rewrite all files at the same moment. Now each finds what the others have rewritten (decision 0585).
"""

import contextlib
import importlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.suite_parts import TESTS, list_test_files


def import_own_part(config: pytest.Config) -> None:
    """Import a worker's part of the test files, where all of them are going to be collected."""
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in divide(list_test_files(), number, count):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong with it
            importlib.import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def divide(paths: Sequence[Path], number: int, count: int) -> Sequence[Path]:
    """Return one of `count` runs of neighbours, which import the same helpers."""
    return paths[len(paths) * number // count : len(paths) * (number + 1) // count]
