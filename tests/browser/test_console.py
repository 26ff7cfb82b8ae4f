"""The console in a real browser, with data of the local cloud."""

import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.console_page import PAGES, ConsolePage


@pytest.fixture
def console(browser: Chromium, page: Page, cloud: LocalCloud) -> ConsolePage:
    return browser.run(lambda: ConsolePage(page, cloud))


def test_a_person_without_a_link_is_told_how_to_get_one(page: Page, cloud: LocalCloud) -> None:
    page.goto(cloud.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("make console")


def test_a_link_works_once_and_leaves_no_trace_in_the_address(console: ConsolePage, cloud: LocalCloud) -> None:
    expect(console.page.get_by_role("link", name="Usage")).to_be_visible()
    assert "code" not in console.page.url
    assert console.page.evaluate("document.cookie") == ""
    console.page.reload()
    expect(console.page.get_by_role("link", name="Usage")).to_be_visible()
    console.page.get_by_role("button", name="Sign out").click()
    expect(console.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_all_pages_are_shown_without_complaints(console: ConsolePage) -> None:
    problems = {}
    for path in PAGES:
        console.open(path)
        problems[path] = console.find_accessibility_problems()
    assert problems == {path: [] for path in PAGES}
    assert console.complaints == []
    assert console.read_violations() == []


def test_all_pages_fit_a_phone(console: ConsolePage) -> None:
    console.page.set_viewport_size({"width": 360, "height": 720})
    widths = "[document.documentElement.scrollWidth, document.querySelector('#page').scrollWidth]"
    for path in PAGES:
        console.open(path)
        assert (path, max(console.page.evaluate(widths))) == (path, 360)
    console.page.get_by_role("button", name="Menu").click()
    expect(console.page.get_by_role("link", name="Budgets")).to_be_visible()


def test_the_agent_edits_the_page_and_a_reload_shows_the_same(console: ConsolePage) -> None:
    console.open("editor")
    console.ask("Add a pricing section")
    canvas = console.page.frame_locator(".canvas iframe.gjs-frame")
    expect(canvas.get_by_role("heading", name="Pricing")).to_be_visible()
    expect(console.page.locator(".saved")).to_have_text("Saved in this browser")
    console.page.reload()
    expect(canvas.get_by_role("heading", name="Pricing")).to_be_visible()
    expect(console.page.locator("fermata-panel")).to_contain_text("I added a section about pricing")
    assert console.complaints == []
    assert console.read_violations() == []
