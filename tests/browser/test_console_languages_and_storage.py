"""The console in another language, and in a browser that stores nothing, little, or what another tab deletes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.console_page import PAGES, ConsolePage, find_accessibility_problems

ENGLISH = ("Open", "Save", "Cancel", "Delete", "Loading", "Add a", "Undo", "Sign", "Show", " of ", " the ", " is ")
BUT_COLOURS = {"rules": {"color-contrast": {"enabled": False}}}
"""They are those of the English pages."""
BLOCK_STORAGE = """
const refuse = () => { throw new DOMException("The user has denied it.", "SecurityError"); };
Object.defineProperty(window, "localStorage", {get: refuse});
Object.defineProperty(window, "indexedDB", {get: () => ({open: refuse})});
"""
FILL_STORAGE = """
const put = IDBObjectStore.prototype.put;
IDBObjectStore.prototype.put = function (...values) {
  const request = put.apply(this, values);
  if (window.isFull) request.addEventListener("success", () => {
    const { transaction } = this;
    Object.defineProperty(transaction, "error", {value: new DOMException("Full.", "QuotaExceededError")});
    transaction.abort();
  });
  return request;
};
"""


@pytest.fixture
def german_page(browser: Chromium) -> Iterator[Page]:
    window = browser.run(lambda: browser.open_page(locale="de-AT", timezone_id="Europe/Vienna"))
    yield window
    browser.run(window.context.close)


def test_a_browser_in_german_sees_no_english_words(browser: Chromium, german_page: Page, cloud: LocalCloud) -> None:
    german_page.goto(cloud.url)
    expect(german_page.get_by_role("heading", name="Anmelden")).to_be_visible()
    expect(german_page.get_by_role("status")).to_contain_text("gibt einen neuen Link aus")
    console = ConsolePage(german_page, cloud)
    console.open_link()
    assert german_page.evaluate("document.documentElement.lang") == "de-AT"
    german_page.emulate_media(reduced_motion="reduce")
    for path in PAGES:
        console.open(path)
        text = german_page.locator("body").inner_text()
        assert (path, [word for word in ENGLISH if word in text]) == (path, [])
        assert (path, find_accessibility_problems(german_page, BUT_COLOURS)) == (path, [])
    console.open("editor")
    expect(german_page.locator("fermata-panel textarea")).to_have_attribute("placeholder", "Um eine Änderung bitten …")
    canvas = german_page.frame_locator(".canvas iframe.gjs-frame")
    expect(canvas.get_by_role("heading", name="Ein ruhiger Ort für gutes Brot")).to_be_visible()
    german_page.get_by_role("tab", name="Stil").click()
    expect(german_page.locator(".tools-pane")).to_contain_text("Typographie")
    assert console.complaints == []


def test_a_browser_that_stores_nothing_shows_everything_and_says_so(page: Page, cloud: LocalCloud) -> None:
    page.add_init_script(BLOCK_STORAGE)
    console = ConsolePage(page, cloud)
    for path in PAGES:
        console.open(path)
    console.open("editor")
    expect(page.locator(".saved")).to_have_text("Not kept: this browser stores nothing for this page")
    page.get_by_role("button", name="System theme").click()
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    page.get_by_role("button", name="My first site").click()
    page.get_by_role("button", name="New site").click()
    expect(page.get_by_role("button", name="A new site")).to_be_visible()
    assert console.complaints == []


def test_a_full_browser_keeps_the_site_open_and_says_that_nothing_was_stored(page: Page, cloud: LocalCloud) -> None:
    page.add_init_script(FILL_STORAGE)
    console = ConsolePage(page, cloud)
    console.open("editor")
    page.evaluate("window.isFull = true")
    console.ask("Add a pricing section")
    expect(page.locator(".saved")).to_have_text("Not saved: this browser has no room")
    page.get_by_role("button", name="My first site").click()
    page.get_by_role("button", name="New site").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("no room for the site")
    page.get_by_role("button", name="Close").click()
    page.evaluate("window.isFull = false")
    console.ask("Add a footer")
    expect(page.locator(".saved")).to_have_text("Saved in this browser")


def test_a_site_that_another_tab_has_deleted_is_not_called_saved(page: Page, cloud: LocalCloud) -> None:
    console = ConsolePage(page, cloud)
    console.open("editor")
    page.get_by_role("button", name="My first site").click()
    page.get_by_role("button", name="New site").click()
    expect(page.get_by_role("button", name="A new site")).to_be_visible()
    other = page.context.new_page()
    other.goto(f"{cloud.url}/console/#/editor")
    other.get_by_role("button", name="A new site").click()
    other.get_by_role("button", name="Open now").wait_for(state="attached")
    other.locator(".site-list .open", has_text="My first site").click()
    other.get_by_role("button", name="My first site").click()
    other.get_by_role("button", name="Delete A new site").click()
    other.get_by_role("dialog", name="Delete A new site?").get_by_role("button", name="Delete", exact=True).click()
    expect(other.get_by_role("button", name="Delete A new site")).to_have_count(0)
    console.ask("Add a pricing section")
    expect(page.locator(".saved")).to_have_text("Not saved: the site was deleted in another tab")
