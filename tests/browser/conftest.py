"""Fixtures of the tests in a real browser.

    def test_…(page: Page) -> None:       # marked `browser` by asking for it

`browser` is one Chromium for all tests of a process, `page` a new window of it. Tests that use them run in the
browser's thread.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import Chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    chromium = Chromium()
    try:
        chromium.run(chromium.start)
        yield chromium
    finally:
        chromium.end()


@pytest.fixture
def page(browser: Chromium) -> Iterator[Page]:
    window = browser.run(browser.open_page)
    yield window
    browser.run(window.context.close)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that uses the browser in the browser's thread."""
    chromium = pyfuncitem.funcargs.get("browser")
    if not isinstance(chromium, Chromium):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    chromium.run(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
