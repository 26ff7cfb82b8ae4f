"""The panel in a real browser: beside the editor of examples/own-editor, or alone with a client that a test plays.

panel = PanelPage(page, cloud)             # examples/panel
panel.ask("Add a section.")
panel.wait_for_end()

play_turns(page)                           # a panel alone; `turn.send({...})` in the page plays an event
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.origin_files import ORIGIN
from tests.browser.own_editor_page import note_problems

EXAMPLE = "examples/panel/index.html"
ALONE = f"{ORIGIN}/alone"
PLAY_TURNS = """
async language => {
  await import("@fermata/panel");
  const panel = document.createElement("fermata-panel");
  document.querySelector("fermata-panel").replaceWith(panel);
  Object.assign(document.documentElement, {lang: language, dir: ""});
  const credential = {id: "k1", providerId: "anthropic", displayLabel: "A key"};
  const model = {id: "m1", label: "A model", contextWindow: 200000, capabilities: {visionInput: true}};
  const conversation = {id: "conv", title: "A conversation", messages: [], contextTokens: 0};
  let wake = () => {};
  let waiting = [];
  window.turn = {
    id: "b1", conversationId: "conv",
    send(...events) { waiting.push(...events); wake(); },
    async *events() {
      for (;;) {
        while (waiting.length) {
          const event = waiting.shift();
          yield event;
          if (["done", "error", "cancelled"].includes(event.type)) return;
        }
        await new Promise(done => { wake = done; });
      }
    },
    cancel: async () => {}, detach() {},
  };
  const client = {
    credentials: {list: async () => [credential]}, models: {list: async () => [model]},
    defaults: {list: async () => ({site: {credentialId: "k1", modelId: "m1"}})},
    conversations: {
      create: async () => conversation, get: async () => ({conversation}), list: async () => ({conversations: []}),
    },
    journal: async () => [], start: async () => turn,
  };
  localStorage.clear();
  window.client = client;
  panel.client = client;
}
"""
COMPOSER = "fermata-panel textarea"


class PanelPage:
    """The panel beside an editor that really edits. Each method is called in the browser's thread."""

    def __init__(self, page: Page, cloud: LocalCloud, token: str | None = None) -> None:
        self.page = page
        self.problems = note_problems(page)
        page.set_viewport_size({"width": 1200, "height": 800})
        page.goto(f"{ORIGIN}/{EXAMPLE}?service={cloud.url}#{token or cloud.token}")
        page.wait_for_selector("html[data-ready]")

    def ask(self, prompt: str) -> None:
        self.page.wait_for_selector(f"{COMPOSER}:enabled")
        self.page.fill(COMPOSER, prompt)
        self.page.press(COMPOSER, "Enter")

    def wait_for_end(self) -> None:
        self.page.wait_for_selector("fermata-panel .turn:last-child:not(.running)")
        self.page.wait_for_selector('fermata-panel .send[aria-label="Send"]')

    def press(self, label: str) -> None:
        self.page.get_by_role("button", name=label).click()

    def read_document(self) -> str:
        html: str = self.page.frame_locator("#page").locator("body").inner_html()
        return html

    def wait_for_text(self, text: str) -> None:
        self.page.wait_for_function(
            "text => document.querySelector('fermata-panel').shadowRoot.textContent.includes(text)", arg=text
        )

    def list_calls(self) -> list[str]:
        return self.page.locator("fermata-panel .call-name").all_inner_texts()


def play_panel(page: Page, language: str = "en") -> None:
    """Show a panel alone, with a client that the page plays. In a window that has one already, it takes its place."""
    if page.url != ALONE:
        page.goto(ALONE)
    page.evaluate(PLAY_TURNS, language)
    page.wait_for_selector(f"{COMPOSER}:enabled")


def play_turns(page: Page) -> None:
    """Show a panel alone, and begin a turn whose events the test sends."""
    play_panel(page)
    page.fill(COMPOSER, "Go")
    page.press(COMPOSER, "Enter")
    page.wait_for_selector("fermata-panel .turn")


@pytest.fixture(scope="module")
def lone_window(browser: Chromium) -> Iterator[Page]:
    """A window for panels alone: loading them takes most of the time of a test."""
    window = browser.run(browser.open_page)
    yield window
    browser.run(window.context.close)


@pytest.fixture
def page(browser: Chromium, lone_window: Page) -> Page:
    """The window of the tests before, as if it were new."""
    browser.run(lambda: reset_window(lone_window))
    return lone_window


def reset_window(page: Page) -> None:
    """Take back what a test has set. One that has changed the page's own objects says `window.isSpoiled`."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="null", reduced_motion="null", forced_colors="null")
    page.mouse.move(0, 0)
    if page.evaluate("window.isSpoiled"):
        page.goto("about:blank")
