"""Pruning: what an agent's rules leave out of a history."""

from typing import Any

import pytest

from fermata.conversations.history.prune_rules import prune_before_turn, prune_messages
from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.run_settings import PruneRules

HISTORY = "u q1 | a r1 t1 c1:search c2:other | t c1:search | t c2:other | a r2 t2 | u q2 | a r3 c3:search"
"""Messages are separated by bars. Blocks begin with r for reasoning and c for a call, whose tool follows the colon."""


def parse_history(text: str) -> list[Message]:
    """Return the messages of a text like HISTORY."""
    return [_parse_message(index, part.split()) for index, part in enumerate(text.split(" | "))]


def _parse_message(position: int, words: list[str]) -> Message:
    role, *names = words
    if role == "t":
        call_id, _, tool = names[0].partition(":")
        result = ToolResultBlock(ok=True, data=call_id)
        return _make_message(position, "tool", (result,), tool_call_id=call_id, tool_name=tool)
    blocks = tuple(map(_parse_block, names))
    return _make_message(position, "user" if role == "u" else "assistant", blocks)


def _make_message(position: int, role: Any, content: tuple[Block, ...], **more: str) -> Message:
    return Message(position=position, role=role, content=content, turn=f"turn{position // 5}", **more)


def _parse_block(name: str) -> Block:
    if name.startswith("r"):
        return ReasoningBlock(provider="p", model="m", payload={"name": name})
    if name.startswith("c"):
        call_id, _, tool = name.partition(":")
        return ToolCallBlock(tool_call_id=call_id, tool_name=tool)
    return TextBlock(text=name)


def format_history(messages: list[Message]) -> str:
    """Return messages as `parse_history` reads them."""
    return " | ".join(" ".join([message.role[0], *map(_format_block, _list_named(message))]) for message in messages)


def _list_named(message: Message) -> list[Any]:
    named = [f"{message.tool_call_id}:{message.tool_name}"]
    return [*message.content] if message.role != "tool" or not message.content else named


def _format_block(block: Any) -> str:
    match block:
        case str():
            return block
        case ReasoningBlock():
            return str(block.payload["name"])
        case ToolCallBlock():
            return f"{block.tool_call_id}:{block.tool_name}"
        case _:
            return str(block.text)


WITHOUT_CALLS = "u q1 | a r1 t1 | a r2 t2 | u q2"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            {"reasoning": "all"},
            "u q1 | a t1 c1:search c2:other | t c1:search | t c2:other | a t2 | u q2 | a c3:search",
            id="prune-01",
        ),
        pytest.param(
            {"reasoning": "before-last-message"},
            "u q1 | a t1 c1:search c2:other | t c1:search | t c2:other | a t2 | u q2 | a r3 c3:search",
            id="the last message keeps its reasoning",
        ),
        pytest.param({"reasoning": "none"}, HISTORY, id="prune-03"),
        pytest.param({"toolCalls": "all"}, WITHOUT_CALLS, id="reasoning goes with the call that it led to"),
        pytest.param(
            {"toolCalls": "all", "emptyMessages": "keep"},
            "u q1 | a r1 t1 | t | t | a r2 t2 | u q2 | a",
            id="prune-05",
        ),
        pytest.param({}, HISTORY, id="prune-06"),
        pytest.param({"toolCalls": "before-last-message"}, f"{WITHOUT_CALLS} | a r3 c3:search", id="prune-07"),
        pytest.param({"toolCalls": "before-last-4-messages"}, HISTORY, id="prune-08: pairs are never split"),
        pytest.param(
            {"toolCalls": "before-last-3-messages"}, f"{WITHOUT_CALLS} | a r3 c3:search", id="results are one message"
        ),
        pytest.param(
            {"toolCalls": [{"type": "all", "tools": ["search"]}]},
            "u q1 | a r1 t1 c2:other | t c2:other | a r2 t2 | u q2",
            id="a rule with tools leaves other tools alone",
        ),
        pytest.param(
            {"toolCalls": [{"type": "all", "tools": ["search"]}, {"type": "before-last-message"}]},
            WITHOUT_CALLS,
            id="rules are applied one after the other, and one without tools is about all",
        ),
        pytest.param({"toolCalls": [{"type": "all", "tools": []}]}, HISTORY, id="a rule of no tools does nothing"),
        pytest.param({"toolCalls": "none"}, HISTORY, id="prune-11"),
    ],
)
def test_rules_leave_out_reasoning_and_calls_with_their_results(rules: dict[str, Any], expected: str) -> None:
    pruned = prune_messages(parse_history(HISTORY), PruneRules.from_wire(rules))
    assert format_history(pruned) == expected


def test_what_was_approved_in_the_kept_tail_keeps_its_call() -> None:
    """prune-12: a decision belongs to its call, and the result that it led to is in the tail."""
    history = parse_history("u q1 | a r1 c1:pay | u q2 | a t2 | t c1:pay")
    assert prune_messages(history, PruneRules(tool_calls="before-last-message")) == history


def test_the_turn_that_runs_is_sent_whole() -> None:
    """prune-13: rules are applied to what the turn begins with; its own calls would be lost on the model otherwise."""
    history = parse_history("u q0 | a r0 c0:search | t c0:search | a t0 | u q | u q1 | a r1 c1:search | t c1:search")
    pruned = prune_before_turn(PruneRules(tool_calls="all", reasoning="all"), "turn1", history)
    assert format_history(pruned) == "u q0 | a t0 | u q | u q1 | a r1 c1:search | t c1:search"


def test_unchanged_messages_stay_the_same_objects() -> None:
    history = parse_history(HISTORY)
    pruned = prune_messages(history, PruneRules(tool_calls="before-last-message"))
    assert [message for message in pruned if message not in history] == [pruned[1]]
    assert all(any(message is old for old in history) for message in pruned if message is not pruned[1])


def test_twice_the_history_is_pruned_in_about_twice_the_steps() -> None:
    history = parse_history(" | ".join([HISTORY] * 200))
    pruned = prune_messages(history, PruneRules(tool_calls="before-last-2-messages", reasoning="all"))
    assert len(pruned) < len(history)
