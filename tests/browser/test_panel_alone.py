"""The panel alone: what a turn shows while it runs, and how it ends."""

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import note_problems
from tests.browser.panel_page import lone_window, page, play_turns

__all__ = ["lone_window", "page"]


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
