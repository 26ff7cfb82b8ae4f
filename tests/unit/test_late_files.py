"""A worker of xdist collects a file when its turn comes, and loses neither its failures nor the end of its fixtures."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.late_files import CHOOSING_OPTIONS, is_worker_of_whole_suite

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest
from tests.late_files import delay_files
from tests.lean_reports import pytest_runtest_protocol

@pytest.hookimpl(wrapper=True)
def pytest_collect_file(parent):
    return delay_files((yield), parent.config)
"""
FILES = {
    "test_a.py": """
import sys

import pytest

@pytest.fixture(scope="module")
def opened():
    yield
    sys.is_closed = True

@pytest.mark.parametrize("number", range(3))
def test_passes(opened, number):
    assert "test_b" not in sys.modules
""",
    "test_b.py": "raise ValueError('not importable')",
    "test_c.py": """
import sys

def test_begins_after_the_files_before():
    assert sys.is_closed

def test_fails():
    assert 1 == 2
""",
    "conftest.py": CONFTEST,
}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("suite")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text(f"[pytest]\ntestpaths = .\npythonpath = {ROOT}\n")
    command = [sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder"]
    done = subprocess.run([*command, "-p", "no:cacheprovider"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_each_test_is_reported(output: str) -> None:
    assert re.search(r"\b1 failed, 4 passed, 1 error\b", output), output
    assert "1 worker [3 items]" in output, "files, not tests"


def test_what_fails_is_said(output: str) -> None:
    assert "ValueError: not importable" in output
    assert "FAILED test_c.py::test_fails" in output


@pytest.mark.parametrize("option", CHOOSING_OPTIONS)
def test_where_tests_are_chosen_they_are_collected_first(option: str) -> None:
    source = pytest.Config.ArgsSource.TESTPATHS
    config: Any = SimpleNamespace(option=SimpleNamespace(), args_source=source, workerinput={})
    assert is_worker_of_whole_suite(config)
    setattr(config.option, option, "chosen")
    assert not is_worker_of_whole_suite(config)


def test_the_options_by_which_tests_are_chosen_exist(pytestconfig: pytest.Config) -> None:
    assert [name for name in CHOOSING_OPTIONS[:4] if not hasattr(pytestconfig.option, name)] == []
