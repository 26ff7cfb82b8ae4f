"""Turns in the console's builder while the person reloads, is offline, types, or has a second tab."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, FrameLocator, Page, expect

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.console_page import ConsolePage, photograph
from tests.e2e.demo_model_client import Step, held_text_step, text_step, tool_call_step

Prompt = Callable[..., str]
ADDED = '<p class="added">Added once</p>'
OFFLINE_MS = 10_000
KEEP_DATABASE_BUSY = """
() => new Promise((resolve, reject) => {
  const opening = indexedDB.open("fermata-console");
  opening.onerror = () => reject(opening.error);
  opening.onsuccess = () => {
    const sites = opening.result.transaction("sites", "readwrite").objectStore("sites");
    const askAgain = () => { sites.count().onsuccess = askAgain; };
    askAgain();
    resolve();
  };
})
"""


@pytest.fixture
def console(browser: Chromium, page: Page, cloud: LocalCloud) -> ConsolePage:
    """A window of its own: these tests load it again, have others beside it, or lose the network."""
    return browser.run(lambda: ConsolePage(page, cloud))


def canvas_of(page: Page) -> FrameLocator:
    return page.frame_locator(".canvas iframe.gjs-frame")


def body_id(page: Page) -> str:
    """Return the node id of the page's body, under which the agent inserts."""
    prompt = page.evaluate(
        """async () => {
          const panel = document.querySelector("fermata-panel");
          return (await panel.executor.snapshot()).snapshot.page.rootNodeId;
        }"""
    )
    return str(prompt)


def insert_step(page: Page) -> tuple[str, dict[str, str]]:
    return "insertHtml", {"parentId": body_id(page), "html": ADDED}


def held_call_step(call: tuple[str, dict[str, str]], gate: Path) -> Step:
    """Make an answer that stands still within its text, and then calls a tool."""
    return tool_call_step(call, text="Let me see about it.", after=4, holdUntilFile=str(gate))


def send(page: Page, prompt: str) -> None:
    page.locator("fermata-panel textarea").fill(prompt)
    page.locator("fermata-panel textarea").press("Enter")


def expect_saved(page: Page) -> None:
    expect(page.locator(".saved")).to_have_text("Saved in this browser")


def test_a_reload_in_mid_turn_goes_on_and_edits_once(console: ConsolePage, new_prompt: Prompt, tmp_path: Path) -> None:
    console.open("editor")
    page = console.page
    gate = tmp_path / "gate"
    steps = (
        tool_call_step(insert_step(page), text="First."),
        held_text_step("Second thoughts follow.", gate, after=6),
        text_step("It is there."),
    )
    send(page, new_prompt(*steps))
    expect(page.locator("fermata-panel")).to_contain_text("Second")
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    page.reload()
    expect(page.locator("fermata-panel")).to_contain_text("Second")
    gate.touch()
    page.locator("fermata-panel .summary").wait_for()
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    expect_saved(page)
    page.reload()
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    expect(page.locator("fermata-panel")).to_contain_text("Second thoughts follow.")
    assert console.complaints == []


def test_ten_seconds_offline_in_mid_turn_lose_nothing(console: ConsolePage, new_prompt: Prompt, tmp_path: Path) -> None:
    console.open("editor")
    page = console.page
    gate = tmp_path / "gate"
    call = insert_step(page)
    send(page, new_prompt(held_call_step(call, gate), text_step("Done.")))
    expect(page.locator("fermata-panel")).to_contain_text("Let")
    page.context.set_offline(True)
    expect(page.locator("fermata-panel")).to_contain_text("You are offline.")
    expect(page.locator(".offline")).to_be_visible()
    photograph(page, "editor-offline")
    gate.touch()
    page.wait_for_timeout(OFFLINE_MS)
    page.context.set_offline(False)
    page.locator("fermata-panel .summary").wait_for()
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    expect(page.locator("fermata-panel")).to_contain_text("Done.")
    expect(page.locator(".offline")).to_be_hidden()
    expect_saved(page)


def open_second_tab(context: BrowserContext, url: str) -> Page:
    other = context.new_page()
    other.goto(url)
    other.locator("fermata-panel textarea").wait_for(state="attached")
    canvas_of(other).locator("h1").wait_for()
    return other


