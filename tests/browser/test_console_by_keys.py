"""A page is built, and the assistant's work accepted and taken back, by somebody who has only keys."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from local.cloud import LocalCloud
from tests.browser.console_page import ConsolePage, photograph
from tests.browser.test_console_approvals import set_policy
from tests.browser.test_console_turns import body_id
from tests.e2e.demo_model_client import text_step, tool_call_step

NAME_OF_FOCUS = """
() => {
  let it = document.activeElement;
  while (it?.shadowRoot?.activeElement) it = it.shadowRoot.activeElement;
  return (it?.ariaLabel || it?.placeholder || it?.textContent || "").trim();
}
"""
MAX_STEPS = 60


@pytest.fixture
def insertions_are_asked_for(cloud: LocalCloud) -> Iterator[None]:
    set_policy(cloud, {"rules": [{"effect": "ask", "tools": ["insertHtml"]}]})
    yield
    set_policy(cloud, {})


def go_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press a key until what has the focus has a name."""
    passed = []
    for _ in range(MAX_STEPS):
        page.keyboard.press(key)
        passed.append(page.evaluate(NAME_OF_FOCUS))
        if passed[-1] == name:
            return
    raise AssertionError(f"{name} is not reached, but {passed}")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def canvas_of(page: Page) -> FrameLocator:
    return page.frame_locator(".canvas iframe.gjs-frame")


def test_a_page_is_built_and_changed_with_keys(console: ConsolePage) -> None:
    console.open("editor")
    page, canvas = console.page, canvas_of(console.page)
    go_to(page, "Skip to the page")
    press(page, "Enter")
    go_to(page, "Section")
    press(page, "Enter")
    expect(canvas.locator("section")).to_have_count(2)
    go_to(page, "Add", "Shift+Tab")
    press(page, "ArrowRight", "Tab", "ArrowRight")  # the layers, and those within the page
    press(page, "ArrowDown", "ArrowDown", "Alt+ArrowUp")
    expect(canvas.locator("section").first.locator("h2")).to_have_text("A heading")
    expect(page.locator(".gjs-layer-item:focus")).to_have_attribute("aria-pressed", "true")
    press(page, "ArrowRight", "ArrowDown", "Enter")
    expect(page.locator(".gjs-layer-item:focus")).to_have_attribute("aria-pressed", "true")
    press(page, "Enter")
    expect(canvas.locator("h2")).to_be_focused()
    page.keyboard.type(" for everybody")
    press(page, "Escape")
    expect(canvas.locator("h2")).to_have_text("A heading for everybody")
    expect(page.locator(".gjs-layer-item:focus")).to_have_count(1)
    press(page, "Alt+h")
    expect(canvas.locator("h2")).to_be_hidden()
    press(page, "Alt+h")
    expect(canvas.locator("h2")).to_be_visible()
    press(page, "Alt+n")
    expect(page.locator(".gjs-layer-name[contenteditable=true]:focus")).to_have_count(1)
    press(page, "Control+a")
    page.keyboard.type("Title")
    press(page, "Enter")
    expect(page.locator(".gjs-layer-item:focus")).to_contain_text("Title")
    press(page, "Delete")
    expect(canvas.locator("h2")).to_have_count(0)
    press(page, "Control+z")
    expect(canvas.locator("h2")).to_have_text("A heading for everybody")
    go_to(page, "Layers", "Shift+Tab")
    press(page, "ArrowRight")
    go_to(page, "Typography")
    press(page, "Enter")
    expect(page.get_by_role("button", name="Typography")).to_have_attribute("aria-expanded", "true")
    photograph(page, "style-tab")
    console.expect_accessible()
    assert console.complaints == []


@pytest.mark.usefixtures("insertions_are_asked_for")
def test_what_the_assistant_does_is_accepted_and_undone_with_keys(
    console: ConsolePage, new_prompt: Callable[..., str]
) -> None:
    console.open("editor")
    page, canvas = console.page, canvas_of(console.page)
    step = "insertHtml", {"parentId": body_id(page), "html": '<p class="added">Added</p>'}
    prompt = new_prompt(tool_call_step(step, text="I add it."), text_step("It is there."))
    go_to(page, "Ask for a change …")
    page.keyboard.type(prompt)
    press(page, "Enter")
    expect(page.locator("fermata-panel").get_by_role("button", name="Approve")).to_be_visible()
    photograph(page, "editor-approval")
    go_to(page, "Approve", "Shift+Tab")
    press(page, "Enter")
    expect(canvas.locator(".added")).to_have_count(1)
    expect(page.get_by_role("button", name="Undo this turn")).to_be_enabled()
    go_to(page, "Undo this turn")
    press(page, "Enter")
    expect(canvas.locator(".added")).to_have_count(0)
    expect(page.locator("fermata-panel")).to_contain_text("1 edit was undone.")
    assert console.complaints == []
