"""Each generation of Instatic's browsers works with the service, unchanged except for its address."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fermata.conversations import conversation_store
from fermata.domain.model_io import ReasoningDelta
from fermata.turns.turn import find_turn
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from tests.images import make_image, make_jpeg_header, open_image, to_base64
from tests.tenant_tokens import TokenSigner
from tests.unit.instatic.browser import Browser, PanelRun
from tests.unit.instatic.conftest import Open
from tests.unit.instatic.live_service import AdjustableClock
from tests.unit.instatic.schemas import NEWEST
from tests.unit.turns.invariants import check_invariants
from tests.unit.turns.stage import (
    ADA,
    MAX_THREAD_WAIT_SECONDS,
    OK,
    Stage,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.waiting import BACKSTOP_SECONDS, wait_until

NAMES = {"0.0.6": ("insertHtml", "list_documents"), "0.0.8": ("site_insert_html", "site_list_documents")}
NAMES[NEWEST] = NAMES["0.0.8"]


@pytest.fixture
def conversation(stage: Stage, browser: Browser) -> str:
    conversation_id = browser.create_conversation(stage.credential.id, "model-1")
    stage.conversation = conversation_store.get_conversation(stage.resources, ADA, conversation_id)
    return conversation_id


@pytest.fixture
def insert(generation: str) -> str:
    """The name that the editor has for the tool that inserts HTML."""
    return NAMES[generation][0]


def check_ended_turn(stage: Stage, run: PanelRun) -> None:
    """Wait until the turn has ended, and check the invariants of ended turns."""
    stage._turn = find_turn(stage.resources, ADA.tenant, run.bridge)
    wait_until(lambda: stage.event_types()[-1] in ("done", "error", "cancelled"), "the turn ends")
    check_invariants(stage, next_prompt=False)


class Gate:
    """A step of a provider's script that waits until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(MAX_THREAD_WAIT_SECONDS), "the gate was not opened"


def test_a_text_turn_is_shown_and_loaded_again(stage: Stage, browser: Browser, conversation: str) -> None:
    stage.script_replies("Good morning.")
    run = browser.send_prompt(conversation, "  Hello  ")
    assert (run.text, run.is_done, run.error, run.dropped) == ("Good morning.", True, None, [])
    assert run.kinds == ["bridgeReady", "text", "context", "usage", "done"]
    assert run.usage is not None
    assert (run.usage["promptTokens"], run.usage["costUsd"]) == (10, 0)
    assert run.context == [10]
    opened = browser.load_messages(conversation)
    texts = [(message["role"], message["content"][0]["text"]) for message in opened]
    assert texts == [("user", "Hello"), ("assistant", "Good morning.")]
    newest = browser.list_conversations()[0]
    assert (newest["id"], newest["title"], newest["contextTokens"]) == (conversation, "Hello", 10)
    check_ended_turn(stage, run)


def test_the_tenant_sets_the_thinking_budget_and_reasoning_is_not_shown(
    stage: Stage, browser: Browser, conversation: str
) -> None:
    update_tenant(stage.resources, ADA.tenant, limits=TenantLimits(thinking_tokens=2048))
    text, reply = reply_with_text("Good morning.")
    stage.script_replies([ReasoningDelta(text="A greeting."), text, reply])
    run = browser.send_prompt(conversation, "Hello")
    assert stage.driver.requests[0].thinking_tokens == 2048
    assert (run.text, run.dropped) == ("Good morning.", [])
    assert run.kinds == ["bridgeReady", "text", "context", "usage", "done"]


def test_a_warning_about_a_cut_prompt_is_shown_and_not_stored(
    stage: Stage, browser: Browser, conversation: str
) -> None:
    text, reply = reply_with_text("Good morning.")
    stage.script_replies([text, reply.model_copy(update={"warning": "The server cut the prompt."})])
    run = browser.send_prompt(conversation, "Hello")
    assert (run.text.strip(), run.dropped) == ("Good morning.\n\nThe server cut the prompt.", [])
    assert [message["content"][0]["text"] for message in browser.load_messages(conversation)] == [
        "Hello",
        "Good morning.",
    ]
    check_ended_turn(stage, run)


