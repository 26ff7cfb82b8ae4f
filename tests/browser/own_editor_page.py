"""Pages of an editor's origin that use the client, in a real browser, with the local cloud behind it.

    open_example(page, cloud)                         # examples/own-editor
    open_client(page, cloud)                          # an empty page with `window.fermata`
    page.evaluate("async () => …")

The files are served at an origin that the local tenant allows (tests/browser/origin_files.py).
"""

from typing import Any

from playwright.sync_api import Page

from local.cloud import LocalCloud
from tests.browser.origin_files import ORIGIN

EXAMPLE = "examples/own-editor/index.html"
START_CLIENT = """
async ({url, token}) => {
  const module = await import("@fermata/client");
  window.problems = [];
  window.module = module;
  window.newClient = options => new module.Fermata({
    baseUrl: url, token: async () => token, onProblem: problem => problems.push(String(problem)), ...options,
  });
  window.fermata = newClient();
  window.calls = [];
  window.events = [];
  window.read = async turn => { for await (const event of turn.events()) events.push(event); };
  window.until = async condition => { while (!condition()) await new Promise(next => setTimeout(next, 10)); };
}
"""


def note_problems(page: Page) -> list[str]:
    """Collect what the page writes to its console as an error, and what it does not catch."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda entry: problems.append(entry.text) if entry.type == "error" else None)
    return problems


def open_client(page: Page, cloud: LocalCloud) -> Page:
    """Open an empty page with a client in it."""
    page.goto(f"{ORIGIN}/")
    page.evaluate(START_CLIENT, {"url": cloud.url, "token": cloud.token})
    return page


def open_example(page: Page, cloud: LocalCloud) -> Page:
    """Open the example of an editor, as its user does."""
    page.goto(f"{ORIGIN}/{EXAMPLE}?service={cloud.url}#{cloud.token}")
    page.wait_for_selector("html[data-ready]")
    return page


def count_calls(page: Page) -> int:
    count: int = page.evaluate("() => calls.length")
    return count


def list_events(page: Page) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = page.evaluate("() => events")
    return events
