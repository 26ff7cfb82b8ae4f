"""The agent panel in a real browser, with the service behind it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from local.cloud import LocalCloud
from local.install_node_packages import PACKAGES
from tests.browser.chromium import Chromium, ColorScheme
from tests.browser.panel_page import ALONE, COMPOSER, PanelPage
from tests.e2e.demo_model_client import (
    Step,
    held_text_step,
    text_step,
    tool_call_step,
)
from tests.images import make_image

ADD = ("applyCss", {"css": ".new { color: red }"})
EDITING: tuple[Step, ...] = (tool_call_step(ADD, text="I add a style."), text_step("It is **there**."))

README = (PACKAGES / "panel" / "README.md").read_text()
Prompt = Callable[..., str]
AXE_STATES: tuple[tuple[ColorScheme, str | None], ...] = (
    ("light", None),
    ("dark", None),
    ("dark", "Conversations"),
    ("light", "Back"),
)
"""Colours, and the button to press first."""


@pytest.fixture
def panel(browser: Chromium, page: Page, cloud: LocalCloud) -> PanelPage:
    return browser.run(lambda: PanelPage(page, cloud))


def style_of(panel: PanelPage) -> str:
    css: str = panel.page.frame_locator("#page").locator("style").inner_html()
    return css


def test_a_turn_streams_edits_the_page_and_says_what_it_cost(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt
) -> None:
    panel.ask(new_prompt(*EDITING))
    panel.wait_for_end()
    panel.wait_for_text("It is there.")
    assert panel.list_calls() == ["Style .new"]
    assert ".new { color: red }" in style_of(panel)
    assert panel.page.locator("fermata-panel .cost").inner_text().startswith("$")
    assert panel.problems == []


def test_an_undo_takes_the_turn_back_and_says_so(browser: Chromium, panel: PanelPage, new_prompt: Prompt) -> None:
    panel.ask(new_prompt(*EDITING))
    panel.wait_for_end()
    panel.press("Undo this turn")
    panel.wait_for_text("1 edit was undone.")
    panel.wait_for_text("Undone")
    assert ".new" not in style_of(panel)
    assert panel.problems == []


def test_a_turn_that_only_read_has_nothing_to_undo(browser: Chromium, panel: PanelPage, new_prompt: Prompt) -> None:
    panel.ask(new_prompt(tool_call_step(("read_document", {})), text_step("I have read it.")))
    panel.wait_for_end()
    panel.page.wait_for_selector("fermata-panel .cost")
    assert panel.page.get_by_role("button", name="Undo this turn").count() == 0


def test_stop_ends_the_turn_and_the_panel_takes_the_next_prompt(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt, tmp_path: Path
) -> None:
    panel.ask(new_prompt(held_text_step("A long answer that never comes", tmp_path / "gate", after=13)))
    panel.wait_for_text("A long answer")
    panel.press("Stop")
    panel.wait_for_end()
    panel.wait_for_text("Stopped.")
    panel.ask(new_prompt(text_step("The next one.")))
    panel.wait_for_text("The next one.")


def test_a_reload_in_the_middle_of_a_turn_goes_on_and_edits_once(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    panel.ask(new_prompt(tool_call_step(ADD, text="I add it."), held_text_step("Nearly done.", gate, after=6)))
    panel.wait_for_text("Nearly")
    panel.page.reload()
    panel.wait_for_text("I add it.")
    panel.wait_for_text("Nearly")
    gate.touch()
    panel.wait_for_text("Nearly done.")
    panel.wait_for_end()
    assert style_of(panel).count(".new") == 1
    assert panel.page.locator("fermata-panel .user").count() == 1
    assert panel.page.locator("fermata-panel .turn").count() == 1
    assert panel.problems == []


def test_a_second_tab_sees_the_turn_that_the_first_one_executes(
    browser: Chromium, panel: PanelPage, cloud: LocalCloud, new_prompt: Prompt
) -> None:
    panel.ask(new_prompt(text_step("Hello.")))
    panel.wait_for_end()
    second = PanelPage(panel.page.context.new_page(), cloud)
    second.wait_for_text("Hello.")
    panel.ask(new_prompt(*EDITING))
    second.wait_for_text("It is there.")
    panel.wait_for_text("It is there.")
    second.wait_for_end()
    assert style_of(panel).count(".new") == 1
    assert panel.problems == second.problems == []


def test_an_attached_image_is_sent_and_shown_again_after_a_reload(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt
) -> None:
    png = make_image(kind="PNG")
    panel.page.wait_for_selector(f"{COMPOSER}:enabled")
    panel.page.set_input_files(
        "fermata-panel input[type=file]", {"name": "a.png", "mimeType": "image/png", "buffer": png}
    )
    panel.page.wait_for_selector("fermata-panel .thumbnails img")
    panel.ask(new_prompt(text_step("A small image.")))
    panel.wait_for_text("A small image.")
    panel.page.reload()
    panel.page.wait_for_function(
        "() => document.querySelector('fermata-panel').shadowRoot.querySelector('.attached')?.naturalWidth > 0"
    )
    assert panel.problems == []


def test_a_file_that_is_no_image_is_refused_in_words(browser: Chromium, panel: PanelPage) -> None:
    panel.page.wait_for_selector(f"{COMPOSER}:enabled")
    note = {"name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF"}
    panel.page.set_input_files("fermata-panel input[type=file]", note)
    panel.wait_for_text("a.pdf is no JPEG, PNG, GIF or WebP image.")


def test_offline_is_said_and_the_turn_shows_when_the_network_is_back(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    panel.ask(new_prompt(held_text_step("Begun, and ended.", gate, after=6)))
    panel.wait_for_text("Begun,")
    panel.page.context.set_offline(True)
    panel.wait_for_text("You are offline. The turn goes on")
    gate.touch()
    panel.page.context.set_offline(False)
    panel.wait_for_text("Begun, and ended.")
    panel.wait_for_end()


def test_history_finds_a_conversation_and_a_new_chat_is_empty(
    browser: Chromium, panel: PanelPage, new_prompt: Prompt
) -> None:
    panel.ask("A croissant " + new_prompt(text_step("Of butter.")))
    panel.wait_for_text("Of butter.")
    panel.wait_for_end()
    panel.press("New chat")
    panel.wait_for_text("What should change?")
    panel.press("Conversations")
    panel.page.fill("fermata-panel .sheet:not([hidden]) input", "nothing has this title")
    panel.wait_for_text("Nothing found.")
    panel.page.fill("fermata-panel .sheet:not([hidden]) input", "croissant")
    panel.page.locator("fermata-panel .row-main").first.click()
    panel.wait_for_text("Of butter.")


def test_a_refused_token_says_that_one_is_signed_out(browser: Chromium, page: Page, cloud: LocalCloud) -> None:
    signed_out = PanelPage(page, cloud, token="no-token")
    signed_out.wait_for_text("You are signed out")
    assert signed_out.page.get_by_role("button", name="Try again").is_visible()


def test_the_readme_shows_what_works(browser: Chromium, page: Page, cloud: LocalCloud) -> None:
    """Its first example is run, and each property, event and method that it names exists."""
    (example,) = re.findall(r"^```js\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    page.goto(ALONE)
    page.evaluate("token => { window.getToken = () => token; window.executor = undefined; }", cloud.token)
    page.add_script_tag(type="module", content=example.replace("https://fermata.example", cloud.url))
    page.wait_for_selector(f"{COMPOSER}:enabled")
    for name in ("client", "executor", "scope", "conversationId", "hasSettings", "messages", "lang", "ask", "reload"):
        assert f"`{name}" in README or f"panel.{name}(" in README
        assert page.evaluate("name => name in document.querySelector('fermata-panel')", name), name


def test_axe_finds_nothing_serious_in_any_state(browser: Chromium, panel: PanelPage, new_prompt: Prompt) -> None:
    panel.ask(new_prompt(*EDITING))
    panel.wait_for_end()
    panel.page.add_script_tag(path=str(PACKAGES / "node_modules/axe-core/axe.min.js"))
    for scheme, label in AXE_STATES:
        # Text that fades in has less contrast for a moment.
        panel.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        if label:
            panel.page.get_by_role("button", name=label).first.click()
        found = panel.page.evaluate("() => axe.run('fermata-panel')")
        serious = [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []
