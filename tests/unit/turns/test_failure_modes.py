"""The failure modes that Instatic's own document names (seed 000), each in its durable form.

There a stream is the turn, and its end loses the rest. Here the turn is what is stored.
"""

from collections.abc import Callable

import pytest

from fermata.conversations import views
from fermata.conversations.healing import UNANSWERED
from fermata.words.blocks import TextBlock, ToolResultBlock
from fermata.words.errors import NotFound
from fermata.words.events import ToolResult, TurnError
from fermata.words.model import TextDelta
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import asking
from tests.unit.turns.stage import OK, Stage, call, calls, failure, says


def next_prompt(stage: Stage) -> list[str]:
    """Says something more, and tells what the model then reads of the turn before, a line for each message."""
    stage.start("Go on", dialect="instatic")
    stage.says("Of course.")
    stage.run()
    assert stage.types()[-1] == "done"
    return [_line(message.role, message.content[0]) for message in stage.driver.asks[-1].messages]


def _line(role: str, block: object) -> str:
    match block:
        case TextBlock():
            return f"{role}: {block.text}"
        case ToolResultBlock():
            return f"{role}: {block.error or 'ok'}"
        case _:
            return f"{role}: call"


def later(stage: Stage) -> Callable[[], None]:
    """A second goes by, to be put into a script."""
    return lambda: stage.pass_time(1)


