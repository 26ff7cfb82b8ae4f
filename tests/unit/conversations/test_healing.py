"""Whatever rows are stored, what comes out is a conversation."""

import re

import pytest

from fermata.conversations.healing import UNANSWERED, heal
from fermata.words.blocks import BlobBlock, TextBlock, ToolCallBlock
from tests.unit.conversations.messages import Thread, call, picture, shape, thought


@pytest.fixture
def thread() -> Thread:
    return Thread()


def test_a_whole_turn_is_left_as_it_is(thread: Thread) -> None:
    thread.user("Hi")
    thread.model("Ok", call("a"))
    thread.result("a")
    thread.model("Done")
    healed = heal(thread.messages)
    assert all(mine is theirs for mine, theirs in zip(healed, thread.messages, strict=True))


def test_an_unanswered_call_reads_that_its_outcome_is_unknown_before_the_next_prompt(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("a"), call("b"))
    thread.result("b")
    thread.user("Next")
    expected = ["user: Go", "assistant: call a, call b", f"tool a: failed {UNANSWERED}", "tool b: ok", "user: Next"]
    assert shape(heal(thread.messages)) == expected


def test_tools_are_called_as_the_reader_calls_them_in_calls_and_results_alike(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("a"), call("b"))
    thread.result("a")
    healed = heal(thread.messages, lambda name: f"site_{name}")
    calls = [block.tool_name for message in healed for block in message.content if isinstance(block, ToolCallBlock)]
    results = [message.tool_name for message in healed if message.role == "tool"]
    assert calls == results == [f"site_{call('a').tool_name}"] * 2


def test_results_come_in_the_order_of_their_calls_right_behind_them(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("a"), call("b"), call("c"))
    for call_id in ("c", "a", "b"):
        thread.result(call_id)
    assert shape(heal(thread.messages))[2:] == ["tool a: ok", "tool b: ok", "tool c: ok"]


def test_a_result_that_answers_nothing_is_left_out(thread: Thread) -> None:
    thread.user("Go")
    thread.result("nobody")
    thread.model("Ok", call("a"))
    thread.result("b")
    assert shape(heal(thread.messages)) == ["user: Go", "assistant: Ok, call a", f"tool a: failed {UNANSWERED}"]


def test_of_two_results_of_one_call_the_first_counts(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("a"))
    thread.result("a", ok=False, error="first")
    thread.result("a")
    assert shape(heal(thread.messages))[2:] == ["tool a: failed first"]


def test_a_result_of_another_round_with_the_same_id_is_not_mixed_up(thread: Thread) -> None:
    """Some providers number each round's calls anew."""
    thread.user("Go")
    thread.model(call("call_0"))
    thread.result("call_0", ok=False, error="one")
    thread.model(call("call_0"))
    thread.result("call_0", ok=False, error="two")
    assert shape(heal(thread.messages)) == [
        "user: Go",
        "assistant: call call_0",
        "tool call_0: failed one",
        "assistant: call call_0_2",
        "tool call_0_2: failed two",
    ]


def test_two_calls_of_one_reply_with_the_same_id_are_told_apart(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("x"), call("x"))
    thread.result("x")
    healed = shape(heal(thread.messages))
    assert healed[1:] == ["assistant: call x, call x_2", "tool x: ok", f"tool x_2: failed {UNANSWERED}"]


@pytest.mark.parametrize("odd", ["", "a b", "toolu/1", "é", "x" * 500, "functions.insertHtml:0"])
def test_every_id_becomes_one_that_all_providers_take(thread: Thread, odd: str) -> None:
    thread.user("Go")
    thread.model(call(odd))
    thread.result(odd)
    reply, result = heal(thread.messages)[1:]
    (block,) = reply.content
    assert isinstance(block, ToolCallBlock)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block.tool_call_id)
    assert result.tool_call_id == block.tool_call_id


def test_ids_are_the_same_each_time(thread: Thread) -> None:
    thread.user("Go")
    thread.model(call("a b"), call("a b"), call("x" * 90))
    first = shape(heal(thread.messages))
    thread.model("Ok")
    assert shape(heal(thread.messages))[: len(first)] == first


def test_blocks_that_say_nothing_go_and_so_does_a_message_of_them(thread: Thread) -> None:
    thread.user("Go", " ")
    thread.model("", call("a"))
    thread.result("a")
    thread.model("\n")
    assert shape(heal(thread.messages)) == ["user: Go", "assistant: call a", "tool a: ok"]


def test_blocks_on_the_wrong_side_go(thread: Thread) -> None:
    thread.user("Go", call("a"), thought())
    thread.model("Ok", picture())
    assert shape(heal(thread.messages)) == ["user: Go", "assistant: Ok"]


def test_a_message_that_is_there_twice_counts_once(thread: Thread) -> None:
    thread.user("Go")
    thread.model("Ok")
    again = thread.messages[1].model_copy(update={"content": (TextBlock(text="Again"),)})
    assert shape(heal([*thread.messages, again])) == ["user: Go", "assistant: Ok"]


def test_messages_are_put_in_order(thread: Thread) -> None:
    thread.user("Go")
    thread.model("Ok")
    assert shape(heal(reversed(thread.messages))) == ["user: Go", "assistant: Ok"]


def test_large_blocks_are_paired_without_being_fetched(thread: Thread) -> None:
    thread.user(BlobBlock(blob="k1", of="text", size=50_000))
    thread.model(BlobBlock(blob="k2", of="toolCall", size=50_000, tool_call_id="a", tool_name="insertHtml"))
    thread.messages.append(
        thread.messages[1].model_copy(
            update={
                "position": 2,
                "role": "tool",
                "tool_call_id": "a",
                "content": (BlobBlock(blob="k3", of="toolResult", size=50_000, ok=True),),
            }
        )
    )
    assert shape(heal(thread.messages)) == ["user: blob", "assistant: blob", "tool a: blob"]
