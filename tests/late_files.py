"""Let a worker of xdist collect a test file when its turn comes. Until then the file is one test (decision 0653).

Workers agree on the numbers of tests, so each of them collects all tests before it runs some. Here they agree on the
numbers of files.
"""

from typing import Any

import pytest

CHOOSING_OPTIONS = ("markexpr", "keyword", "deselect", "collectonly", "lf", "stepwise")
"""Options that choose tests by what is known of each. Some belong to plugins that may be missing."""


class LateFile(pytest.Item):
    """A file whose tests are unknown as yet."""

    def __init__(self, *, module: pytest.Collector, **given: Any) -> None:
        super().__init__(**given)
        self.module = module

    def runtest(self) -> None:
        raise NotImplementedError("Its tests run, not the file (run_late_file).")

    def collect_tests(self) -> list[pytest.Item]:
        items = list(self.session.genitems(self.module))
        self.config.hook.pytest_collection_modifyitems(session=self.session, config=self.config, items=items)
        return items


def delay_files(collectors: list[pytest.Collector], config: pytest.Config) -> list[pytest.Collector | pytest.Item]:
    """Return what a file is collected as: one item, where a worker runs the whole suite."""
    if not is_worker_of_whole_suite(config):
        return [*collectors]
    return [
        LateFile.from_parent(one.parent, name=one.name, path=one.path, nodeid=one.nodeid, module=one)
        for one in collectors
    ]


def is_worker_of_whole_suite(config: pytest.Config) -> bool:
    """Return whether all tests of all files run, so that none has to be chosen by a name or a mark."""
    chooses = any(getattr(config.option, name, None) for name in CHOOSING_OPTIONS)
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chooses
    return is_whole and hasattr(config, "workerinput")


def run_late_file(file: LateFile, nextitem: pytest.Item | None) -> None:
    """Run the tests of a file. xdist compares reports with its list of items, so each stands there for its file."""
    session, items = file.session, file.collect_tests()
    place = session.items.index(file)
    for index, item in enumerate(items, 1):
        session.items[place] = item
        session.config.hook.pytest_runtest_protocol(
            item=item, nextitem=items[index] if index < len(items) else nextitem
        )
        if session.shouldfail or session.shouldstop:
            break
    session.items[place] = file
    if not items:
        session._setupstate.teardown_exact(nextitem)