def test_of_two_tabs_one_edits_and_both_show_it(console: ConsolePage, new_prompt: Prompt) -> None:
    console.open("editor")
    page = console.page
    console.ask(new_prompt(text_step("Hello.")))
    other = open_second_tab(page.context, page.url)
    expect(other.locator("fermata-panel")).to_contain_text("Hello.")
    send(page, new_prompt(tool_call_step(insert_step(page), text="I add it."), text_step("It is there.")))
    for tab in (page, other):
        expect(tab.locator("fermata-panel")).to_contain_text("It is there.")
        expect(canvas_of(tab).locator(".added")).to_have_count(1)
    expect_saved(page)
    other.close()
    page.reload()
    expect(canvas_of(page).locator(".added")).to_have_count(1)


def begin_typing(page: Page, selector: str, text: str) -> None:
    canvas_of(page).locator(selector).dblclick()
    expect(canvas_of(page).locator(f"{selector}[contenteditable=true]")).to_be_visible()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def test_who_types_while_the_agent_edits_loses_nothing(
    console: ConsolePage, new_prompt: Prompt, tmp_path: Path
) -> None:
    console.open("editor")
    page = console.page
    gate = tmp_path / "gate"
    call = insert_step(page)
    send(page, new_prompt(held_call_step(call, gate), text_step("Done.")))
    expect(page.locator("fermata-panel")).to_contain_text("Let")
    begin_typing(page, "h1", " every")
    gate.touch()
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    page.keyboard.type(" day")
    expect(canvas_of(page).locator("h1")).to_have_text("A quiet place for good bread every day")
    canvas_of(page).locator("html").click(position={"x": 5, "y": 5})
    expect_saved(page)
    page.reload()
    expect(canvas_of(page).locator("h1")).to_have_text("A quiet place for good bread every day")
    expect(canvas_of(page).locator(".added")).to_have_count(1)


def test_what_is_being_typed_survives_a_reload(console: ConsolePage) -> None:
    console.open("editor")
    page = console.page
    begin_typing(page, "h1", " and cake")
    page.reload()
    expect(canvas_of(page).locator("h1")).to_have_text("A quiet place for good bread and cake")


def test_a_change_survives_a_reload_although_the_database_is_busy_and_the_clock_was_set_back(
    console: ConsolePage,
) -> None:
    """The browser takes back what the database has not stored when the page is gone."""
    console.open("editor")
    page = console.page
    page.evaluate(KEEP_DATABASE_BUSY)
    page.evaluate("() => { const now = Date.now; Date.now = () => now() - 3_600_000; }")
    canvas_of(page).locator("h1").click()
    page.keyboard.press("Delete")
    expect(canvas_of(page).locator("h1")).to_have_count(0)
    page.reload()
    canvas_of(page).locator(".hero").wait_for()
    expect(canvas_of(page).locator("h1")).to_have_count(0)


def test_a_page_that_is_deleted_while_the_agent_works_on_it_stays_deleted(
    console: ConsolePage, new_prompt: Prompt, tmp_path: Path
) -> None:
    console.open("editor")
    page = console.page
    page.get_by_role("button", name="Add a page").click()
    page.get_by_label("Name").fill("About us")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(canvas_of(page).locator("h1")).to_have_count(0)
    gate = tmp_path / "gate"
    send(page, new_prompt(held_call_step(insert_step(page), gate), text_step("I cannot.")))
    expect(page.locator("fermata-panel")).to_contain_text("Let")
    page.get_by_role("button", name="Delete this page").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(canvas_of(page).locator("h1")).to_have_count(1)
    gate.touch()
    expect(page.locator("fermata-panel")).to_contain_text("I cannot.")
    expect(canvas_of(page).locator(".added")).to_have_count(0)
    expect_saved(page)
    assert console.complaints == []


def test_the_editors_undo_takes_back_what_the_agent_and_the_person_did_one_by_one(
    console: ConsolePage, new_prompt: Prompt
) -> None:
    console.open("editor")
    page = console.page
    console.ask(new_prompt(tool_call_step(insert_step(page)), text_step("Done.")))
    canvas_of(page).locator("h1").click()
    page.keyboard.press("Delete")
    expect(canvas_of(page).locator("h1")).to_have_count(0)
    undo, redo = (page.get_by_role("button", name=name, exact=True) for name in ("Undo", "Redo"))
    undo.first.click()
    expect(canvas_of(page).locator("h1")).to_have_count(1)
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    undo.first.click()
    expect(canvas_of(page).locator(".added")).to_have_count(0)
    redo.first.click()
    redo.first.click()
    expect(canvas_of(page).locator("h1")).to_have_count(0)
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    assert console.complaints == []
