"""The agent panel in a real browser, with the service behind it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from local.cloud import LocalCloud
from local.install_node_packages import PACKAGES
from tests.browser.chromium import Chromium, ColorScheme
from tests.browser.own_editor_page import note_problems
from tests.browser.panel_page import ALONE, COMPOSER, PanelPage, play_turns
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


def test_what_a_model_writes_as_html_is_text_and_links_lead_to_the_web_only(browser: Chromium, page: Page) -> None:
    problems = note_problems(page)
    play_turns(page)
    text = (
        "<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n[a](javascript:alert(1)) [b](data:text/html,x) "
        "[c](https://example.com) ![d](https://example.com/d.png)\n\n<iframe src='https://example.com'></iframe>"
    )
    page.evaluate("text => turn.send({type: 'text', text, seq: 1}, {type: 'done', seq: 2})", text)
    page.wait_for_selector("fermata-panel .turn:not(.running) .prose a")
    prose = page.locator("fermata-panel .prose")
    assert prose.locator("img, script, iframe").count() == 0
    assert prose.locator("a").evaluate_all("links => links.map(link => [link.href, link.rel])") == [
        ["https://example.com/", "noopener noreferrer nofollow"]
    ]
    assert "<img src=x onerror=alert(1)>" in prose.inner_text()
    assert problems == []


def test_text_that_arrives_in_pieces_looks_like_text_that_arrives_at_once(browser: Chromium, page: Page) -> None:
    table = "| x | y |\n|---|---|\n| 1 | 2 |"
    lists = "- a\n- b\n\n- c\n  - d\n  - e\n- f\n\n1. g\n2. [x] h\n\n* i"
    text = f"{lists}\n\n# Title\n\nOne *two*\n\n- a\n- b\n\n```css\na {{ b: c }}\n```\n\n{table}\n\nEnd &amp; all."
    shown = []
    for pieces in (list(text), [text]):
        play_turns(page)
        page.evaluate("pieces => pieces.forEach((text, n) => turn.send({type: 'text', text, seq: n + 1}))", pieces)
        page.evaluate("seq => turn.send({type: 'done', seq})", len(pieces) + 1)
        page.wait_for_selector("fermata-panel .turn:not(.running)")
        shown.append(page.locator("fermata-panel .prose").inner_html())
    assert shown[0] == shown[1]
    assert "<h3>Title</h3>" in shown[0]
    assert "End &amp; all." in shown[0]


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


@pytest.mark.parametrize("width", [360, 700])
def test_nothing_is_wider_than_a_narrow_window(browser: Chromium, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    play_turns(page)
    words = "word" * 60
    page.evaluate(
        "text => turn.send({type: 'text', text, seq: 1})", f"{words}\n\n```\n{words}\n```\n\n|{words}|b|\n|-|-|\n|c|d|"
    )
    page.wait_for_selector("fermata-panel .prose table")
    overflow = page.evaluate(
        "() => { const panel = document.querySelector('fermata-panel').shadowRoot.querySelector('.thread');"
        "return [document.documentElement.scrollWidth - innerWidth, panel.scrollWidth - panel.clientWidth]; }"
    )
    assert overflow == [0, 0]


def test_reasoning_is_folded_away_and_opens(browser: Chromium, page: Page) -> None:
    play_turns(page)
    page.evaluate("() => turn.send({type: 'reasoning', text: 'Hm.', seq: 1}, {type: 'text', text: 'Yes.', seq: 2})")
    page.get_by_text("Thoughts").click()
    assert page.get_by_text("Hm.").is_visible()


def test_a_held_turn_says_until_when_it_waits(browser: Chromium, page: Page) -> None:
    play_turns(page)
    page.evaluate("() => turn.send({type: 'held', until: '2030-01-01T10:00:00Z', retryAfter: 30, seq: 1})")
    page.get_by_text("Waiting for an answer until").wait_for()


def test_an_error_is_told_in_words_with_a_way_to_try_again(browser: Chromium, page: Page) -> None:
    play_turns(page)
    page.evaluate("() => turn.send({type: 'error', message: 'The provider is overloaded.', retryable: true, seq: 1})")
    page.get_by_role("alert").filter(has_text="The provider is overloaded.").wait_for()
    assert page.get_by_role("button", name="Try again").is_visible()
