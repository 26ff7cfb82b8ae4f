"""A turn of thousands of tool calls, in a panel alone."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import note_problems
from tests.browser.panel_page import lone_window, page, play_turns

__all__ = ["lone_window", "page"]

CALLS = 10_000
SHADOW = "document.querySelector('fermata-panel').shadowRoot"
SEND_CALLS = """([count, perRound]) => {
  const events = [];
  for (let at = 0; at < count; at += perRound) {
    const ids = Array.from({length: Math.min(perRound, count - at)}, (_, n) => `c${at + n}`);
    events.push(...ids.map(toolCallId => ({type: "toolCall", toolCallId, toolName: "read_document", input: {}})));
    events.push(...ids.map((toolCallId, n) => ({type: "toolResult", toolCallId, ok: (at + n) % 1000 !== 0})));
  }
  events.push({type: "text", text: "All done."}, {type: "done"});
  window.frames_drawn = 0;
  const count_frame = () => { window.frames_drawn++; requestAnimationFrame(count_frame); };
  requestAnimationFrame(count_frame);
  turn.send(...events.map((event, at) => ({...event, seq: at + 1})));
}"""


def show_calls(page: Page, calls: int, per_round: int) -> None:
    play_turns(page)
    page.evaluate(SEND_CALLS, [calls, per_round])
    page.wait_for_selector("fermata-panel .turn:not(.running)")


def count(page: Page, selector: str) -> Any:
    return page.evaluate(f"selector => {SHADOW}.querySelectorAll(selector).length", selector)


@pytest.mark.parametrize("per_round", [CALLS, 100, 1])
def test_of_many_calls_the_newest_are_shown_and_the_page_keeps_drawing(
    browser: Chromium, page: Page, per_round: int
) -> None:
    problems = note_problems(page)
    show_calls(page, CALLS, per_round)
    assert 12 <= count(page, ".call") <= 60 * 24
    assert page.evaluate("() => frames_drawn") > 20
    assert page.get_by_text("All done.").is_visible()
    assert problems == []


def test_earlier_calls_are_counted_and_come_back_when_they_are_asked_for(browser: Chromium, page: Page) -> None:
    show_calls(page, 1_500, 1_500)
    earlier = page.locator("fermata-panel .call-box .earlier").first
    hidden = 1_500 - count(page, ".call")
    assert earlier.inner_text() == f"{hidden} earlier steps, 2 failed"
    for _ in range(7):
        if earlier.is_visible():
            earlier.press("Enter")
    assert count(page, ".call") == 1_500
    assert page.evaluate(f"() => {SHADOW}.activeElement.closest('.call') === {SHADOW}.querySelector('.call')")


def test_a_response_that_takes_the_place_of_a_retracted_one_shows_nothing_of_it(browser: Chromium, page: Page) -> None:
    play_turns(page)
    call = {"type": "toolCall", "toolName": "read_document", "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "reasoning", "text": "Old thoughts. "},
        {"type": "text", "text": "Old text."},
        call | {"toolCallId": "old1"},
        call | {"toolCallId": "old2"},
        {"type": "roundRetracted", "round": 1},
        {"type": "reasoning", "text": "New thoughts."},
        {"type": "text", "text": "New text."},
        call | {"toolCallId": "new1", "toolName": "getNodeHtml"},
        {"type": "done"},
    ]
    numbered = [event | {"seq": at + 1} for at, event in enumerate(events)]
    page.evaluate("events => turn.send(...events)", numbered[:4])
    page.wait_for_function(f"() => {SHADOW}.querySelectorAll('.call').length === 2")
    page.evaluate("events => turn.send(...events)", numbered[4:])
    page.wait_for_selector("fermata-panel .turn:not(.running)")
    shown = page.evaluate(f"() => {SHADOW}.querySelector('.rounds').textContent")
    assert "Old" not in shown
    assert "New thoughts." in shown
    assert page.locator("fermata-panel .call-name").all_inner_texts() == ["Read an element"]
