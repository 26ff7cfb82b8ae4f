"""Check what holds for every turn that has ended, for any faults: nothing is lost or done twice."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from fermata.conversations import message_store, message_views
from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.domain.events import (
    Event,
    RoundRetractedEvent,
    RoundStartedEvent,
    TerminalEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
    UsageEvent,
)
from fermata.domain.usd_rounding import round_usd
from fermata.turns.turn_log import LogEntry
from tests.unit.turns.stage import Stage


def check_invariants(stage: Stage, *, next_prompt: bool = True) -> None:
    entries = stage.entries()
    events = [event for entry in entries for event in entry.events]
    check_log(entries, events)
    check_calls(events)
    check_messages(stage, events)
    check_money(stage, events)
    assert stage.claim() is None, "the claim was not released"
    assert "open" not in stage.turn_row(), "the turn still counts as open"
    if next_prompt:
        check_next_prompt(stage)


def check_log(entries: list[LogEntry], events: list[Event]) -> None:
    assert entries[0].first_number == 1
    assert all(second.first_number == first.next_number for first, second in pairwise(entries)), (
        "a number was skipped or doubled"
    )
    terminal_events = [event for event in events if isinstance(event, TerminalEvent)]
    assert len(terminal_events) == 1, f"terminal events: {terminal_events}"
    assert events[-1] == terminal_events[0], "something follows the terminal event"
    assert isinstance(events[-2], UsageEvent)
    types = [event.type for event in events]
    assert types.count("usage") == types.count("bridgeReady") == 1


def check_calls(events: list[Event]) -> None:
    called = Counter(event.tool_call_id for event in events if isinstance(event, ToolCallEvent))
    resulted = Counter(event.tool_call_id for event in events if isinstance(event, ToolResultEvent))
    assert called == resulted, "a call without a result, or a result without a call"
    assert not called or max(called.values()) == 1, "a call was streamed twice"
    requests = [event for event in events if isinstance(event, ToolRequestEvent)]
    for name in ("request_id", "effect_key"):
        values = [getattr(request, name) for request in requests]
        assert len(values) == len(set(values)), f"a request was made twice: {values}"


def text_by_round(events: list[Event]) -> dict[int, str]:
    """Return each round's text as a client has it in the end."""
    text: dict[int, str] = {}
    current = 0
    for event in events:
        match event:
            case RoundStartedEvent():
                current = event.round
            case RoundRetractedEvent():
                text.pop(event.round, None)
            case TextEvent():
                text[current] = text.get(current, "") + event.text
    return text


def check_results(turn: str, lines: Sequence[message_views.MessageLine], events: list[Event]) -> None:
    """Check that a reload shows the same results of calls as the stream did."""
    streamed = Counter((event.tool_call_id, event.ok) for event in events if isinstance(event, ToolResultEvent))
    stored = [line for line in lines if line["role"] == "tool" and line["id"].startswith(f"{turn}-")]
    assert Counter((line["toolCallId"], line["content"][0]["ok"]) for line in stored) == streamed


def check_messages(stage: Stage, events: list[Event]) -> None:
    messages = stage.load_messages()
    lines = message_views.read_message_page(stage.resources, stage.load_conversation(), "fermata").lines
    positions = [line["position"] for line in lines if not line["id"].endswith("-closed")]
    assert positions == list(range(len(positions))), "positions have a gap or a double"
    assert sorted({line["position"] for line in lines}) == positions, "a closed call has a place of its own"
    if not stage.turn.undone_turn:
        check_results(stage.turn.id, lines, events)
    assert stage.load_conversation().next_position == sum(
        message_store.count_positions(message) for message in messages
    )
    turn_messages = [message for message in messages if message.turn == stage.turn.id]
    stored_text: dict[int, str] = {}
    for message in turn_messages:
        if message.role == "assistant":
            text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
            stored_text[message.round] = stored_text.get(message.round, "") + text
    assert {number: text for number, text in stored_text.items() if text} == text_by_round(events), (
        "the streamed text is not the stored text"
    )
    results = Counter((message.round, message.tool_call_id) for message in turn_messages if message.role == "tool")
    calls = {
        (message.round, block.tool_call_id)
        for message in turn_messages
        for block in message.content
        if isinstance(block, ToolCallBlock)
    }
    assert set(results) <= calls
    assert not results or max(results.values()) == 1, "a result was stored twice"


def check_money(stage: Stage, events: list[Event]) -> None:
    ledger = stage.ledger_rows()
    usage = next(event for event in events if isinstance(event, UsageEvent))
    conversation = stage.load_conversation()
    sums = {name: sum(row[name] for row in ledger) for name in ("prompt", "completion", "cacheRead", "cacheCreation")}
    assert (usage.prompt_tokens, usage.completion_tokens) == (sums["prompt"], sums["completion"])
    cost = sum((row["cost"] for row in ledger), Decimal(0))
    assert usage.cost_usd == round_usd(cost)
    ledger_size = stage.resources.tables._client.scan(TableName=stage.resources.settings.usage_table)["Count"]
    if ledger_size == len(ledger):  # the conversation's only turn so far
        assert conversation.prompt_tokens_total == sums["prompt"]
        assert conversation.completion_tokens_total == sums["completion"]
        assert conversation.cost_usd_total == cost


def check_next_prompt(stage: Stage) -> None:
    before = stage.turn
    stage.driver.scripts.clear()
    stage.start_turn("And now?")
    assert stage.turn.id != before.id
    stage.script_replies("Now this.")
    assert stage.run_workflow() == "finished"
    assert stage.event_types()[-1] == "done"
    roles = [message.role for message in stage.driver.requests[-1].messages]
    assert roles[0] == roles[-1] == "user"
