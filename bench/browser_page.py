"""Run a script in a page of a real browser that can load the files of `packages/`."""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.install_chromium import find_chromium
from local.install_node_packages import INSTALLED, PACKAGES

MISSING_TEXT = "not measured: Chromium or the npm packages are missing"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def can_run_pages() -> bool:
    return find_chromium() is not None and INSTALLED.exists()


def evaluate_in_browser(html: str, script: str, argument: Any, *, browser_arguments: Sequence[str] = ()) -> Any:
    """Open a page with this HTML at the root of `packages/`, and return what the script returns."""
    with ThreadPoolExecutor(1) as thread, _serve_packages(html) as url:  # Playwright keeps an event loop in its thread
        return thread.submit(_evaluate, url, script, argument, [*ARGUMENTS, *browser_arguments]).result()


@contextlib.contextmanager
def _serve_packages(html: str) -> Iterator[str]:
    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(PACKAGES))

        def do_GET(self) -> None:
            if self.path != "/":
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def _evaluate(url: str, script: str, argument: Any, arguments: Sequence[str]) -> Any:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*arguments])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(url)
        measured = page.evaluate(script, argument)
        browser.close()
    return measured
