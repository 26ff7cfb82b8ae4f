"""Failure modes of Instatic's own server, each in the form that it has here.

There the stream is the turn, and its end loses the rest. Here the turn is stored.
"""

from collections.abc import Callable

import pytest

from fermata.conversations import message_views
from fermata.conversations.history.repair import UNANSWERED_CALL_ERROR
from fermata.domain.blocks import TextBlock, ToolResultBlock
from fermata.domain.errors import NotFound
from fermata.domain.events import ErrorEvent, ToolResultEvent
from fermata.domain.model_io import TextDelta
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import run_until_waiting
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, reply_with_text, tool_call_block
from tests.unit.turns.state_machine import StateMachine


def next_prompt(stage: Stage) -> list[str]:
    """Send another prompt, and return what the model reads then: a line for each message."""
    stage.start_turn("Go on", dialect="instatic")
    stage.script_replies("Of course.")
    stage.run_workflow()
    assert stage.event_types()[-1] == "done"
    return [_line(message.role, message.content[0]) for message in stage.driver.requests[-1].messages]


def _line(role: str, block: object) -> str:
    match block:
        case TextBlock():
            return f"{role}: {block.text}"
        case ToolResultBlock():
            return f"{role}: {block.error or 'ok'}"
        case _:
            return f"{role}: call"


def later(stage: Stage) -> Callable[[], None]:
    """A script step that lets a second pass."""
    return lambda: stage.pass_time(1)


