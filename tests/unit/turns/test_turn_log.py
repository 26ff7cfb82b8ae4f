"""Log (design §4): the log is the stream and the lock. Its numbers are read, never guessed."""

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


def writer(stage: Stage, owner: str = "") -> TurnLog:
    """Somebody who has read the log to its end."""
    tail = read_last_entry(stage.resources, stage.turn.pk)
    assert tail is not None
    log = TurnLog.from_last_entry(stage.resources, stage.turn.partition, tail)
    log.owner = owner
    return log


def say(log: TurnLog, text: str = "x") -> LogEntry:
    return log.append(fixed_events(TextEvent(text=text)))


def test_an_item_is_named_after_its_first_event_and_the_next_number_is_first_plus_count(stage: Stage) -> None:
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


def test_an_append_lands_behind_what_others_appended_since_it_was_read(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = writer(stage), writer(stage)
    say(fast, "one")
    fast.append(fixed_events(TextEvent(text="two"), TextEvent(text="three")))
    assert say(slow, "four").first_number == 5
    assert stage.streamed_text() == "onetwothreefour"


def test_an_append_is_built_again_where_the_turn_then_stands(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = writer(stage), writer(stage)
    say(fast, "12345")
    made = slow.append(lambda now: [TextEvent(text=f"after {now.text_chars}")])
    assert made.events == (TextEvent(text="after 5"),)


def test_an_append_that_makes_no_sense_any_more_is_not_written(stage: Stage) -> None:
    stage.start_turn()
    slow, fast = writer(stage), writer(stage)
    say(fast)
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
def test_an_append_whose_answer_was_lost_is_known_by_its_id(stage: Stage, call_name: str, event: str) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.faults.lose_response(call_name, contains=event)
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert stage.faults.is_spent
    asked = ["bridgeReady", "roundStarted", "text", "toolCall", "context", "toolRequest", "toolResult"]
    assert stage.event_types() == [*asked, "roundStarted", "text", "context", "usage", "done"]
    assert len(stage.ledger_rows()) == 2


def test_an_append_that_never_arrived_is_not_taken_for_one_that_did(stage: Stage) -> None:
    stage.start_turn()
    log = writer(stage)
    stage.faults.lose_request(PUT)
    with pytest.raises(ConnectionClosedError):
        say(log)
    assert stage.streamed_text() == ""
    say(log)
    assert stage.streamed_text() == "x"


def test_an_error_that_leaves_it_open_whether_the_append_happened_is_looked_into(stage: Stage) -> None:
    stage.start_turn()
    log = writer(stage)
    stage.faults.fail_call(PUT, "InternalServerError")
    with pytest.raises(ClientError):
        say(log)
    other = writer(stage)
    stage.faults.fail_call(PUT, "InternalServerError")
    stage.faults.interrupt(PUT, lambda: say(writer(stage), "somebody else"))
    with pytest.raises(ClientError):
        say(other, "lost")
    assert stage.streamed_text() == ""


def test_an_append_that_lost_its_answer_to_somebody_elses_item_goes_on_behind_it(stage: Stage) -> None:
    stage.start_turn()
    mine, other = writer(stage), writer(stage)
    stage.faults.lose_request(PUT, contains="mine")
    stage.faults.interrupt(PUT, lambda: say(other, "theirs"), contains="mine")
    assert say(mine, "mine").first_number == 3
    assert stage.streamed_text() == "theirsmine"


def test_a_conflict_with_another_transaction_is_no_lost_race(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.aws.dynamodb.time.sleep", lambda _seconds: None)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.faults.fail_call(PUT, "TransactionConflictException", contains="I delete", times=2)
    stage.faults.fail_call(TRANSACT, "TransactionConflictException", contains="toolRequest", times=2)
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    assert stage.faults.is_spent


def test_nobody_appends_after_a_terminal_event(stage: Stage) -> None:
    stage.start_turn()
    early = writer(stage)
    stage.cancel_turn()
    with pytest.raises(TurnEnded):
        say(early)
    with pytest.raises(TurnEnded):
        say(early)
    with pytest.raises(TurnEnded):
        say(writer(stage))
    assert stage.event_types()[-1] == "cancelled"


def test_a_writer_learns_from_the_log_that_a_newer_one_owns_its_round(stage: Stage) -> None:
    stage.start_turn()
    older, newer = writer(stage, "one"), writer(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        say(older)
    assert stage.streamed_text() == ""


def test_a_writer_that_only_watches_learns_the_same(stage: Stage) -> None:
    stage.start_turn()
    older, newer = writer(stage, "one"), writer(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        older.read_new_entries()
    watcher = writer(stage)
    stage.cancel_turn()
    with pytest.raises(TurnEnded):
        watcher.read_new_entries()


def test_whoever_owns_no_round_is_not_superseded(stage: Stage) -> None:
    stage.start_turn()
    answerer, newer = writer(stage), writer(stage)
    newer.append(fixed_events(RoundStartedEvent(round=1, epoch="2", owner="two")))
    assert say(answerer).first_number == 3


def test_a_turn_that_moves_on_forever_is_not_followed_forever(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start_turn()
    log = writer(stage)
    ahead = writer(stage)
    for _ in range(MAX_APPEND_ATTEMPTS + 1):
        say(ahead)
    with pytest.raises(RuntimeError, match="moved on"):
        say(log)


def test_the_first_delta_and_every_event_but_text_are_told_at_once(stage: Stage) -> None:
    stage.start_turn()
    seen: list[list[str]] = []
    stage.script_replies(
        [
            TextDelta(text="a"),
            lambda: seen.append(stage.event_types()),
            TextDelta(text="b"),
            lambda: seen.append(stage.event_types()),
            *reply_with_calls(tool_call_block("deleteNode", nodeId="a"))[-1:],
        ]
    )
    stage.run_workflow()
    assert seen[0][-1] == "text"
    assert seen[0] == seen[1], "the second delta waits for more"
    assert stage.event_types()[2:] == ["text", "text", "toolCall", "context", "toolRequest"]


def test_text_waits_for_900_bytes_at_most(stage: Stage) -> None:
    stage.start_turn()
    piece = TextDelta(text="ä" * 100)  # 200 bytes
    stage.script_replies(
        [TextDelta(text="!"), *[piece] * 9, ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage())]
    )
    stage.run_workflow()
    sizes = [len(event.text.encode()) for event in stage.events() if isinstance(event, TextEvent)]
    assert sizes == [1, 1000, 800]


def test_text_waits_for_a_quarter_of_a_second_at_most(stage: Stage) -> None:
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


def test_a_delta_larger_than_an_item_may_be_lies_in_the_bucket(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("ß" * 500_000)
    stage.run_workflow()
    assert stage.streamed_text() == "ß" * 500_000


@pytest.mark.parametrize("text", ["🦀 那个 你好", "\U0001f469\u200d\U0001f373", "a\x00b\u2028c", "half \ud83e"])
def test_any_text_comes_out_of_the_log_as_it_went_in(stage: Stage, text: str) -> None:
    stage.start_turn()
    log = writer(stage)
    say(log, text)
    log.append(fixed_events(ReasoningEvent(text=text)))
    told = [event.text for event in stage.events() if isinstance(event, TextEvent | ReasoningEvent)]
    assert told == [text, text]


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
    told = [(event.type, event.text) for event in stage.events() if isinstance(event, TextEvent | ReasoningEvent)]
    assert told == [("reasoning", "hm"), ("reasoning", "m"), ("text", "AB"), ("reasoning", "?")]


def test_numbers_rise_for_clients_and_have_gaps_where_an_event_is_internal(stage: Stage) -> None:
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


def test_where_the_turn_stands_is_stored_with_every_entry(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="I delete."))
    stage.run_workflow()
    stage.cancel_turn()
    phases = [entry.state.phase for entry in stage.entries()]
    assert phases == ["started", "asking", "asking", "calls", "ended"]
    standing = stage.entries()[0].state
    for entry in stage.entries()[1:-1]:
        folded = standing.after_events(entry.events)
        assert (folded.phase, folded.round, folded.text_chars) == (
            entry.state.phase,
            entry.state.round,
            entry.state.text_chars,
        )
        standing = entry.state


def test_a_cancelled_turn_stays_cancelled_for_whoever_comes_late(stage: Stage) -> None:
    stage.start_turn()
    late = stage.make_invocation()
    stage.cancel_turn()
    stage.advance_turn(late)
    assert stage.events()[-1] == CancelledEvent()
    assert stage.workflow.outputs[late.token]["next"] == "finish"
    assert not stage.driver.requests
