"""Turns that an Instatic browser stops, leaves, or answers too late."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.instatic.browser import Browser, PanelRun
from tests.unit.instatic.conftest import Open
from tests.unit.instatic.live_service import AdjustableClock
from tests.unit.instatic.panel_runs import Gate, check_ended_turn
from tests.unit.instatic.schemas import NEWEST
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    Stage,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.waiting import BACKSTOP_SECONDS, wait_until


def leave_in_mid_text(
    stage: Stage, browser: Browser, conversation: str, text: str, *later: str
) -> tuple[PanelRun, Gate]:
    """Send a prompt and close the connection at the first text. The model goes on when the gate is opened."""
    gate = Gate()
    first, reply = reply_with_text(text)
    stage.script_replies([first, gate, reply], *later)
    browser.aborts_at = "text"
    return browser.send_prompt(conversation, "Hello"), gate


class TestStopping:
    """Instatic's browsers stop by closing the connection."""

    def test_a_closed_connection_ends_the_turn_where_it_can_be_detected(
        self, stage: Stage, browser: Browser, conversation: str
    ) -> None:
        run, gate = leave_in_mid_text(stage, browser, conversation, "A long answ")
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
        run, gate = leave_in_mid_text(stage, browser, conversation, "Long.")
        with browser.http.stream("GET", f"/bridges/{run.bridge}/events") as second:
            wait_for_abandonment(stage)
            gate.opened.set()
            assert b'"done"' in second.read()
        check_ended_turn(stage, run)
        assert stage.event_types()[-1] == "done"

    def test_a_resend_after_the_users_own_stop_is_welcome_at_once(
        self, stage: Stage, browser: Browser, conversation: str
    ) -> None:
        first, gate = leave_in_mid_text(stage, browser, conversation, "A long answ", "Second.")
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
        first, gate = leave_in_mid_text(stage, browser, conversation, "A long answ", "Second.")
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
