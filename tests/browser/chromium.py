"""Run Chromium, driven by Playwright, in a thread of its own (decision 0233).

Playwright's synchronous interface keeps an event loop in its thread, in which `asyncio.run` then fails. So it has one
for itself, and the tests that use it run there (tests/browser/conftest.py).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from local.install_chromium import MISSING_TEXT, find_chromium
from tests.browser.origin_files import ORIGIN, OriginFilesServer
from tests.threaded_server import serve_in_thread
from tests.waiting import BACKSTOP_SECONDS

T = TypeVar("T")
BACKSTOP_MS = 1000 * BACKSTOP_SECONDS
"""When an expectation, an action or a navigation gives up. No test has a shorter one: what a person sees comes later on
a busy machine, and then at once.
"""
ColorScheme = Literal["light", "dark"]
COLOR_SCHEMES: tuple[ColorScheme, ...] = ("light", "dark")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=HttpsUpgrades,LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests"
    ",WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess",
)
"""What only new browsers refuse to a page (requests from public pages to this machine) is allowed, as in older ones.
No window has pages of its address bar, nor a process for a page to come: they take half of a window's processor time
(decision 0505).
"""
NAMES = ", ".join(
    (
        "MAP {origin} 127.0.0.1:{port}",
        *("MAP 127.0.0.1 127.0.0.1", "MAP localhost localhost"),
        *("MAP *.example 127.0.0.1", "MAP * ~NOTFOUND"),
    )
)
"""`*.example` leads to this machine, as a hostile name server may say. Nothing leads beyond it. The origin of an editor
leads to the server of its files.
"""


class Chromium:
    """A browser with a new profile. All its methods but `run` and `end` are called in its thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")
        self._serving = ExitStack()
        self._files = self._serving.enter_context(serve_in_thread(OriginFilesServer()))
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def run(self, function: Callable[[], T]) -> T:
        """Call a function in the browser's thread."""
        return self._thread.submit(function).result()

    def start(self) -> None:
        program = find_chromium()
        if program is None:
            raise RuntimeError(MISSING_TEXT)
        names = NAMES.format(origin=urlsplit(ORIGIN).netloc, port=self._files.server_port)
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=program, args=[*ARGUMENTS, f"--host-resolver-rules={names}"]
        )

    def open_page(self, **options: Any) -> Page:
        """Open a window that shares nothing with others.

        Args:
            options: Of the browser's context, such as `locale`.
        """
        assert self._browser is not None
        context = self._browser.new_context(**options)
        context.set_default_timeout(BACKSTOP_MS)
        return context.new_page()

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()

    def end(self) -> None:
        """Close the browser, and end its thread and the server of its files."""
        self.run(self.close)
        self._serving.close()
        self._thread.shutdown()
