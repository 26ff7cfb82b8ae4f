"""Repair of histories: any stored rows become a valid conversation."""

import re

import pytest

from fermata.conversations.history.repair import UNANSWERED_CALL_ERROR, repair_history
from fermata.domain.blocks import BlobBlock, TextBlock, ToolCallBlock
from tests.unit.conversations.message_builders import (
    ThreadBuilder,
    make_call,
    make_image,
    make_reasoning,
    summarize_messages,
)


@pytest.fixture
def thread() -> ThreadBuilder:
    return ThreadBuilder()


def test_a_complete_turn_is_not_changed(thread: ThreadBuilder) -> None:
    thread.add_prompt("Hi")
    thread.add_reply("Ok", make_call("a"))
    thread.add_result("a")
    thread.add_reply("Done")
    repaired = repair_history(thread.messages)
    assert all(message is original for message, original in zip(repaired, thread.messages, strict=True))


def test_an_unanswered_call_gets_a_failed_result_before_the_next_prompt(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"), make_call("b"))
    thread.add_result("b")
    thread.add_prompt("Next")
    expected = [
        "user: Go",
        "assistant: call a, call b",
        f"tool a: failed {UNANSWERED_CALL_ERROR}",
        "tool b: ok",
        "user: Next",
    ]
    assert summarize_messages(repair_history(thread.messages)) == expected


def test_calls_and_results_have_the_display_names_of_their_tools(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"), make_call("b"))
    thread.add_result("a")
    repaired = repair_history(thread.messages, lambda name: f"site_{name}")
    calls = [block.tool_name for message in repaired for block in message.content if isinstance(block, ToolCallBlock)]
    results = [message.tool_name for message in repaired if message.role == "tool"]
    assert calls == results == [f"site_{make_call('a').tool_name}"] * 2


def test_results_follow_their_calls_in_the_same_order(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"), make_call("b"), make_call("c"))
    for call_id in ("c", "a", "b"):
        thread.add_result(call_id)
    assert summarize_messages(repair_history(thread.messages))[2:] == ["tool a: ok", "tool b: ok", "tool c: ok"]


def test_a_result_without_a_call_is_left_out(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_result("nobody")
    thread.add_reply("Ok", make_call("a"))
    thread.add_result("b")
    assert summarize_messages(repair_history(thread.messages)) == [
        "user: Go",
        "assistant: Ok, call a",
        f"tool a: failed {UNANSWERED_CALL_ERROR}",
    ]


def test_of_two_results_of_one_call_the_first_counts(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a"))
    thread.add_result("a", ok=False, error="first")
    thread.add_result("a")
    assert summarize_messages(repair_history(thread.messages))[2:] == ["tool a: failed first"]


def test_results_of_two_rounds_with_the_same_call_id_are_not_confused(thread: ThreadBuilder) -> None:
    """Some providers number the calls of each round from 0."""
    thread.add_prompt("Go")
    thread.add_reply(make_call("call_0"))
    thread.add_result("call_0", ok=False, error="one")
    thread.add_reply(make_call("call_0"))
    thread.add_result("call_0", ok=False, error="two")
    assert summarize_messages(repair_history(thread.messages)) == [
        "user: Go",
        "assistant: call call_0",
        "tool call_0: failed one",
        "assistant: call call_0_2",
        "tool call_0_2: failed two",
    ]


def test_two_calls_of_one_reply_with_the_same_id_get_different_ids(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("x"), make_call("x"))
    thread.add_result("x")
    healed = summarize_messages(repair_history(thread.messages))
    assert healed[1:] == ["assistant: call x, call x_2", "tool x: ok", f"tool x_2: failed {UNANSWERED_CALL_ERROR}"]


@pytest.mark.parametrize(
    ("name", "sent"), [("2_read", "_2_read"), ("-x", "_-x"), ("", "tool"), ("9" * 64, "_" + "9" * 63)]
)
def test_a_made_up_name_of_a_tool_begins_with_a_letter_or_an_underscore(
    name: str, sent: str, thread: ThreadBuilder
) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", name))
    thread.add_result("a", name, ok=False, error="Unknown")
    assert [message.tool_name for message in repair_history(thread.messages) if message.role == "tool"] == [sent]


@pytest.mark.parametrize("odd", ["", "a b", "toolu/1", "é", "x" * 500, "functions.insertHtml:0"])
def test_every_id_becomes_one_that_all_providers_accept(thread: ThreadBuilder, odd: str) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call(odd))
    thread.add_result(odd)
    reply, result = repair_history(thread.messages)[1:]
    (block,) = reply.content
    assert isinstance(block, ToolCallBlock)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block.tool_call_id)
    assert result.tool_call_id == block.tool_call_id


def test_the_same_history_gets_the_same_ids(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply(make_call("a b"), make_call("a b"), make_call("x" * 90))
    first = summarize_messages(repair_history(thread.messages))
    thread.add_reply("Ok")
    assert summarize_messages(repair_history(thread.messages))[: len(first)] == first


def test_empty_blocks_and_messages_of_nothing_else_are_left_out(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go", " ")
    thread.add_reply("", make_call("a"))
    thread.add_result("a")
    thread.add_reply("\n")
    assert summarize_messages(repair_history(thread.messages)) == ["user: Go", "assistant: call a", "tool a: ok"]


def test_blocks_of_the_wrong_role_are_left_out(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go", make_call("a"), make_reasoning())
    thread.add_reply("Ok", make_image())
    assert summarize_messages(repair_history(thread.messages)) == ["user: Go", "assistant: Ok"]


def test_the_first_message_of_a_position_counts(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply("Ok")
    again = thread.messages[1].model_copy(update={"content": (TextBlock(text="Again"),)})
    assert summarize_messages(repair_history([*thread.messages, again])) == ["user: Go", "assistant: Ok"]


def test_messages_are_sorted_by_position(thread: ThreadBuilder) -> None:
    thread.add_prompt("Go")
    thread.add_reply("Ok")
    assert summarize_messages(repair_history(reversed(thread.messages))) == ["user: Go", "assistant: Ok"]


def test_large_blocks_are_paired_without_being_fetched(thread: ThreadBuilder) -> None:
    thread.add_prompt(BlobBlock(blob="k1", replaced_kind="text", size=50_000))
    thread.add_reply(
        BlobBlock(blob="k2", replaced_kind="toolCall", size=50_000, tool_call_id="a", tool_name="insertHtml")
    )
    thread.messages.append(
        thread.messages[1].model_copy(
            update={
                "position": 2,
                "role": "tool",
                "tool_call_id": "a",
                "content": (BlobBlock(blob="k3", replaced_kind="toolResult", size=50_000, ok=True),),
            }
        )
    )
    assert summarize_messages(repair_history(thread.messages)) == ["user: blob", "assistant: blob", "tool a: blob"]
