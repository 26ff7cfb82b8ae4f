"""Check what keeps the tests independent of the machine's load, and the quick suite quick."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.quick_suite_samples import count_examples, sample_for_quick_suite
from tests.suite_parts import is_in_part, list_test_files

TESTS = Path(__file__).parents[1]


def test_no_generated_example_has_a_deadline() -> None:
    default = settings()
    assert default.deadline is None
    assert HealthCheck.too_slow in default.suppress_health_check


def test_the_quick_suite_tries_the_first_of_each_few_values() -> None:
    values = sample_for_quick_suite(range(5), every=3)
    assert [value for value in values if isinstance(value, int)] == [0, 3]
    exhaustive = [value for value in values if not isinstance(value, int)]
    assert [parameters.values for parameters in exhaustive] == [(1,), (2,), (4,)]
    assert {mark.name for parameters in exhaustive for mark in parameters.marks} == {"exhaustive"}


def test_the_quick_suite_generates_a_fifth_of_the_examples(pytestconfig: pytest.Config) -> None:
    """Where exhaustive tests are left out, here or in `make check`."""
    is_quick = "not exhaustive" in pytestconfig.option.markexpr
    assert settings().max_examples == (20 if is_quick else 100)
    assert count_examples(150) == (30 if is_quick else 150)
    assert count_examples(1) == 1


def test_every_file_is_in_one_of_two_parts_which_are_about_equal() -> None:
    files = list_test_files()
    parts = [{path for path in files if is_in_part(path, part)} for part in ("1/2", "2/2")]
    assert parts[0] | parts[1] == set(files)
    assert parts[0] & parts[1] == set()
    assert abs(len(parts[0]) - len(parts[1])) <= 1
    assert Path(__file__) in files


def test_a_folder_is_in_every_part() -> None:
    assert all(is_in_part(TESTS / "unit", part) for part in ("1/2", "2/2"))


def test_every_module_that_starts_a_cloud_says_so() -> None:
    """Else `make check` starts it. A fixture named `cloud` says so too (tests/conftest.py)."""
    starting = [path for path in TESTS.rglob("test_*.py") if "with LocalCloud(" in path.read_text()]
    assert len(starting) > 3
    signs = ("mark.cloud", "def cloud(")
    assert [path.name for path in starting if not any(sign in path.read_text() for sign in signs)] == []


def test_only_the_first_conftest_registers_helpers_for_rewriting() -> None:
    """Another test file may have imported the helper before the conftest of a folder is read."""
    others = [path for path in TESTS.rglob("conftest.py") if path.parent != TESTS]
    assert not [path for path in others if "register_assert_rewrite" in path.read_text()]
