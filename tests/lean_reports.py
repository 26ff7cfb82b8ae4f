"""Send the process that leads the workers of xdist one report for a test that passes, in place of five messages.

That process counts and prints results only. Reading what it is sent took it a third as long as running the tests of a
small file (decision 0503).
"""

import pytest
from _pytest.runner import runtestprotocol

from tests.late_files import LateFile, run_late_file


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test in a worker as pytest does, and report its call, and what has failed or was skipped besides."""
    if isinstance(item, LateFile):
        run_late_file(item, nextitem)
        return True
    if not hasattr(item.config, "workerinput") or needs_all_reports(item.config):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.passed:
            report.keywords, report.sections = {}, []
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def needs_all_reports(config: pytest.Config) -> bool:
    """Return whether times of setups, or what passing tests have printed, are asked for."""
    shows_passed = set(config.option.reportchars) & set("PA")
    return bool(config.option.durations or config.option.xmlpath or shows_passed)