def test_tools_run_in_the_browser_call_by_call(
    stage: Stage, browser: Browser, conversation: str, generation: str
) -> None:
    insert, documents = NAMES[generation]
    inputs: list[Any] = []
    browser.tools[insert] = lambda value: inputs.append(value) or OK
    first, second = tool_call_block(insert, parentId="a", html="1"), tool_call_block(insert, parentId="b", html="2")
    stage.script_replies(reply_with_calls(first, tool_call_block(documents), second, text="I add two."), "Done.")
    run = browser.send_prompt(conversation, "Add two")
    assert (run.is_done, run.error, run.dropped) == (True, None, [])
    assert [value["parentId"] for value in inputs] == ["a", "b"]
    assert [(badge.name, badge.state) for badge in run.badges.values()] == [
        (insert, "ok"),
        (documents, "ok"),
        (insert, "ok"),
    ]
    assert run.text == "I add two.Done."
    assert run.usage is not None
    assert run.usage["promptTokens"] == 20
    opened = browser.load_messages(conversation)
    assert [message["role"] for message in opened] == ["user", *["assistant"] * 4, *["tool"] * 3, "assistant"]
    assert {message["toolName"] for message in opened} == {None, insert, documents}
    check_ended_turn(stage, run)


def test_a_failed_tool_is_reported_to_the_model_and_shown(
    stage: Stage, browser: Browser, conversation: str, insert: str
) -> None:
    browser.tools[insert] = lambda _: {"ok": False, "error": "There is no such node."}
    stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")), "Then not.")
    run = browser.send_prompt(conversation, "Add one")
    assert [(badge.state, badge.error) for badge in run.badges.values()] == [("failed", "There is no such node.")]
    assert run.is_done
    check_ended_turn(stage, run)


def test_a_provider_error_is_shown_literally(stage: Stage, browser: Browser, conversation: str) -> None:
    text, _ = reply_with_text("Half an ans")
    stage.script_replies([text, make_provider_error("provider_error", retryable=False)])
    run = browser.send_prompt(conversation, "Hello")
    assert run.text == "Half an ans"
    assert run.error == "The provider failed: provider_error."
    assert (run.kinds[-1], run.is_done, run.dropped) == ("error", False, [])
    check_ended_turn(stage, run)


