"""Measure the first paint of the console in a real browser: from the start of the navigation until there is content.

A browser that has seen nothing of the console opens the address. What counts is what a person came for: the page in the
builder with the panel beside it, or the first list of the workspace; not the frame around it.
"""

import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.browser_page import ARGUMENTS, MISSING_TEXT, can_run_pages
from bench.harness import BenchHarness
from bench.report import ResultRow
from local.console_sign_in import make_sign_in_link
from local.install_chromium import find_chromium

MAX_FIRST_PAINT_MS = 1_000
VIEWS = {"editor": "the builder with a page and the panel", "usage": "the first list"}
WATCH = """
window.contentAt = new Promise(resolve => {
  const isVisible = element => element?.getBoundingClientRect().height > 0;
  const hasBuilder = () =>
    isVisible(document.querySelector(".canvas iframe.gjs-frame")?.contentDocument?.querySelector("h1")) &&
    isVisible(document.querySelector("fermata-panel")?.shadowRoot?.querySelector("textarea"));
  const hasList = () => isVisible(document.querySelector("#page .figures, #page .empty, #page table"));
  setTimeout(resolve, 20000, null);
  const look = () => {
    const isThere = location.hash.startsWith("#/editor") ? hasBuilder() : hasList();
    if (isThere) requestAnimationFrame(() => resolve(performance.now()));  // it has been painted then
    else requestAnimationFrame(look);
  };
  look();
});
"""
"""`performance.now()` counts from the start of the navigation."""


def measure_first_paint(harness: BenchHarness, repetitions: int) -> Iterator[ResultRow]:
    """Measure how long an empty browser takes to the content of the builder, and of the workspace."""
    for view, what in VIEWS.items():
        title = f"console: address opened → {what}, nothing cached (p50)"
        target = f"≤ {MAX_FIRST_PAINT_MS:,} ms"
        if not can_run_pages():
            yield ResultRow(f"console.{view}", title, target, MISSING_TEXT)
            continue
        with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop in its thread
            times = thread.submit(_time_views, harness, view, repetitions).result()
        median = statistics.median(times)
        numbers = {"ms": [round(one) for one in times]}
        yield ResultRow(f"console.{view}", title, target, f"{median:.0f} ms", median <= MAX_FIRST_PAINT_MS, numbers)


def _time_views(harness: BenchHarness, view: str, repetitions: int) -> list[float]:
    from playwright.sync_api import sync_playwright

    cloud = harness.cloud
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*ARGUMENTS])
        page = browser.new_page()
        page.goto(make_sign_in_link(cloud.url, cloud.directory))
        page.get_by_role("navigation").wait_for(state="attached")
        cookies = page.context.storage_state()
        page.context.close()
        times: list[float] = []
        for _ in range(repetitions):
            context = browser.new_context(storage_state=cookies, viewport={"width": 1400, "height": 900})
            context.add_init_script(WATCH)
            page = context.new_page()
            page.goto(f"{cloud.url}/console/#/{view}")
            times.append(page.evaluate("window.contentAt"))
            context.close()
        browser.close()
    return times
