"""The builder's blocks, layers and style tab without a mouse that drags, and on a phone."""

from playwright.sync_api import FrameLocator, Page, expect

from tests.browser.console_page import ConsolePage, find_accessibility_problems
from tests.browser.test_console_turns import begin_typing


def canvas_of(page: Page) -> FrameLocator:
    return page.frame_locator(".gjs-frame")


def test_blocks_are_buttons_that_add_to_the_page_by_key_and_click(console: ConsolePage) -> None:
    page = console.page
    console.open("editor")
    quote = page.get_by_role("button", name="Quote")
    quote.focus()
    page.keyboard.press("Enter")
    expect(canvas_of(page).locator("blockquote")).to_have_count(1)
    page.get_by_role("button", name="List", exact=True).click()
    expect(canvas_of(page).locator("body ul")).to_have_count(1)
    assert find_accessibility_problems(console.page) == []
    assert console.complaints == []


def test_a_tap_adds_a_block_on_a_phone(console: ConsolePage) -> None:
    page = console.page
    page.set_viewport_size({"width": 360, "height": 720})
    console.open("editor")
    page.get_by_role("button", name="Tools").click()
    page.get_by_role("button", name="Quote").click()
    expect(canvas_of(page).locator("blockquote")).to_have_count(1)


def test_on_a_phone_the_blocks_and_the_assistant_are_shown_one_at_a_time(console: ConsolePage) -> None:
    page = console.page
    page.set_viewport_size({"width": 360, "height": 720})
    console.open("editor")
    tools, assistant = (page.get_by_role("button", name=name, exact=True) for name in ("Tools", "Assistant"))
    assistant.click()
    tools.click()
    page.get_by_role("button", name="Quote").click()
    expect(canvas_of(page).locator("blockquote")).to_have_count(1)
    expect(assistant).to_have_attribute("aria-pressed", "false")
    assistant.click()
    expect(tools).to_have_attribute("aria-pressed", "false")


def test_a_dialog_closes_when_its_page_is_left(console: ConsolePage) -> None:
    page = console.page
    console.open("tools")
    page.get_by_role("button", name="Register a tool").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("location.hash = '#/providers'")
    expect(page.get_by_role("heading", name="Providers")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_layers_are_opened_and_chosen_with_keys(console: ConsolePage) -> None:
    page = console.page
    console.open("editor")
    page.get_by_role("tab", name="Layers").click()
    layers = page.get_by_role("tabpanel", name="Layers").get_by_role("button")
    layers.first.focus()
    page.keyboard.press("ArrowRight")
    expect(layers.first).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".gjs-layer.gjs-selected")).to_have_count(1)
    expect(page.get_by_role("tabpanel", name="Layers").get_by_role("button", pressed=True)).to_have_count(1)
    assert find_accessibility_problems(console.page) == []


def test_the_style_tab_shows_the_classes_once(console: ConsolePage) -> None:
    page = console.page
    console.open("editor")
    canvas_of(page).locator("h1").first.click()
    page.get_by_role("tab", name="Style").click()
    expect(page.locator(".gjs-clm-tags:visible")).to_have_count(1)


def test_what_can_be_done_with_a_key_is_in_sight_on_a_phone(console: ConsolePage) -> None:
    page = console.page
    page.set_viewport_size({"width": 360, "height": 720})
    console.open("providers")
    box = page.locator(".table .row-actions button").last.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360


def test_a_text_that_is_being_written_is_kept_when_the_editor_is_left(console: ConsolePage) -> None:
    page = console.page
    console.open("editor")
    begin_typing(page, "h1", " and cake")
    page.evaluate("location.hash = '#/policy'")  # as a link does that is followed with a key
    expect(page.get_by_role("heading", name="Policy")).to_be_visible()
    console.open("editor")
    expect(canvas_of(page).locator("h1")).to_have_text("A quiet place for good bread and cake")
    assert console.complaints == []
