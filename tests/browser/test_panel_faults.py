"""The panel alone, with hostile text and calls, and with what people and pages do at the wrong moment."""

from typing import Any

from playwright.sync_api import Page

from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import note_problems
from tests.browser.panel_page import COMPOSER, lone_window, page, play_panel, play_turns
from tests.images import make_image

__all__ = ["lone_window", "page"]

SHADOW = "document.querySelector('fermata-panel').shadowRoot"
IDLE = "fermata-panel .turn:not(.running)"
SIZE = 20_000
BOMBS = {
    "brackets": "[" * SIZE,
    "links": "[a](" * (SIZE // 4),
    "emphasis": "*a_" * (SIZE // 3),
    "quotes": "> " * (SIZE // 2) + "a",
    "lists in lists": "- " * (SIZE // 2) + "a",
    "numbers in numbers": "1. " * (SIZE // 3) + "a",
    "code marks": "`a``" * (SIZE // 4),
    "a wide table": "|a" * (SIZE // 2) + "|\n" + "|-" * (SIZE // 2) + "|\n",
    "a line": "x" * SIZE,
    "entities": "&amp;" * (SIZE // 5),
    "tags": "<a " * (SIZE // 3),
}


def send(page: Page, *events: dict[str, Any]) -> None:
    page.evaluate("events => turn.send(...events)", list(events))


def focused(page: Page) -> str:
    """Return the name of what has the focus in the panel; empty where it is lost."""
    name: str = page.evaluate(
        f"() => {{ const it = {SHADOW}.activeElement; return it?.ariaLabel || it?.textContent || ''; }}"
    )
    return name


def test_text_of_any_kind_is_shown_whole_and_the_turn_ends(browser: Chromium, page: Page) -> None:
    problems = note_problems(page)
    for text in BOMBS.values():
        play_turns(page)
        send(page, {"type": "text", "text": text, "seq": 1}, {"type": "done", "seq": 2})
        page.wait_for_selector(IDLE)
        assert page.locator("fermata-panel .prose").count() == 1
    assert problems == []


def test_a_link_says_where_it_leads_when_its_words_name_another_place(browser: Chromium, page: Page) -> None:
    play_turns(page)
    text = (
        "[https://bank.example/login](https://evil.example) [here](https://evil.example) "
        "[bank.example](https://bank.example) "
        "[p\u0430ypal.com](https://p\u0430ypal.com)"
    )
    send(page, {"type": "text", "text": text, "seq": 1}, {"type": "done", "seq": 2})
    links = page.locator("fermata-panel .prose a")
    links.first.wait_for()
    assert links.evaluate_all("links => links.map(link => [link.textContent, link.title])") == [
        ["https://bank.example/login (evil.example)", "https://evil.example/"],
        ["here", "https://evil.example/"],
        ["bank.example", "https://bank.example/"],
        ["p\u0430ypal.com (xn--pypal-4ve.com)", "https://xn--pypal-4ve.com/"],
    ]


def test_calls_with_any_name_and_input_are_shown(browser: Chromium, page: Page) -> None:
    problems = note_problems(page)
    play_turns(page)
    calls: list[tuple[str, Any]] = [
        ("constructor", {}),
        ("__proto__", None),
        ("toString", "text"),
        ("renameNode", {"label": {"a": 1}}),
        ("applyCss", {"css": " " * 200_000}),
        ("addPage", {"title": "x" * 200_000}),
        ("insertHtml", {"html": "y" * 1_000_000}),
    ]
    events = [
        {"type": "toolCall", "toolCallId": f"c{at}", "toolName": name, "input": given, "seq": at + 1}
        for at, (name, given) in enumerate(calls)
    ]
    send(page, *events, {"type": "done", "seq": 99})
    page.wait_for_selector(IDLE)
    names = page.locator("fermata-panel .call-name").all_inner_texts()
    assert names[:5] == ["Constructor", "proto", "To string", "Name an element", "Change styles"]
    assert len(names[5]) < 200
    page.locator("fermata-panel summary").last.click()
    page.wait_for_function(f"() => {SHADOW}.querySelector('.call:last-child pre').textContent.length > 100")
    assert page.evaluate(f"() => {SHADOW}.querySelector('.call:last-child pre').textContent.length") < 20_000
    assert problems == []


def test_a_page_in_a_language_that_no_browser_knows_has_a_panel(browser: Chromium, page: Page) -> None:
    problems = note_problems(page)
    for language in ("en_US", "x", "constructor", "de_AT"):
        play_panel(page, language)
        page.locator("fermata-panel .send").wait_for()
    assert page.locator("fermata-panel .send").get_attribute("aria-label") == "Senden"
    assert problems == []


def test_keys_of_an_input_method_neither_send_nor_stop(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.fill(COMPOSER, "にほんご")
    for key, more in (("Enter", {"isComposing": True}), ("Enter", {"keyCode": 229})):
        page.dispatch_event(COMPOSER, "keydown", {"key": key, **more})
    assert page.locator("fermata-panel .user").count() == 0
    page.press(COMPOSER, "Enter")
    page.wait_for_selector("fermata-panel .turn.running")
    page.evaluate("() => { window.cancelled = 0; turn.cancel = async () => { cancelled += 1; }; }")
    page.dispatch_event(COMPOSER, "keydown", {"key": "Escape", "keyCode": 229})
    assert page.evaluate("cancelled") == 0
    page.press(COMPOSER, "Escape")
    assert page.evaluate("cancelled") == 1


def test_a_turn_can_be_stopped_before_the_service_has_started_it(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.evaluate(
        "() => { window.cancelled = 0; turn.cancel = async () => { cancelled += 1; };"
        "client.start = () => new Promise(done => { window.begin = () => done(turn); }); }"
    )
    page.fill(COMPOSER, "Go")
    page.press(COMPOSER, "Enter")
    page.get_by_role("button", name="Stop").click()
    page.evaluate("() => begin()")
    page.wait_for_function("() => cancelled === 1")


def test_a_prompt_that_was_refused_comes_back_before_what_was_typed_meanwhile(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.evaluate(
        "() => { client.start = () => new Promise((_, fail) => {"
        "window.refuse = () => fail(new Error('The budget is used up.')); }); }"
    )
    page.fill(COMPOSER, "First")
    page.press(COMPOSER, "Enter")
    page.wait_for_function("() => window.refuse")
    page.fill(COMPOSER, "Second")
    page.evaluate("() => refuse()")
    page.get_by_text("The budget is used up.").wait_for()
    assert page.input_value(COMPOSER) == "First\n\nSecond"


def test_the_focus_stays_in_the_panel_whatever_is_pressed(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.fill(COMPOSER, "Go")
    page.press("fermata-panel .send", "Enter")
    page.wait_for_selector("fermata-panel .turn.running")
    assert focused(page) == "Stop"
    page.keyboard.press("Enter")
    assert focused(page) == "Stopping …"
    send(page, {"type": "error", "message": "It failed.", "seq": 1})
    page.wait_for_selector(IDLE)
    assert focused(page) == "Send"
    page.get_by_role("button", name="Try again").focus()
    page.evaluate("() => { client.start = async () => { throw new Error('No.'); }; }")
    page.keyboard.press("Enter")
    page.get_by_text("No.", exact=True).wait_for()
    assert focused(page) == "Try again"
    page.get_by_role("button", name="Dismiss").press("Enter")
    assert focused(page) == "Ask for a change …"


def test_a_problem_is_spoken_once(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.evaluate("() => { client.start = async () => { throw new Error('No.'); }; }")
    page.fill(COMPOSER, "Go")
    page.press(COMPOSER, "Enter")
    page.get_by_text("No.", exact=True).wait_for()
    page.evaluate(
        f"() => {{ window.spoken = 0; new MutationObserver(() => {{ spoken += 1; }})"
        f".observe({SHADOW}.querySelector('.problem'), {{childList: true, subtree: true}});"
        "for (let n = 0; n < 5; n += 1) dispatchEvent(new Event('online')); }"
    )
    assert page.evaluate("spoken") == 0


def test_nothing_behind_a_sheet_is_reached_by_the_keyboard(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.get_by_role("button", name="Conversations").click()
    page.get_by_text("No conversations yet").wait_for()
    inside = f"() => Boolean({SHADOW}.activeElement?.closest('.sheet')) || !{SHADOW}.activeElement"
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate(inside)
    page.get_by_role("button", name="Back").press("Enter")
    assert focused(page) == "Conversations"


def test_whoever_scrolls_back_while_text_streams_stays_there(browser: Chromium, page: Page) -> None:
    play_turns(page)
    send(page, {"type": "text", "text": "line\n\n" * 200, "seq": 1})
    page.get_by_text("line").last.wait_for()
    page.mouse.move(200, 200)
    page.wait_for_function(f"() => {SHADOW}.querySelector('.thread').scrollTop > 1000")
    page.evaluate(
        f"() => {{ const it = {SHADOW}.querySelector('.thread');"
        "it.onscrollend = () => { window.isAwayFromEnd = it.scrollHeight - it.scrollTop - it.clientHeight > 10; }; }"
    )
    page.mouse.wheel(0, -20)
    page.wait_for_function("() => window.isAwayFromEnd")
    top = "document.querySelector('fermata-panel').shadowRoot.querySelector('.thread').scrollTop"
    before = page.evaluate(top)
    send(page, {"type": "text", "text": "more\n\n" * 50, "seq": 2})
    page.get_by_text("more").last.wait_for(state="attached")
    assert page.evaluate(top) == before


def test_files_that_are_no_images_are_told_whatever_their_type_says(browser: Chromium, page: Page) -> None:
    play_panel(page)
    files = [
        {"name": "good.png", "mimeType": "image/png", "buffer": make_image(kind="PNG")},
        {"name": "empty.png", "mimeType": "image/png", "buffer": b""},
        {"name": "lying.jpg", "mimeType": "image/jpeg", "buffer": b"<svg onload=alert(1)>"},
    ]
    for file in files:
        page.set_input_files("fermata-panel input[type=file]", file)  # type: ignore[arg-type]
    page.get_by_text("lying.jpg cannot be read as an image.").wait_for()
    page.wait_for_function(f"() => {SHADOW}.querySelectorAll('.thumbnails img').length === 1")
    page.set_input_files("fermata-panel input[type=file]", [files[0]] * 9)  # type: ignore[arg-type]
    page.get_by_text("A prompt takes at most 8 images.").wait_for()
    assert page.locator("fermata-panel .thumbnails img").count() == 8
    assert page.locator("fermata-panel .send").get_attribute("aria-disabled") == "true"


def test_a_panel_that_is_taken_out_leaves_nothing_and_comes_back_with_its_draft(browser: Chromium, page: Page) -> None:
    problems = note_problems(page)
    play_panel(page)
    page.evaluate(
        "() => { window.isSpoiled = true; window.open = {urls: 0, channels: 0, followed: 0};"
        "const [make, revoke] = [URL.createObjectURL, URL.revokeObjectURL];"
        "URL.createObjectURL = blob => { open.urls += 1; return make.call(URL, blob); };"
        "URL.revokeObjectURL = url => { open.urls -= 1; revoke.call(URL, url); };"
        "const Channel = BroadcastChannel;"
        "window.BroadcastChannel = class extends Channel {"
        "  constructor(name) { super(name); open.channels += 1; } close() { open.channels -= 1; super.close(); } };"
        "turn.detach = () => { open.followed -= 1; };"
        "client.start = async () => { open.followed += 1; return turn; };"
        "window.panel = document.querySelector('fermata-panel'); panel.remove(); }"
    )
    page.evaluate("() => new Promise(done => setTimeout(done))")
    page.evaluate("() => document.body.append(panel)")
    page.set_input_files(
        "fermata-panel input[type=file]",
        {"name": "a.png", "mimeType": "image/png", "buffer": make_image(kind="PNG")},
    )
    page.fill(COMPOSER, "Go")
    page.press(COMPOSER, "Enter")
    page.wait_for_selector("fermata-panel .turn.running")
    page.fill(COMPOSER, "The next one")
    page.wait_for_function("() => open.urls === 0")
    page.evaluate("() => { document.body.append(panel); }")  # only moved: it goes on
    page.wait_for_selector("fermata-panel .turn.running")
    assert page.evaluate("open") == {"urls": 0, "channels": 1, "followed": 1}
    page.evaluate("() => { panel.remove(); }")
    page.wait_for_function("() => open.channels === 0")
    assert page.evaluate("open") == {"urls": 0, "channels": 0, "followed": 0}
    page.evaluate("() => document.body.append(panel)")
    page.wait_for_selector(f"{COMPOSER}:enabled")
    assert page.input_value(COMPOSER) == "The next one"
    assert problems == []


def test_text_runs_as_its_words_do_whatever_the_page_s_direction_is(browser: Chromium, page: Page) -> None:
    play_turns(page)
    text = "مرحبا hello!\n\n- أولا\n- ثانيا\n\nEnd."
    send(page, {"type": "text", "text": text, "seq": 1}, {"type": "done", "seq": 2})
    page.wait_for_selector(IDLE)
    sides = page.evaluate(
        f"() => [...{SHADOW}.querySelectorAll('.prose p, .prose li')].map(it => {{"
        "const range = document.createRange(); range.selectNodeContents(it);"
        "const [text, box] = [range.getBoundingClientRect(), it.getBoundingClientRect()];"
        "return Math.abs(text.left - box.left) < Math.abs(text.right - box.right) ? 'left' : 'right'; })"
    )
    assert sides == ["right", "right", "right", "left"]
    assert page.evaluate(f"() => getComputedStyle({SHADOW}.querySelector('.prose ul')).direction") == "rtl"


def test_what_was_not_carried_out_does_not_seem_to_run_when_the_turn_is_over(browser: Chromium, page: Page) -> None:
    play_turns(page)
    send(page, {"type": "toolCall", "toolCallId": "a", "toolName": "insertHtml", "input": {}, "seq": 1})
    page.wait_for_selector('fermata-panel .call[data-state="pending"]')
    send(page, {"type": "error", "message": "It failed.", "seq": 2})
    page.wait_for_selector('fermata-panel .call[data-state="open"]')
    assert "not carried out" in (page.locator("fermata-panel .call").text_content() or "")


def test_each_state_has_its_words_in_german_and_its_marks_in_forced_colours(browser: Chromium, page: Page) -> None:
    page.emulate_media(forced_colors="active")
    play_panel(page, "de")
    page.fill(COMPOSER, "Bitte")
    page.press(COMPOSER, "Enter")
    send(page, {"type": "toolCall", "toolCallId": "a", "toolName": "insertHtml", "input": {}, "seq": 1})
    page.get_by_text("Elemente hinzufügen").wait_for()
    colour = page.evaluate(
        f"() => [{SHADOW}.querySelector('.dot'), {SHADOW}.querySelector('.panel')]"
        ".map(it => getComputedStyle(it).backgroundColor)"
    )
    assert colour[0] != colour[1]


def test_a_turn_that_is_lost_does_not_seem_to_work_on_and_can_be_followed_again(browser: Chromium, page: Page) -> None:
    play_panel(page)
    page.evaluate("() => { turn.events = async function* () { throw new Error('It could not be followed.'); }; }")
    page.fill(COMPOSER, "Go")
    page.press(COMPOSER, "Enter")
    page.get_by_text("It could not be followed.").wait_for()
    assert page.locator("fermata-panel .status:visible").count() == 0
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("It could not be followed.").wait_for(state="hidden")


def test_a_german_panel_says_in_german_what_the_service_says_in_english(browser: Chromium, page: Page) -> None:
    play_panel(page, "de")
    page.fill(COMPOSER, "Los")
    page.press(COMPOSER, "Enter")
    page.wait_for_selector("fermata-panel .turn")
    send(
        page,
        {"type": "warning", "message": "The model was asked to answer.", "code": "repeatedCall", "seq": 1},
        {"type": "warning", "message": "A newer warning.", "code": "toString", "seq": 2},
        {"type": "error", "message": "Your credit of 5 USD is used up.", "code": "provider_quota", "seq": 3},
    )
    page.wait_for_selector(IDLE)
    notes = page.locator("fermata-panel .turn-footer .note p").all_inner_texts()
    assert notes[0].startswith("Das Modell hat denselben Schritt")
    assert notes[1:] == [
        "A newer warning.",
        "Das Guthaben oder Kontingent beim Anbieter ist aufgebraucht.",
        "Your credit of 5 USD is used up.",
    ]