class TestAbort:
    def test_the_providers_line_is_cut_at_once_and_no_error_is_shown(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([TextDelta(text="Half an ans"), stage.cancel, later(stage), stage.line.stay_until_hung_up])
        stage.advance()
        assert stage.line.hung_up.is_set()
        assert stage.types()[-2:] == ["usage", "cancelled"]
        truth.check(stage, next_prompt=False)
        assert next_prompt(stage)[:2] == ["user: Do something", "assistant: Half an ans"]

    def test_what_was_generated_until_then_is_in_the_ledger_and_nothing_later_is(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([TextDelta(text="Half an ans"), stage.cancel, later(stage), stage.line.stay_until_hung_up])
        stage.advance()
        (row,) = stage.ledger()
        assert row["estimated"] is True
        assert 0 < row["completion"] <= 3

    def test_a_call_that_waits_for_the_browser_is_closed_and_its_result_comes_too_late(self, stage: Stage) -> None:
        asking(stage, "deleteNode", dialect="instatic")
        stage.cancel()
        (closed,) = [event for event in stage.events() if isinstance(event, ToolResult)]
        assert not closed.ok
        with pytest.raises(NotFound):
            stage.answer(OK)
        truth.check(stage, next_prompt=False)
        assert next_prompt(stage) == ["user: Do something", "assistant: call", f"tool: {UNANSWERED}", "user: Go on"]

    def test_aborting_what_is_over_changes_nothing(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says("Hello.")
        stage.run()
        assert stage.cancel() == "done"
        truth.check(stage)


class TestInterruptedToolCalls:
    def test_a_function_that_dies_between_call_and_result_is_followed_by_one_that_waits_on(self, stage: Stage) -> None:
        """The chunk that never came, the server that restarted: the call is open, and is still answered."""
        machine = asking(stage, "deleteNode", dialect="instatic")
        machine.ring()
        machine.run()
        stage.answer(OK)
        stage.says("Done.")
        assert machine.run() == "Finished"
        truth.check(stage)

    def test_when_the_turn_is_given_up_the_next_prompt_finds_every_call_answered(self, stage: Stage) -> None:
        asking(stage, "deleteNode", "deleteNode", dialect="instatic")
        stage.answer(OK)
        stage.workflow.states[stage.turn.id, 1] = ("ABORTED", "")
        stage.recover()
        truth.check(stage, next_prompt=False)
        read = next_prompt(stage)
        assert read == ["user: Do something", "assistant: call", "tool: ok", f"tool: {UNANSWERED}", "user: Go on"]


class TestBrowserToolTimeout:
    def test_a_browser_that_never_posts_ends_the_turn_after_ninety_seconds(self, stage: Stage) -> None:
        machine = asking(stage, "deleteNode", dialect="instatic")
        stage.pass_time(89)
        machine.ring()
        machine.run()
        assert stage.terminals() == []
        stage.pass_time(2)
        machine.ring()
        assert machine.run() == "Finished"
        (error,) = stage.terminals()
        assert isinstance(error, TurnError)
        assert error.message == "The editor did not answer in time. It was asked to run deleteNode."
        truth.check(stage, next_prompt=False)
        assert next_prompt(stage)[2].startswith("tool: ")


class TestACrashOnTheServer:
    def test_the_turn_starts_over_and_its_text_is_there_once_where_nothing_was_shown(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([Death()], "Hello.")
        assert Machine(stage).run() == "Finished"
        assert stage.text() == "Hello."
        truth.check(stage)

    def test_where_text_was_shown_that_cannot_be_taken_back_the_user_reads_an_error(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([TextDelta(text="Hel"), Death()])
        assert Machine(stage).run() == "Finished"
        (error,) = stage.terminals()
        assert isinstance(error, TurnError)
        assert error.message.endswith("Send your message again.")
        assert stage.text() == "Hel"
        truth.check(stage, next_prompt=False)
        assert next_prompt(stage)[:2] == ["user: Do something", "assistant: Hel"]

    def test_a_bug_of_ours_ends_the_turn_with_an_error_and_frees_the_conversation(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([RuntimeError("a bug")], [RuntimeError("a bug")])
        assert Machine(stage).run() == "Failed"
        assert isinstance(stage.terminals()[0], TurnError)
        assert "a bug" not in str(stage.events())
        truth.check(stage)

    def test_an_error_of_the_provider_is_shown_word_for_word(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        stage.says([failure("provider_auth", retryable=False)])
        stage.run()
        (error,) = stage.terminals()
        assert isinstance(error, TurnError)
        assert error.message == "The provider failed: provider_auth."
        truth.check(stage)


def test_a_tool_that_fails_is_read_by_the_model_which_tries_again(stage: Stage) -> None:
    stage.start(dialect="instatic")
    stage.says(calls(call("deleteNode", nodeId="wrong")), calls(call("deleteNode", nodeId="right")), "Gone.")
    stage.run()
    stage.answer({"ok": False, "error": "There is no node 'wrong'."})
    stage.run()
    (read,) = stage.driver.asks[1].messages[-1].content
    assert isinstance(read, ToolResultBlock)
    assert read.error == "There is no node 'wrong'."
    stage.answer(OK)
    assert stage.run() == "finished"
    truth.check(stage)


class TestAPageReload:
    def test_the_turn_goes_on_and_the_thread_shows_what_there_is(self, stage: Stage) -> None:
        asking(stage, "deleteNode", dialect="instatic")
        seen = [line["role"] for line in views.page(stage.desk, stage.thread(), "instatic").lines]
        assert seen == ["user", "assistant"]
        assert stage.look()["status"] == "paused"
        stage.answer(OK)
        stage.says("Done.")
        stage.run()
        truth.check(stage)

    def test_sending_again_ends_what_was_left_running(self, stage: Stage) -> None:
        asking(stage, "deleteNode", dialect="instatic")
        left = stage.turn
        stage.pass_time(3)
        said = next_prompt(stage)
        assert said[-1] == "user: Go on"
        truth.check(stage)
        stage._turn = left
        assert stage.types()[-1] == "cancelled"
        assert stage.turn_row()["state"] == "cancelled"

    def test_a_text_that_was_under_way_is_kept_as_far_as_it_was_shown(self, stage: Stage) -> None:
        stage.start(dialect="instatic")
        said, reply = says("Half an ans")

        def again() -> None:
            stage.pass_time(3)
            stage.start("Hello?", dialect="instatic")

        first = stage.turn
        stage.says([said, again, reply], "Second.")
        stage.advance(stage.wake())
        assert [message.content[0] for message in stage.messages()][:2] == [
            TextBlock(text="Do something"),
            TextBlock(text="Half an ans"),
        ]
        stage.run()
        truth.check(stage)
        assert first.id != stage.turn.id
