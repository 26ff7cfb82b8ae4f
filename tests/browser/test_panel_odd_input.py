"""The panel with odd files, odd names and odd windows, and for whoever has only keys or wants no motion."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import note_problems
from tests.browser.panel_page import COMPOSER, lone_window, page, play_panel, play_turns

__all__ = ["lone_window", "page"]

SHADOW = "document.querySelector('fermata-panel').shadowRoot"
ODD_NAMES = (
    "x" * 5_000,
    "\u202egnp.exe",
    "<b onclick=alert(1)>bold</b>",
    "a\nb\tc\u0000d",
    "شعار موقع",
    "👩‍👩‍👧‍👦" * 200,
    "",
)
GIVE_FILES = """([how, files]) => {
  const data = new DataTransfer();
  for (const [name, type, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name, {type}));
  const shadow = document.querySelector('fermata-panel').shadowRoot;
  const target = shadow.querySelector(how === 'paste' ? 'textarea' : '.panel');
  const members = {bubbles: true, cancelable: true, composed: true};
  const event = how === 'paste' ? new ClipboardEvent('paste', {...members, clipboardData: data})
    : new DragEvent(how, {...members, dataTransfer: data});
  target.dispatchEvent(event);
  return event.defaultPrevented;
}"""
WIDER_THAN_WINDOW = f"""() => [...{SHADOW}.querySelectorAll('*')].filter(each => {{
  const box = each.getBoundingClientRect();
  const clipped = each.closest('.prose pre, .table, .row-title, .model-label, h1, .hidden-words, svg, .call-name');
  return box.width > 0 && !clipped && (box.right > innerWidth + 1 || box.left < -1);
}}).map(each => each.className || each.tagName)"""


def give(page: Page, how: str, *files: tuple[str, str, list[int]]) -> bool:
    taken: bool = page.evaluate(GIVE_FILES, [how, list(files)])
    return taken


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_files_of_any_kind_are_attached_or_refused_in_words(browser: Chromium, page: Page, how: str) -> None:
    problems = note_problems(page)
    play_panel(page)
    odd = [
        ("folder", "", []),
        ("a.svg", "image/svg+xml", [60, 115]),
        ("a.heic", "image/heic", [1]),
        ("no-image.png", "image/png", [1, 2, 3]),
        ("empty.png", "image/png", []),
    ]
    assert give(page, how, *odd)
    note = page.locator("fermata-panel .composer .note")
    note.wait_for()
    page.wait_for_function(f"() => !{SHADOW}.querySelector('.thumbnails img')")
    assert page.locator("fermata-panel .thumbnails").is_hidden()
    assert [problem for problem in problems if "blob:" not in problem] == []


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize(("width", "direction"), [(320, "ltr"), (320, "rtl"), (360, "ltr")])
def test_no_name_makes_the_panel_wider_than_its_window(
    browser: Chromium, page: Page, name: str, width: int, direction: str
) -> None:
    problems = note_problems(page)
    page.set_viewport_size({"width": width, "height": 480})
    play_turns(page)
    page.evaluate(
        """([name, direction]) => {
          document.documentElement.dir = direction;
          const named = {id: 'conv', title: name, messages: [], updatedAt: '2020-01-01T00:00:00Z'};
          Object.assign(client.conversations, {
            get: async () => ({conversation: named}), list: async () => ({conversations: [named]}) });
          client.credentials.list = async () => [{id: 'k1', providerId: 'p', displayLabel: name}];
          client.models.list = async () => [{id: 'm1', label: name, contextWindow: 1e6, capabilities: {}}];
          turn.send({type: 'toolCall', toolCallId: 'a', toolName: name || 'x', input: {[name]: name}, seq: 1},
            {type: 'toolResult', toolCallId: 'a', ok: false, error: name, seq: 2}, {type: 'text', text: name, seq: 3},
            {type: 'warning', message: name, seq: 4}, {type: 'error', message: name, seq: 5});
        }""",
        [name, direction],
    )
    page.wait_for_selector("fermata-panel .turn:not(.running)")
    page.locator("fermata-panel .call summary").click()
    assert page.evaluate(WIDER_THAN_WINDOW) == []
    for button in (".icon-button >> nth=0", ".model"):
        page.locator(f"fermata-panel {button}").first.click()
        page.wait_for_selector("fermata-panel .sheet:not([hidden]) .row")
        assert page.evaluate(WIDER_THAN_WINDOW) == []
        page.keyboard.press("Escape")
    assert page.locator("fermata-panel b").count() == 0
    assert problems == []


def test_whoever_has_only_keys_reaches_everything_and_each_thing_has_a_name(browser: Chromium, page: Page) -> None:
    play_turns(page)
    events: list[dict[str, Any]] = [
        {"type": "reasoning", "text": "Hm."},
        {"type": "toolCall", "toolCallId": "a", "toolName": "insertHtml", "input": {}},
        {"type": "toolResult", "toolCallId": "a", "ok": True},
        {"type": "error", "message": "It failed.", "retryable": True},
    ]
    page.evaluate("events => turn.send(...events.map((event, at) => ({...event, seq: at + 1})))", events)
    page.wait_for_selector("fermata-panel .turn:not(.running)")
    page.evaluate("() => document.activeElement.blur()")
    names = []
    for _ in range(14):
        page.keyboard.press("Tab")
        name = page.evaluate(
            f"() => {{ const it = {SHADOW}.activeElement; return it && (it.ariaLabel || it.textContent).trim(); }}"
        )
        if name and name not in names:
            names.append(name)
    for expected in (
        "Conversations",
        "New chat",
        "Thoughts",
        "Try again",
        "Ask for a change …",
        "Attach images",
        "A model",
    ):
        assert expected in names
    nameless = page.evaluate(
        f"() => [...{SHADOW}.querySelectorAll('button, input, textarea, [role]')].filter(each => !each.hidden "
        "&& each.type !== 'file' && !(each.ariaLabel || each.title || each.textContent.trim()))"
        ".map(each => each.outerHTML)"
    )
    assert [html for html in nameless if 'role="status"' not in html and 'role="alert"' not in html] == []


def test_a_title_in_another_direction_begins_where_the_other_titles_begin(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.evaluate(
        "() => { client.conversations.list = async () => ({conversations: ['شعار', 'Logo'].map((title, id) => ({"
        "id: String(id), title, updatedAt: '2020-01-01T00:00:00Z'}))}); }"
    )
    page.get_by_role("button", name="Conversations").click()
    page.wait_for_selector("fermata-panel .row-title")
    sides = page.evaluate(
        f"() => [...{SHADOW}.querySelectorAll('.row-title')].map(each => {{ const range = document.createRange();"
        "range.selectNodeContents(each); return Math.round(range.getBoundingClientRect().left); })"
    )
    assert sides[0] == sides[1]


def test_at_twice_the_size_everything_can_still_be_pressed(browser: Chromium, page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 256})  # 640 by 512 at 200 %
    play_panel(page)
    page.fill(COMPOSER, "A prompt of\nmany lines,\nwhich lets\nthe field grow\nmore and more\nand more")
    for name in ("Send", "Attach images", "Conversations", "New chat"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 256
    assert page.evaluate(f"() => {SHADOW}.querySelector('.thread').clientHeight") > 0


def test_who_wants_no_motion_sees_none(browser: Chromium, page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    play_turns(page)
    page.evaluate("() => turn.send({type: 'toolCall', toolCallId: 'a', toolName: 'x', input: {}, seq: 1})")
    page.wait_for_selector("fermata-panel .call")
    assert page.evaluate("() => document.getAnimations().length") == 0
