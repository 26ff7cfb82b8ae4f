"""Log (design §4): the log is the stream and the lock. Its numbers are read, never guessed."""

from itertools import pairwise

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fermata.turns import log as logs
from fermata.turns.log import Ended, Log, Moved, Superseded, telling
from fermata.words.events import Cancelled, Reasoning, RoundStarted, Text
from fermata.words.model import ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.unit.turns.stage import OK, Stage, call, calls

PUT, TRANSACT = "dynamodb.PutItem", "dynamodb.TransactWriteItems"


def writer(stage: Stage, owner: str = "") -> Log:
    """Somebody who has read the log to its end."""
    tail = logs.last(stage.desk, stage.turn.pk)
    assert tail is not None
    log = Log.behind(stage.desk, stage.turn.place, tail)
    log.owner = owner
    return log


def say(log: Log, text: str = "x") -> logs.Entry:
    return log.append(telling(Text(text=text)))


def test_an_item_is_named_after_its_first_event_and_the_next_number_is_first_plus_count(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a"), call("list_documents"), text="I look."), "Done.")
    stage.run()
    stage.answer(OK)
    stage.run()
    entries = stage.entries()
    assert entries[0].first == 1
    assert all(second.first == first.first + first.count for first, second in pairwise(entries))
    assert all(entry.count == len(entry.events) > 0 for entry in entries)
    assert any(entry.count > 1 for entry in entries)


def test_an_append_lands_behind_what_others_appended_since_it_was_read(stage: Stage) -> None:
    stage.start()
    slow, fast = writer(stage), writer(stage)
    say(fast, "one")
    fast.append(telling(Text(text="two"), Text(text="three")))
    assert say(slow, "four").first == 5
    assert stage.text() == "onetwothreefour"


def test_an_append_is_built_again_where_the_turn_then_stands(stage: Stage) -> None:
    stage.start()
    slow, fast = writer(stage), writer(stage)
    say(fast, "12345")
    made = slow.append(lambda now: [Text(text=f"after {now.chars}")])
    assert made.events == (Text(text="after 5"),)


def test_an_append_that_makes_no_sense_any_more_is_not_written(stage: Stage) -> None:
    stage.start()
    slow, fast = writer(stage), writer(stage)
    say(fast)
    with pytest.raises(Moved):
        slow.append(telling(Text(text="y")), expect=lambda now: now.chars == 0)
    assert stage.text() == "x"


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
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.seam.lose(call_name, contains=event)
    assert stage.run() == "waiting"
    stage.answer(OK)
    assert stage.run() == "finished"
    assert stage.seam.is_spent
    asked = ["bridgeReady", "roundStarted", "text", "toolCall", "context", "toolRequest", "toolResult"]
    assert stage.types() == [*asked, "roundStarted", "text", "context", "usage", "done"]
    assert len(stage.ledger()) == 2


def test_an_append_that_never_arrived_is_not_taken_for_one_that_did(stage: Stage) -> None:
    stage.start()
    log = writer(stage)
    stage.seam.never_arrives(PUT)
    with pytest.raises(ConnectionClosedError):
        say(log)
    assert stage.text() == ""
    say(log)
    assert stage.text() == "x"


def test_an_error_that_leaves_it_open_whether_the_append_happened_is_looked_into(stage: Stage) -> None:
    stage.start()
    log = writer(stage)
    stage.seam.refuse(PUT, "InternalServerError")
    with pytest.raises(ClientError):
        say(log)
    other = writer(stage)
    stage.seam.refuse(PUT, "InternalServerError")
    stage.seam.meanwhile(PUT, lambda: say(writer(stage), "somebody else"))
    with pytest.raises(ClientError):
        say(other, "lost")
    assert stage.text() == ""


def test_an_append_that_lost_its_answer_to_somebody_elses_item_goes_on_behind_it(stage: Stage) -> None:
    stage.start()
    mine, other = writer(stage), writer(stage)
    stage.seam.never_arrives(PUT, contains="mine")
    stage.seam.meanwhile(PUT, lambda: say(other, "theirs"), contains="mine")
    assert say(mine, "mine").first == 3
    assert stage.text() == "theirsmine"


def test_a_conflict_with_another_transaction_is_no_lost_race(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.aws.dynamo.time.sleep", lambda _seconds: None)
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a"), text="I delete."), "Done.")
    stage.seam.refuse(PUT, "TransactionConflictException", contains="I delete", times=2)
    stage.seam.refuse(TRANSACT, "TransactionConflictException", contains="toolRequest", times=2)
    assert stage.run() == "waiting"
    stage.answer(OK)
    assert stage.run() == "finished"
    assert stage.seam.is_spent


def test_nobody_appends_after_a_terminal_event(stage: Stage) -> None:
    stage.start()
    early = writer(stage)
    stage.cancel()
    with pytest.raises(Ended):
        say(early)
    with pytest.raises(Ended):
        say(early)
    with pytest.raises(Ended):
        say(writer(stage))
    assert stage.types()[-1] == "cancelled"


def test_a_writer_learns_from_the_log_that_a_newer_one_owns_its_round(stage: Stage) -> None:
    stage.start()
    older, newer = writer(stage, "one"), writer(stage)
    newer.append(telling(RoundStarted(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        say(older)
    assert stage.text() == ""


def test_a_writer_that_only_watches_learns_the_same(stage: Stage) -> None:
    stage.start()
    older, newer = writer(stage, "one"), writer(stage)
    newer.append(telling(RoundStarted(round=1, epoch="2", owner="two")))
    with pytest.raises(Superseded):
        older.peek()
    watcher = writer(stage)
    stage.cancel()
    with pytest.raises(Ended):
        watcher.peek()


def test_whoever_owns_no_round_is_not_superseded(stage: Stage) -> None:
    stage.start()
    answerer, newer = writer(stage), writer(stage)
    newer.append(telling(RoundStarted(round=1, epoch="2", owner="two")))
    assert say(answerer).first == 3


def test_a_turn_that_moves_on_forever_is_not_followed_forever(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.start()
    log = writer(stage)
    ahead = writer(stage)
    for _ in range(logs.APPEND_TRIES + 1):
        say(ahead)
    with pytest.raises(RuntimeError, match="moved on"):
        say(log)


def test_the_first_delta_and_every_event_but_text_are_told_at_once(stage: Stage) -> None:
    stage.start()
    seen: list[list[str]] = []
    stage.says(
        [
            TextDelta(text="a"),
            lambda: seen.append(stage.types()),
            TextDelta(text="b"),
            lambda: seen.append(stage.types()),
            *calls(call("deleteNode", nodeId="a"))[-1:],
        ]
    )
    stage.run()
    assert seen[0][-1] == "text"
    assert seen[0] == seen[1], "the second delta waits for more"
    assert stage.types()[2:] == ["text", "text", "toolCall", "context", "toolRequest"]


def test_text_waits_for_900_bytes_at_most(stage: Stage) -> None:
    stage.start()
    piece = TextDelta(text="ä" * 100)  # 200 bytes
    stage.says([TextDelta(text="!"), *[piece] * 9, Reply(blocks=(), stop=Stop.END, tokens=Tokens())])
    stage.run()
    sizes = [len(event.text.encode()) for event in stage.events() if isinstance(event, Text)]
    assert sizes == [1, 1000, 800]


def test_text_waits_for_a_quarter_of_a_second_at_most(stage: Stage) -> None:
    stage.start()
    stage.says(
        [
            TextDelta(text="1"),
            TextDelta(text="2"),
            lambda: stage.pass_time(0.3),
            TextDelta(text="3"),
            TextDelta(text="4"),
            Reply(blocks=(), stop=Stop.END, tokens=Tokens()),
        ]
    )
    stage.run()
    assert [event.text for event in stage.events() if isinstance(event, Text)] == ["1", "23", "4"]


def test_a_delta_larger_than_an_item_may_be_lies_in_the_bucket(stage: Stage) -> None:
    stage.start()
    stage.says("ß" * 500_000)
    stage.run()
    assert stage.text() == "ß" * 500_000


@pytest.mark.parametrize("text", ["🦀 那个 你好", "\U0001f469\u200d\U0001f373", "a\x00b\u2028c", "half \ud83e"])
def test_any_text_comes_out_of_the_log_as_it_went_in(stage: Stage, text: str) -> None:
    stage.start()
    log = writer(stage)
    say(log, text)
    log.append(telling(Reasoning(text=text)))
    told = [event.text for event in stage.events() if isinstance(event, Text | Reasoning)]
    assert told == [text, text]


def test_reasoning_and_text_keep_their_order(stage: Stage) -> None:
    stage.start()
    stage.says(
        [
            ReasoningDelta(text="hm"),
            ReasoningDelta(text="m"),
            TextDelta(text="A"),
            TextDelta(text="B"),
            ReasoningDelta(text="?"),
            Reply(blocks=(), stop=Stop.END, tokens=Tokens()),
        ]
    )
    stage.run()
    told = [(event.type, event.text) for event in stage.events() if isinstance(event, Text | Reasoning)]
    assert told == [("reasoning", "hm"), ("reasoning", "m"), ("text", "AB"), ("reasoning", "?")]


def test_numbers_rise_for_clients_and_have_gaps_where_an_event_is_internal(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.run()
    numbered = [
        (entry.first + place, event.type) for entry in stage.entries() for place, event in enumerate(entry.events)
    ]
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    assert [number for number, kind in numbered if kind == "roundStarted"] == [2]


def test_where_the_turn_stands_is_stored_with_every_entry(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a"), text="I delete."))
    stage.run()
    stage.cancel()
    phases = [entry.standing.phase for entry in stage.entries()]
    assert phases == ["started", "asking", "asking", "calls", "ended"]
    standing = stage.entries()[0].standing
    for entry in stage.entries()[1:-1]:
        folded = standing.after(entry.events)
        assert (folded.phase, folded.round, folded.chars) == (
            entry.standing.phase,
            entry.standing.round,
            entry.standing.chars,
        )
        standing = entry.standing


def test_a_cancelled_turn_stays_cancelled_for_whoever_comes_late(stage: Stage) -> None:
    stage.start()
    late = stage.wake()
    stage.cancel()
    stage.advance(late)
    assert stage.events()[-1] == Cancelled()
    assert stage.workflow.outputs[late.token]["next"] == "finish"
    assert not stage.driver.asks