class TestAbort:
    def test_the_request_is_aborted_at_once_and_no_error_is_shown(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies(
            [TextDelta(text="Half an ans"), stage.cancel_turn, later(stage), stage.connection.block_until_aborted]
        )
        stage.advance_turn()
        assert stage.connection.aborted.is_set()
        assert stage.event_types()[-2:] == ["usage", "cancelled"]
        invariants.check_invariants(stage, next_prompt=False)
        assert next_prompt(stage)[:2] == ["user: Do something", "assistant: Half an ans"]

    def test_tokens_until_the_abort_are_in_the_ledger(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies(
            [TextDelta(text="Half an ans"), stage.cancel_turn, later(stage), stage.connection.block_until_aborted]
        )
        stage.advance_turn()
        (row,) = stage.ledger_rows()
        assert row["estimated"] is True
        assert 0 < row["completion"] <= 3

    def test_an_open_call_is_closed_and_its_result_refused(self, stage: Stage) -> None:
        run_until_waiting(stage, "deleteNode", dialect="instatic")
        stage.cancel_turn()
        (closed,) = [event for event in stage.events() if isinstance(event, ToolResultEvent)]
        assert not closed.ok
        with pytest.raises(NotFound):
            stage.answer_request(OK)
        invariants.check_invariants(stage, next_prompt=False)
        assert next_prompt(stage) == [
            "user: Do something",
            "assistant: call",
            f"tool: {UNANSWERED_CALL_ERROR}",
            "user: Go on",
        ]

    def test_aborting_an_ended_turn_changes_nothing(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies("Hello.")
        stage.run_workflow()
        assert stage.cancel_turn() == "done"
        invariants.check_invariants(stage)


class TestInterruptedToolCalls:
    def test_the_next_invocation_waits_on_after_a_function_died(self, stage: Stage) -> None:
        """The call stays open across a lost chunk or a restart, and can still be answered."""
        machine = run_until_waiting(stage, "deleteNode", dialect="instatic")
        machine.time_out()
        machine.run()
        stage.answer_request(OK)
        stage.script_replies("Done.")
        assert machine.run() == "Finished"
        invariants.check_invariants(stage)

    def test_after_the_turn_failed_the_next_prompt_finds_every_call_answered(self, stage: Stage) -> None:
        run_until_waiting(stage, "deleteNode", "deleteNode", dialect="instatic")
        stage.answer_request(OK)
        stage.workflow.states[stage.turn.id, 1] = ("ABORTED", "")
        stage.recover_turn()
        invariants.check_invariants(stage, next_prompt=False)
        read = next_prompt(stage)
        assert read == [
            "user: Do something",
            "assistant: call",
            "tool: ok",
            f"tool: {UNANSWERED_CALL_ERROR}",
            "user: Go on",
        ]


class TestBrowserToolTimeout:
    def test_an_unanswered_call_ends_the_turn_after_90_seconds(self, stage: Stage) -> None:
        machine = run_until_waiting(stage, "deleteNode", dialect="instatic")
        stage.pass_time(89)
        machine.time_out()
        machine.run()
        assert stage.terminal_events() == []
        stage.pass_time(2)
        machine.time_out()
        assert machine.run() == "Finished"
        (error,) = stage.terminal_events()
        assert isinstance(error, ErrorEvent)
        assert error.message == "The editor did not answer in time. It was asked to run deleteNode."
        invariants.check_invariants(stage, next_prompt=False)
        assert next_prompt(stage)[2].startswith("tool: ")


class TestServerCrash:
    def test_the_round_restarts_when_nothing_was_shown(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies([ProcessDied()], "Hello.")
        assert StateMachine(stage).run() == "Finished"
        assert stage.streamed_text() == "Hello."
        invariants.check_invariants(stage)

    def test_the_turn_fails_when_shown_text_cannot_be_retracted(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
        assert StateMachine(stage).run() == "Finished"
        (error,) = stage.terminal_events()
        assert isinstance(error, ErrorEvent)
        assert error.message.endswith("Send your message again.")
        assert stage.streamed_text() == "Hel"
        invariants.check_invariants(stage, next_prompt=False)
        assert next_prompt(stage)[:2] == ["user: Do something", "assistant: Hel"]

    def test_a_bug_ends_the_turn_with_an_error_and_frees_the_conversation(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies([RuntimeError("a bug")], [RuntimeError("a bug")])
        assert StateMachine(stage).run() == "Failed"
        assert isinstance(stage.terminal_events()[0], ErrorEvent)
        assert "a bug" not in str(stage.events())
        invariants.check_invariants(stage)

    def test_a_providers_error_is_shown_unchanged(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        stage.script_replies([make_provider_error("provider_auth", retryable=False)])
        stage.run_workflow()
        (error,) = stage.terminal_events()
        assert isinstance(error, ErrorEvent)
        assert error.message == "The provider failed: provider_auth."
        invariants.check_invariants(stage)


def test_the_model_reads_a_tools_failure_and_retries(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    stage.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="wrong")),
        reply_with_calls(tool_call_block("deleteNode", nodeId="right")),
        "Gone.",
    )
    stage.run_workflow()
    stage.answer_request({"ok": False, "error": "There is no node 'wrong'."})
    stage.run_workflow()
    (read,) = stage.driver.requests[1].messages[-1].content
    assert isinstance(read, ToolResultBlock)
    assert read.error == "There is no node 'wrong'."
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    invariants.check_invariants(stage)


class TestPageReload:
    def test_the_turn_continues_and_the_conversation_shows_it(self, stage: Stage) -> None:
        run_until_waiting(stage, "deleteNode", dialect="instatic")
        roles = [
            line["role"]
            for line in message_views.read_message_page(stage.resources, stage.load_conversation(), "instatic").lines
        ]
        assert roles == ["user", "assistant"]
        assert stage.show_turn()["status"] == "paused"
        stage.answer_request(OK)
        stage.script_replies("Done.")
        stage.run_workflow()
        invariants.check_invariants(stage)

    def test_the_next_prompt_ends_the_running_turn(self, stage: Stage) -> None:
        run_until_waiting(stage, "deleteNode", dialect="instatic")
        left = stage.turn
        stage.pass_time(3)
        lines = next_prompt(stage)
        assert lines[-1] == "user: Go on"
        invariants.check_invariants(stage)
        stage._turn = left
        assert stage.event_types()[-1] == "cancelled"
        assert stage.turn_row()["state"] == "cancelled"

    def test_text_is_stored_as_far_as_it_was_shown(self, stage: Stage) -> None:
        stage.start_turn(dialect="instatic")
        text_delta, reply = reply_with_text("Half an ans")

        def again() -> None:
            stage.pass_time(3)
            stage.start_turn("Hello?", dialect="instatic")

        first = stage.turn
        stage.script_replies([text_delta, again, reply], "Second.")
        stage.advance_turn(stage.make_invocation())
        assert [message.content[0] for message in stage.load_messages()][:2] == [
            TextBlock(text="Do something"),
            TextBlock(text="Half an ans"),
        ]
        stage.run_workflow()
        invariants.check_invariants(stage)
        assert first.id != stage.turn.id
