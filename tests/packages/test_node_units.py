"""The packages' own tests that need no cloud and no browser. `make check` runs them where Node.js is installed."""

import json
from pathlib import Path

import pytest

from tests.packages.node_tests import PACKAGES, list_test_files, require_node, require_node_packages, run_node_tests
from tests.packages.schema_cases import list_schema_cases


@pytest.mark.exhaustive
def test_the_client_follows_answers_and_checks_as_its_tests_say(tmp_path: Path) -> None:
    require_node()
    cases = tmp_path / "schema-cases.json"
    cases.write_text(json.dumps(list_schema_cases()))
    report = run_node_tests(list_test_files(PACKAGES / "client" / "test"), {"SCHEMA_CASES": str(cases)})
    report.check()
    assert report.skipped == ()


def test_the_plugin_of_grapesjs_reads_css_as_its_tests_say() -> None:
    require_node()
    run_node_tests(list_test_files(PACKAGES / "grapesjs" / "test")).check()


def test_the_panel_folds_events_and_keeps_its_session_as_its_tests_say() -> None:
    require_node_packages()  # it imports its Markdown parser
    run_node_tests(list_test_files(PACKAGES / "panel" / "test")).check()


def test_the_console_computes_as_its_tests_say() -> None:
    require_node()
    names = ("console_modules.test.js", "console_studio.test.js")
    run_node_tests([Path(__file__).with_name(name) for name in names]).check()


def test_a_node_test_that_fails_is_reported_by_its_name(tmp_path: Path) -> None:
    require_node()
    (tmp_path / "some.test.js").write_text(
        'const { test } = require("node:test");\n'
        'test("cheese is blue", () => { throw new Error("it is yellow"); });\n'
        'test("milk is white", () => {});\n'
    )
    report = run_node_tests([tmp_path / "some.test.js"])
    assert report.passed == ("milk is white",)
    with pytest.raises(AssertionError, match=r"cheese is blue \(some\.test\.js\)[\s\S]*it is yellow"):
        report.check()
