"""The example of an editor of one's own: it edits, undoes, stops, and goes on after a reload."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from local.processes import ROOT
from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import note_problems, open_example
from tests.e2e.demo_model_client import DemoModelClient, held_text_step, script_marker, unfinished_text_step

AGENT = ROOT / "examples/own-editor/agent.js"
MAX_LINES = 25


@pytest.fixture
def example(browser: Chromium, page: Page, cloud: LocalCloud) -> Page:
    return browser.run(lambda: open_example(page, cloud))


def ask(page: Page, prompt: str) -> None:
    page.get_by_label("What should be changed?").fill(prompt)
    page.get_by_role("button", name="Ask").click()


def test_the_agent_edits_the_page_and_the_edit_is_undone(example: Page) -> None:
    problems = note_problems(example)
    page = example.frame_locator("#page")
    before = page.locator("body").inner_html()
    ask(example, "Add a pricing section")
    expect(example.locator("form")).to_have_attribute("data-ended", "done")
    expect(page.get_by_role("heading", name="Pricing")).to_be_visible()
    example.get_by_role("button", name="Undo").click()
    expect(example.locator("output")).to_contain_text("edits undone")
    assert page.locator("body").inner_html() == before
    assert problems == []


def test_the_edited_page_is_there_after_a_reload(example: Page, cloud: LocalCloud) -> None:
    ask(example, "Add a pricing section")
    expect(example.locator("form")).to_have_attribute("data-ended", "done")
    open_example(example, cloud)
    expect(example.frame_locator("#page").get_by_role("heading", name="Pricing")).to_be_visible()


def test_a_turn_goes_on_after_a_reload(example: Page, cloud: LocalCloud, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    ask(example, f"Please. {add_script(cloud, held_text_step('One two three four.', gate))}")
    expect(example.locator("output")).to_contain_text("One")
    example.reload()
    expect(example.locator("output")).to_contain_text("One")
    gate.write_text("")
    expect(example.locator("output")).to_have_text("One two three four.")


def test_a_turn_is_stopped(example: Page, cloud: LocalCloud) -> None:
    ask(example, f"Please. {add_script(cloud, unfinished_text_step('One two three four.', after=8))}")
    expect(example.locator("output")).to_contain_text("One")
    example.get_by_role("button", name="Stop").click()
    expect(example.locator("form")).to_have_attribute("data-ended", "cancelled")


def add_script(cloud: LocalCloud, step: dict[str, object]) -> str:
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    key = model.add_script(step)
    model.close()
    return script_marker(key)


def test_the_document_shows_the_agent_of_the_example() -> None:
    assert f"```js\n{AGENT.read_text()}```" in (ROOT / "docs/embedding.md").read_text()
    assert len(AGENT.read_text().splitlines()) <= MAX_LINES
