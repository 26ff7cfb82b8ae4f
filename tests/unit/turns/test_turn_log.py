"""The turn log: the event stream and the lock. The number of an append is always read, never guessed."""

from itertools import pairwise

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fermata.domain.events import CancelledEvent, ReasoningEvent, RoundStartedEvent, TextEvent
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TextDelta, TokenUsage
from fermata.turns.turn_log import (
    MAX_APPEND_ATTEMPTS,
    LogEntry,
    StaleState,
    Superseded,
    TurnEnded,
    TurnLog,
    fixed_events,
    read_last_entry,
)
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

PUT, TRANSACT = "dynamodb.PutItem", "dynamodb.TransactWriteItems"


def open_log(stage: Stage, owner: str = "") -> TurnLog:
    """A writer that has read the log to its end."""
    tail = read_last_entry(stage.resources, stage.turn.pk)
    assert tail is not None
    log = TurnLog.from_last_entry(stage.resources, stage.turn.partition, tail)
    log.owner = owner
    return log


def append_text(log: TurnLog, text: str = "x") -> LogEntry:
    return log.append(fixed_events(TextEvent(text=text)))


def test_an_entrys_key_is_the_number_of_its_first_event(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("list_documents"), text="I look."),
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    entries = stage.entries()
    assert entries[0].first_number == 1
    assert all(second.first_number == first.first_number + first.event_count for first, second in pairwise(entries))
    assert all(entry.event_count == len(entry.events) > 0 for entry in entries)
    assert any(entry.event_count > 1 for entry in entries)


