"""Fixtures of the tests in a real browser.

    def test_…(page: Page) -> None:       # marked `browser` by asking for it

`browser` is one Chromium for all tests of a process, `page` a new window of it, `console` one with the console, and
`editor` a GrapesJS editor with the plugin in a window of its own. `new_prompt` makes prompts that the demo model
answers by a script. Tests that use the browser run in its thread.
"""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from tests.browser.chromium import BACKSTOP_MS, Chromium
from tests.browser.console_page import ConsolePage
from tests.browser.grapesjs_editor import GrapesEditor, serve_editor
from tests.e2e.demo_model_client import DemoModelClient, Step, script_marker

expect.set_options(timeout=BACKSTOP_MS)


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


@pytest.fixture(scope="module")
def editor_window(browser: Chromium) -> Iterator[GrapesEditor]:
    """An editor that no test has started yet."""
    with serve_editor() as url:
        window = browser.run(browser.open_page)
        yield browser.run(lambda: GrapesEditor(window, url))
        browser.run(window.context.close)


@pytest.fixture(scope="module")
def editor(browser: Chromium, editor_window: GrapesEditor) -> GrapesEditor:
    browser.run(editor_window.start)
    return editor_window


@pytest.fixture(scope="module")
def console_window(browser: Chromium, cloud: LocalCloud) -> Iterator[ConsolePage]:
    """A window that shows the console to all tests of a file: loading it takes most of the time of a test."""
    window = browser.run(browser.open_page)
    yield browser.run(lambda: ConsolePage(window, cloud))
    browser.run(window.context.close)


@pytest.fixture
def console(browser: Chromium, console_window: ConsolePage) -> ConsolePage:
    """The window of the tests before, signed in, with nothing of what they have stored."""
    browser.run(console_window.begin_anew)
    return console_window


@pytest.fixture
def new_prompt(cloud: LocalCloud) -> Iterator[Callable[..., str]]:
    """Make prompts that the demo model answers with the given steps."""
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)

    def make(*steps: Step) -> str:
        return f"Please. {script_marker(model.add_script(*steps))}"

    yield make
    model.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that uses the browser in the browser's thread."""
    chromium = pyfuncitem.funcargs.get("browser")
    if not isinstance(chromium, Chromium):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    chromium.run(lambda: pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