class TestStopping:
    """Instatic's browsers stop by closing the connection."""

    def test_a_closed_connection_ends_the_turn_where_it_can_be_detected(
        self, stage: Stage, browser: Browser, conversation: str
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("A long answ")
        stage.script_replies([text, gate, reply])
        browser.aborts_at = "text"
        run = browser.send_prompt(conversation, "Hello")
        assert gate.reached.wait(MAX_THREAD_WAIT_SECONDS)
        wait_until(lambda: stage.load_conversation().claim is None, "the turn is cancelled")
        gate.opened.set()
        check_ended_turn(stage, run)
        assert stage.event_types()[-1] == "cancelled"
        opened = browser.load_messages(conversation)
        assert [message["content"][0]["text"] for message in opened] == ["Hello", "A long answ"]

    def test_a_prompt_after_that_continues_the_conversation(
        self, stage: Stage, browser: Browser, conversation: str, insert: str
    ) -> None:
        stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")), "And now?")
        browser.aborts_at = "toolCall"
        run = browser.send_prompt(conversation, "Add one")
        wait_until(lambda: stage.load_conversation().claim is None, "the turn is cancelled")
        check_ended_turn(stage, run)
        browser.aborts_at = None
        again = browser.send_prompt(conversation, "Go on")
        assert (again.text, again.is_done) == ("And now?", True)
        assert [message.role for message in stage.driver.requests[-1].messages] == ["user", "assistant", "tool", "user"]
        check_ended_turn(stage, again)

    def test_a_second_reader_keeps_the_turn_alive(
        self, stage: Stage, browser: Browser, conversation: str, insert: str
    ) -> None:
        browser.tools[insert] = lambda _: OK
        stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")), "Done.")
        browser.aborts_at = "toolCall"
        run = browser.send_prompt(conversation, "Add one")
        with browser.http.stream("GET", f"/bridges/{run.bridge}/events") as second:
            lines = second.iter_lines()
            next(lines)
            wait_for_abandonment(stage)
            assert stage.load_conversation().claim == run.bridge
        wait_until(
            lambda: stage.load_conversation().claim is None, "the turn is cancelled when the second reader has left too"
        )
        check_ended_turn(stage, run)

    def test_a_reader_that_reconnects_in_time_keeps_the_turn_alive(
        self, stage: Stage, browser: Browser, conversation: str
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("Long.")
        stage.script_replies([text, gate, reply])
        browser.aborts_at = "text"
        run = browser.send_prompt(conversation, "Hello")
        with browser.http.stream("GET", f"/bridges/{run.bridge}/events") as second:
            wait_for_abandonment(stage)
            gate.opened.set()
            assert b'"done"' in second.read()
        check_ended_turn(stage, run)
        assert stage.event_types()[-1] == "done"

    def test_a_resend_after_the_users_own_stop_is_welcome_at_once(
        self, stage: Stage, browser: Browser, conversation: str
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("A long answ")
        stage.script_replies([text, gate, reply], "Second.")
        browser.aborts_at = "text"
        first = browser.send_prompt(conversation, "Hello")
        browser.aborts_at = None
        second = browser.send_prompt(conversation, "Hello")
        gate.opened.set()
        assert (second.text, second.is_done, second.error) == ("Second.", True, None)
        check_ended_turn(stage, first)
        assert stage.event_types()[-1] == "cancelled"
        check_ended_turn(stage, second)

    @pytest.mark.parametrize("seconds", [0, 3, 20])
    def test_a_second_tabs_prompt_is_refused_while_the_first_tab_reads(
        self,
        stage: Stage,
        browser: Browser,
        another_browser: Open,
        conversation: str,
        clock: AdjustableClock,
        generation: str,
        seconds: int,
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("A long answer.")
        stage.script_replies([gate, text, reply])
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(browser.send_prompt, conversation, "Hello")
            assert gate.reached.wait(MAX_THREAD_WAIT_SECONDS)
            clock.advance(seconds)
            second = another_browser().send_prompt(conversation, "And now?")
            gate.opened.set()
            run = first.result(BACKSTOP_SECONDS)
        expected = "409 Conflict"
        if generation == NEWEST:
            expected = "This conversation is already generating a response. Wait for it to end, or cancel it."
        assert second.error == expected
        assert (run.text, run.is_done, run.error) == ("A long answer.", True, None)
        check_ended_turn(stage, run)


class TestWithoutDetectionOfDisconnects:
    @pytest.fixture
    def quick(self, quick: dict[str, object]) -> dict[str, object]:
        """The settings of AWS, where disconnects are not detected."""
        return quick | {"fermata_stage": "prod"}

    def test_the_next_prompt_interrupts_the_running_turn(
        self, stage: Stage, browser: Browser, conversation: str, clock: AdjustableClock
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("A long answ")
        stage.script_replies([text, gate, reply], "Second.")
        browser.aborts_at = "text"
        first = browser.send_prompt(conversation, "Hello")
        assert gate.reached.wait(MAX_THREAD_WAIT_SECONDS)
        wait_for_abandonment(stage)
        assert stage.load_conversation().claim == first.bridge
        browser.aborts_at = None
        clock.advance(3)
        second = browser.send_prompt(conversation, "Something else")
        gate.opened.set()
        assert (second.text, second.is_done, second.dropped) == ("Second.", True, [])
        check_ended_turn(stage, first)
        assert stage.event_types()[-1] == "cancelled"
        check_ended_turn(stage, second)

    def test_a_second_prompt_within_two_seconds_is_refused_as_a_double_click(
        self, stage: Stage, browser: Browser, conversation: str, generation: str, insert: str
    ) -> None:
        stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")))
        browser.aborts_at = "toolCall"
        run = browser.send_prompt(conversation, "Add one")
        second = browser.send_prompt(conversation, "Add one")
        assert second.error is not None
        if generation == NEWEST:
            assert second.error.startswith("This conversation is already generating a response")
        else:
            assert second.error == "409 Conflict"
        assert stage.load_conversation().claim == run.bridge

    def test_the_same_prompt_whose_second_request_starts_late_is_a_double_click(
        self, stage: Stage, browser: Browser, conversation: str, clock: AdjustableClock, insert: str
    ) -> None:
        stage.script_replies(reply_with_calls(tool_call_block(insert, parentId="x", html="1")))
        browser.aborts_at = "toolCall"
        run = browser.send_prompt(conversation, "Add one")
        clock.advance(5)
        assert browser.send_prompt(conversation, "Add one").error is not None
        assert stage.load_conversation().claim == run.bridge

    def test_a_tab_whose_turn_another_prompt_has_ended_is_told_so(
        self, stage: Stage, browser: Browser, another_browser: Open, conversation: str, clock: AdjustableClock
    ) -> None:
        gate = Gate()
        text, reply = reply_with_text("A long answer.")
        stage.script_replies([text, gate, reply], "Second.")
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(browser.send_prompt, conversation, "Hello")
            assert gate.reached.wait(MAX_THREAD_WAIT_SECONDS)
            clock.advance(3)
            second = another_browser().send_prompt(conversation, "And now?")
            run = first.result(BACKSTOP_SECONDS)
            gate.opened.set()
        assert (second.text, second.is_done) == ("Second.", True)
        assert (run.is_done, run.dropped) == (False, [])
        assert run.error == "Another prompt in this conversation, for example from another tab, has ended this answer."

    def test_another_user_cannot_interrupt_a_turn_or_see_it(
        self, stage: Stage, browser: Browser, conversation: str, another_browser: Open, generation: str
    ) -> None:
        bob = another_browser(user="bob")
        run = bob.send_prompt(conversation, "Mine?")
        assert run.error == ("Conversation not found" if generation == NEWEST else "404 Not Found")


def wait_for_abandonment(stage: Stage) -> None:
    """Wait longer than it takes until a turn without readers is cancelled."""
    threading.Event().wait(2 * stage.resources.settings.abandoned_seconds)


class TestATurnThatEndsWhileAToolRuns:
    def test_open_calls_are_closed_before_usage_and_done(
        self, stage: Stage, browser: Browser, conversation: str, insert: str, generation: str
    ) -> None:
        """After a cancel while the tool runs, every generation understands the rest of the stream."""
        cancelled: list[str] = []

        def cancel_and_succeed(_: Any) -> dict[str, Any]:
            active = browser.http.get(f"/conversations/{conversation}").json()["conversation"]["activeTurn"]
            answer = browser.http.post(f"/bridges/{active['bridgeId']}/cancel")
            cancelled.append(answer.json()["status"])
            return OK

        browser.tools[insert] = cancel_and_succeed
        stage.script_replies(
            reply_with_calls(
                tool_call_block(insert, parentId="x", html="1"), tool_call_block(insert, parentId="y", html="2")
            )
        )
        run = browser.send_prompt(conversation, "Add two")
        assert cancelled == ["cancelled"]
        if generation == NEWEST:
            assert run.error is not None
            assert "bridge is no longer active" in run.error
        else:
            assert run.error is None
            assert run.kinds[-4:] == ["toolResult", "toolResult", "usage", "done"]
            assert [badge.state for badge in run.badges.values()] == ["failed", "failed"]
        opened = browser.load_messages(conversation)
        assert [message["role"] for message in opened] == ["user", "assistant", "tool", "assistant", "tool"]
        closed = [message for message in opened if message["role"] == "tool"]
        assert [message["toolCallId"] for message in closed] == list(run.badges)
        assert not any(message["content"][0]["ok"] for message in closed)
        assert run.dropped == []
        check_ended_turn(stage, run)


class TestRequestsOfTheEditorItself:
    def test_an_open_editor_without_a_connector_asks_for_its_bridge_every_five_minutes(
        self, browser: Browser, generation: str
    ) -> None:
        asked = browser.hold_bridge(8 * 300)
        assert asked == [403] * (1 if generation == "0.0.6" else 8)

    def test_there_are_no_connectors(self, browser: Browser) -> None:
        answer = browser.http.get("/mcp/connectors")
        assert (answer.status_code, answer.json()) == (200, {"connectors": []})

    def test_a_foreign_session_under_the_same_cookie_name_is_refused(
        self, service: str, bakery: TokenSigner, generation: str
    ) -> None:
        with Browser(service, generation, "not-a-token-of-ours", bakery.origin) as stranger:
            assert stranger.http.get("/mcp/connectors").status_code == 401


@pytest.mark.parametrize("generation", [NEWEST], indirect=True)
class TestNewestGeneration:
    def test_images_are_sent_and_shown_again(self, stage: Stage, browser: Browser, conversation: str) -> None:
        stage.script_replies("Nice.")
        run = browser.send_prompt(conversation, "Look", to_base64(make_image(70, 80)), to_base64(make_image()))
        assert (run.text, run.error) == ("Nice.", None)
        content = browser.load_messages(conversation)[0]["content"]
        assert [block["kind"] for block in content] == ["text", "image", "image"]
        answer = browser.http.get(f"http://{browser.http.base_url.netloc.decode()}{content[1]['url']}")
        assert answer.status_code == 200
        assert open_image(answer.content).size == (70, 80)
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["cache-control"] == "private, no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        check_ended_turn(stage, run)

    def test_a_missing_image_is_a_404_with_instatics_text(self, browser: Browser, conversation: str) -> None:
        answer = browser.http.get(f"/conversations/{conversation}/messages/none-0/images/1")
        assert (answer.status_code, answer.json()) == (404, {"error": "Conversation image not found"})

    @pytest.mark.parametrize(
        ("picture", "status"),
        [(b"<svg/>", 400), (make_image(2000, 10), 413), (make_jpeg_header(filler=1_600_000), 413)],
    )
    def test_an_invalid_image_is_refused_before_anything_is_stored(
        self, stage: Stage, browser: Browser, conversation: str, picture: bytes, status: int
    ) -> None:
        image = {"kind": "image", "mimeType": "image/jpeg", "data": to_base64(picture)}
        answer = browser.http.post("/chat/site", json={"conversationId": conversation, "content": [image]})
        assert answer.status_code == status
        assert stage.load_messages() == []

    def test_an_image_type_that_the_browser_cannot_show_is_refused(self, browser: Browser, conversation: str) -> None:
        image = {"kind": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}
        answer = browser.http.post("/chat/site", json={"conversationId": conversation, "content": [image]})
        assert answer.status_code == 400
        assert "image/jpeg" in answer.json()["error"]


def test_each_generation_is_offered_the_tools_it_has_and_receives_what_the_model_asks_for(
    stage: Stage, browser: Browser, conversation: str, generation: str
) -> None:
    name = {"0.0.6": "applyCss"}.get(generation, "site_apply_css")
    newest = {"operation": "remove-properties", "selectors": [".a"], "properties": ["top"]}
    arguments = newest if generation == NEWEST else {"css": ".a { top: 0 }"}
    inputs: list[Any] = []
    browser.tools[name] = lambda value: inputs.append(value) or OK
    stage.script_replies(reply_with_calls(tool_call_block(name, **arguments)), "Done.")
    run = browser.send_prompt(conversation, "Tidy up")
    assert (run.is_done, run.error, run.dropped) == (True, None, [])
    schema = next(tool.input_schema for tool in stage.driver.requests[0].tools if tool.name == name)
    assert list(schema["properties"]) == (
        ["operation", "css", "selectors", "properties"] if generation == NEWEST else ["css"]
    )
    assert inputs == [arguments if generation == NEWEST else arguments | {"operation": "merge"}]
    check_ended_turn(stage, run)


def test_the_model_reads_what_of_its_input_had_no_effect(
    stage: Stage, browser: Browser, conversation: str, insert: str
) -> None:
    inputs: list[Any] = []
    browser.tools[insert] = lambda value: inputs.append(value) or OK
    call = tool_call_block(insert, parentId="x", html="1", position="before")
    stage.script_replies(reply_with_calls(call), "Done.")
    run = browser.send_prompt(conversation, "Add one")
    assert (run.is_done, run.dropped, inputs) == (True, [], [{"parentId": "x", "html": "1"}])
    assert "ignoredInput" in stage.driver.requests[1].messages[-1].model_dump_json()
    assert "ignoredInput" not in stage.driver.requests[0].model_dump_json()
    check_ended_turn(stage, run)
