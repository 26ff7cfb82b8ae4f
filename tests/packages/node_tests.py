"""Run tests of the npm packages with Node.js, and report each one that fails by its name.

report = run_node_tests([CLIENT / "test"], {"FERMATA_URL": cloud.url})
report.check()                                # raises an AssertionError with the names and reasons
"""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.install_node_packages import INSTALLED, MISSING_TEXT, PACKAGES, node_is_installed

CLIENT = PACKAGES / "client"
REPORTER = Path(__file__).with_name("json_lines_reporter.mjs")
TEST_TIMEOUT_MS = 300_000
"""A far backstop for what hangs."""


@dataclass(frozen=True)
class NodeTestReport:
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    """Name and reason of each test that failed."""
    skipped: tuple[str, ...]
    output: str
    return_code: int

    def check(self) -> None:
        """Check that all tests passed, and that there were any.

        Raises:
            AssertionError: Some failed; the message has their names and reasons.
        """
        assert not self.failed, "\n\n".join(["Tests of Node.js failed:", *self.failed, self.output[-3000:]])
        assert self.return_code == 0, self.output[-3000:]
        assert self.passed, f"No test ran. {self.output[-3000:]}"


def require_node() -> None:
    """Skip the test where Node.js is missing. `make test` installs it first."""
    if not node_is_installed():
        pytest.skip(MISSING_TEXT)


def require_node_packages() -> None:
    """Skip the test where Node.js or the packages of the lock are missing."""
    require_node()
    if not INSTALLED.exists():
        pytest.skip("The npm packages are not installed: python3 -m local.install_node_packages")


def list_test_files(folder: Path) -> list[Path]:
    """List the test files that are right in a folder."""
    return sorted(folder.glob("*.test.js"))


def run_node_tests(files: Iterable[Path], environment: Mapping[str, str] | None = None) -> NodeTestReport:
    """Run test files, each in a process of its own."""
    arguments = ["--test", f"--test-reporter={REPORTER}", f"--test-timeout={TEST_TIMEOUT_MS}", "--no-warnings"]
    done = subprocess.run(
        ["node", *arguments, *map(str, files)],
        cwd=PACKAGES,
        env={**os.environ, "NODE_OPTIONS": "", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    tests = [line for line in lines if "name" in line]
    output = "".join(line["output"] for line in lines if "output" in line) + done.stderr
    return NodeTestReport(
        passed=tuple(test["name"] for test in tests if test["passed"] and not test["skipped"]),
        failed=tuple(f"{_describe(test)}\n{test['reason']}" for test in tests if not test["passed"]),
        skipped=tuple(test["name"] for test in tests if test["skipped"]),
        output=output,
        return_code=done.returncode,
    )


def _describe(test: Mapping[str, Any]) -> str:
    return f"✗ {test['name']} ({Path(test['file']).name})"