def test_an_append_is_placed_behind_entries_of_others(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = open_log(stage), open_log(stage)
    append_text(fast, "one")
    fast.append(fixed_events(TextEvent(text="two"), TextEvent(text="three")))
    assert append_text(slow, "four").first_number == 5
    assert stage.streamed_text() == "onetwothreefour"


def test_an_append_is_rebuilt_on_the_newer_state(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = open_log(stage), open_log(stage)
    append_text(fast, "12345")
    entry = slow.append(lambda now: [TextEvent(text=f"after {now.text_chars}")])
    assert entry.events == (TextEvent(text="after 5"),)


def test_an_unexpected_state_prevents_the_append(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = open_log(stage), open_log(stage)
    append_text(fast)
    with pytest.raises(StaleState):
        slow.append(fixed_events(TextEvent(text="y")), is_expected=lambda now: now.text_chars == 0)
    assert stage.streamed_text() == "x"


@pytest.mark.parametrize(
    ("call_name", "event"),
    [
        (PUT, "roundStarted"),
        (PUT, "I delete."),
        (TRANSACT, "toolRequest"),
        (TRANSACT, "toolResult"),
        (TRANSACT, "done"),
    ],
)
def test_an_append_is_recognized_by_its_id_when_its_response_was_lost(stage: Stage, call_name: str, event: str) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.faults.lose_response(call_name, contains=event)
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert stage.faults.is_spent
    expected_types = ["bridgeReady", "roundStarted", "text", "toolCall", "context", "toolRequest", "toolResult"]
    assert stage.event_types() == [*expected_types, "roundStarted", "text", "context", "usage", "done"]
    assert len(stage.ledger_rows()) == 2


def test_an_append_that_was_never_written_raises(stage: Stage) -> None:
    stage.start_turn()
    log = open_log(stage)
    stage.faults.lose_request(PUT)
    with pytest.raises(ConnectionClosedError):
        append_text(log)
    assert stage.streamed_text() == ""
    append_text(log)
    assert stage.streamed_text() == "x"


def test_after_an_ambiguous_error_the_stored_entry_decides(stage: Stage) -> None:
    stage.start_turn()
    log = open_log(stage)
    stage.faults.fail_call(PUT, "InternalServerError")
    with pytest.raises(ClientError):
        append_text(log)
    other = open_log(stage)
    stage.faults.fail_call(PUT, "InternalServerError")
    stage.faults.interrupt(PUT, lambda: append_text(open_log(stage), "somebody else"))
    with pytest.raises(ClientError):
        append_text(other, "lost")
    assert stage.streamed_text() == ""


def test_an_append_with_a_lost_response_continues_behind_another_writers_entry(stage: Stage) -> None:
    stage.start_turn()
    mine, other = open_log(stage), open_log(stage)
    stage.faults.lose_request(PUT, contains="mine")
    stage.faults.interrupt(PUT, lambda: append_text(other, "theirs"), contains="mine")
    assert append_text(mine, "mine").first_number == 3
    assert stage.streamed_text() == "theirsmine"


def test_a_transaction_conflict_is_no_lost_race(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.resources.tables, "_sleep", lambda _seconds: None)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.faults.fail_call(PUT, "TransactionConflictException", contains="I delete", times=2)
    stage.faults.fail_call(TRANSACT, "TransactionConflictException", contains="toolRequest", times=2)
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert stage.faults.is_spent


def test_nothing_is_appended_after_a_terminal_event(stage: Stage) -> None:
    stage.start_turn()
    early = open_log(stage)
    stage.cancel_turn()
    with pytest.raises(TurnEnded):
        append_text(early)
    with pytest.raises(TurnEnded):
        append_text(early)
    with pytest.raises(TurnEnded):
        append_text(open_log(stage))
    assert stage.event_types()[-1] == "cancelled"


def test_an_append_raises_when_a_newer_owner_has_the_round(stage: Stage) -> None:
    stage.start_turn()
    older, newer = open_log(stage, "one"), open_log(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        append_text(older)
    assert stage.streamed_text() == ""


def test_reading_raises_when_a_newer_owner_has_the_round(stage: Stage) -> None:
    stage.start_turn()
    older, newer = open_log(stage, "one"), open_log(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        older.read_new_entries()
    watcher = open_log(stage)
    stage.cancel_turn()
    with pytest.raises(TurnEnded):
        watcher.read_new_entries()


def test_a_writer_that_was_superseded_once_never_writes_again(stage: Stage) -> None:
    stage.start_turn()
    older, newer = open_log(stage, "one"), open_log(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        older.read_new_entries()
    for again in (lambda: append_text(older), older.read_new_entries):
        with pytest.raises(Superseded):
            again()
    assert stage.streamed_text() == ""


def test_a_writer_without_a_round_is_not_superseded(stage: Stage) -> None:
    stage.start_turn()
    answerer, newer = open_log(stage), open_log(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    assert append_text(answerer).first_number == 3


def test_an_append_gives_up_after_too_many_lost_races(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start_turn()
    log = open_log(stage)
    ahead = open_log(stage)
    for _ in range(MAX_APPEND_ATTEMPTS + 1):
        append_text(ahead)
    with pytest.raises(RuntimeError, match="moved on"):
        append_text(log)


def test_the_first_text_and_all_other_events_are_written_at_once(stage: Stage) -> None:
    stage.start_turn()
    types_seen: list[list[str]] = []
    stage.script_replies(
        [
            TextDelta(text="a"),
            lambda: types_seen.append(stage.event_types()),
            TextDelta(text="b"),
            lambda: types_seen.append(stage.event_types()),
            *reply_with_calls(tool_call_block("deleteNode", nodeId="a"))[-1:],
        ]
    )
    stage.run_workflow()
    assert types_seen[0][-1] == "text"
    assert types_seen[0] == types_seen[1], "the second delta waits for more"
    assert stage.event_types()[2:] == ["text", "text", "toolCall", "context", "toolRequest"]


def test_text_is_written_after_900_bytes(stage: Stage) -> None:
    stage.start_turn()
    piece = TextDelta(text="ä" * 100)  # 200 bytes
    stage.script_replies(
        [TextDelta(text="!"), *[piece] * 9, ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage())]
    )
    stage.run_workflow()
    sizes = [len(event.text.encode()) for event in stage.events() if isinstance(event, TextEvent)]
    assert sizes == [1, 1000, 800]


def test_text_is_written_after_a_quarter_of_a_second(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            TextDelta(text="1"),
            TextDelta(text="2"),
            lambda: stage.pass_time(0.3),
            TextDelta(text="3"),
            TextDelta(text="4"),
            ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage()),
        ]
    )
    stage.run_workflow()
    assert [event.text for event in stage.events() if isinstance(event, TextEvent)] == ["1", "23", "4"]


def test_a_text_larger_than_an_item_is_stored_in_the_bucket(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("ß" * 500_000)
    stage.run_workflow()
    assert stage.streamed_text() == "ß" * 500_000


@pytest.mark.parametrize("text", ["🦀 那个 你好", "\U0001f469\u200d\U0001f373", "a\x00b\u2028c", "half \ud83e"])
def test_any_text_is_read_from_the_log_unchanged(stage: Stage, text: str) -> None:
    stage.start_turn()
    log = open_log(stage)
    append_text(log, text)
    log.append(fixed_events(ReasoningEvent(text=text)))
    texts = [event.text for event in stage.events() if isinstance(event, TextEvent | ReasoningEvent)]
    assert texts == [text, text]


def test_reasoning_and_text_keep_their_order(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            ReasoningDelta(text="hm"),
            ReasoningDelta(text="m"),
            TextDelta(text="A"),
            TextDelta(text="B"),
            ReasoningDelta(text="?"),
            ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage()),
        ]
    )
    stage.run_workflow()
    texts = [(event.type, event.text) for event in stage.events() if isinstance(event, TextEvent | ReasoningEvent)]
    assert texts == [("reasoning", "hm"), ("reasoning", "m"), ("text", "AB"), ("reasoning", "?")]


def test_event_numbers_rise_with_gaps_for_internal_events(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    numbered = [
        (entry.first_number + place, event.type)
        for entry in stage.entries()
        for place, event in enumerate(entry.events)
    ]
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    assert [number for number, kind in numbered if kind == "roundStarted"] == [2]


def test_every_entry_stores_the_state_after_it(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."))
    stage.run_workflow()
    stage.cancel_turn()
    phases = [entry.state.phase for entry in stage.entries()]
    assert phases == ["started", "asking", "asking", "calls", "ended"]
    state = stage.entries()[0].state
    for entry in stage.entries()[1:-1]:
        folded = state.after_events(entry.events)
        assert (folded.phase, folded.round, folded.text_chars) == (
            entry.state.phase,
            entry.state.round,
            entry.state.text_chars,
        )
        state = entry.state


def test_a_late_invocation_leaves_a_cancelled_turn_cancelled(stage: Stage) -> None:
    stage.start_turn()
    late = stage.make_invocation()
    stage.cancel_turn()
    stage.advance_turn(late)
    assert stage.events()[-1] == CancelledEvent()
    assert stage.workflow.outputs[late.token]["next"] == "finish"
    assert not stage.driver.requests
