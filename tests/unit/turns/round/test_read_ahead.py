"""Test that an invocation reads messages together with its rows, and never sends a history older than the log."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.domain.messages import Message
from fermata.turns.round import open_turn
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

ReadFirstBatch = Callable[..., list[Message]]


@pytest.fixture
def history_reads(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Queries of a conversation's messages."""
    queries: list[dict[str, Any]] = []
    call = stage.resources.tables._client._make_api_call

    def record(operation: str, params: Any) -> Any:
        if operation == "Query" and params["TableName"] == stage.resources.settings.conversations_table:
            queries.append(params)
        return call(operation, params)

    monkeypatch.setattr(stage.resources.tables._client, "_make_api_call", record)
    return queries


def hint_of(stage: Stage, **members: Any) -> dict[str, Any]:
    return {**stage.turn.start_hint, **members}


def replace_reading(monkeypatch: pytest.MonkeyPatch, wrap: Callable[[ReadFirstBatch], ReadFirstBatch]) -> None:
    monkeypatch.setattr(open_turn, "read_first_batch", wrap(open_turn.read_first_batch))


def wait_for_editor(stage: Stage) -> None:
    stage.start_turn("Hello")
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n")))
    assert stage.run_workflow() == "waiting"


def roles_sent(stage: Stage) -> list[str]:
    return [message.role for message in stage.driver.requests[-1].messages]


def test_messages_that_were_read_ahead_are_not_read_again(stage: Stage, history_reads: list[Any]) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Done.")
    stage.advance_turn(hint=stage.turn.start_hint)
    assert roles_sent(stage) == ["user"]
    assert len(history_reads) == 1


def test_messages_of_an_answer_are_read_ahead(stage: Stage, history_reads: list[Any]) -> None:
    wait_for_editor(stage)
    stage.answer_request(OK)
    history_reads.clear()
    stage.script_replies("Done.")
    stage.advance_turn(hint=stage.load_pause().build_invocation_hint(stage.resources.settings.bridges_table))
    assert roles_sent(stage) == ["user", "assistant", "tool"]
    assert len(history_reads) == 1


@pytest.mark.parametrize("conversation", ["another", 17, None])
def test_a_hint_of_another_conversation_decides_nothing(stage: Stage, conversation: Any) -> None:
    stage.start_turn("Hello")
    stage.script_replies("Done.")
    stage.advance_turn(hint=hint_of(stage, conversation=conversation))
    assert roles_sent(stage) == ["user"]


def test_messages_older_than_the_log_are_read_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is committed after the messages were read, and before the rows are."""
    wait_for_editor(stage)
    answered = threading.Event()

    def answer_after_reading(read: ReadFirstBatch) -> ReadFirstBatch:
        def read_and_answer(*arguments: Any) -> list[Message]:
            messages = read(*arguments)
            stage.answer_request(OK)
            answered.set()
            return messages

        return read_and_answer

    replace_reading(monkeypatch, answer_after_reading)
    # The hint of an answer that is under way names the entry that it will have.
    hint = hint_of(stage, round=1, entry=stage.load_pause().next_number, next=stage.load_pause().next_number + 1)
    batch_get = stage.resources.tables.batch_get_items

    def wait_and_read(*arguments: Any) -> Any:
        answered.wait()
        return batch_get(*arguments)

    monkeypatch.setattr(stage.resources.tables, "batch_get_items", wait_and_read)
    stage.script_replies("Done.")
    stage.advance_turn(hint=hint)
    assert [result.ok for result in stage.results_sent_to_model()] == [True]


def test_messages_that_could_not_be_read_ahead_are_read_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_read: ReadFirstBatch) -> ReadFirstBatch:
        def raise_error(*_: Any) -> list[Message]:
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "Query")

        return raise_error

    replace_reading(monkeypatch, fail)
    stage.start_turn("Hello")
    stage.script_replies("Done.")
    stage.advance_turn(hint=stage.turn.start_hint)
    assert roles_sent(stage) == ["user"]
    assert stage.show_turn()["status"] == "done"


def test_a_result_that_the_server_adds_is_part_of_the_next_request(staged: MakeStage) -> None:
    stage = staged()
    stage.start_turn("Hello")
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "Done.")
    stage.advance_turn(hint=stage.turn.start_hint)
    assert roles_sent(stage) == ["user", "assistant", "tool"]
