"""A turn reads no more of its conversation than its model can take."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.conversations.history import compile_history
from fermata.conversations.transcript import PAGE, Transcript
from tests.unit.conversations.messages import ANTHROPIC, Thread, call, picture, store
from tests.unit.conversations.test_cutting import turns

PLACE = ("bakery", "c1")
SMALL = replace(ANTHROPIC, tokens=5_000)


@pytest.fixture
def read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query gave back."""
    counts: list[int] = []
    query = desk.tables.query

    def counted(*args: Any, **how: Any) -> Any:
        found = query(*args, **how)
        counts.append(len(found))
        return found

    monkeypatch.setattr(desk.tables, "query", counted)
    return counts


def test_a_short_conversation_is_one_query(desk: Desk, read: list[int]) -> None:
    thread = turns(5)
    store(desk, *PLACE, thread.messages)
    assert Transcript(desk, *PLACE, SMALL).history() == tuple(thread.messages)
    assert len(read) == 1


def test_a_turn_in_a_thread_of_two_thousand_messages_reads_what_one_in_a_thread_of_two_hundred_does(
    desk: Desk, read: list[int]
) -> None:
    short, long = turns(50), turns(500)
    store(desk, *PLACE, short.messages)
    of_short = Transcript(desk, *PLACE, SMALL).history()
    rows_read, queries = sum(read), len(read)
    store(desk, *PLACE, long.messages)
    read.clear()
    of_long = Transcript(desk, *PLACE, SMALL).history()
    assert (sum(read), len(read)) == (rows_read, queries)
    assert sum(read) <= 2 * PAGE
    assert len(of_long) == pytest.approx(len(of_short), abs=20)
    assert of_long == tuple(compile_history(long.messages, SMALL))


def test_heavy_results_of_earlier_turns_take_no_room(desk: Desk, read: list[int]) -> None:
    thread = turns(30, size=6_000)
    store(desk, *PLACE, thread.messages)
    heavy = replace(SMALL, is_heavy=lambda name: name == "insertHtml")
    assert len(Transcript(desk, *PLACE, heavy).history()) > 60
    assert len(Transcript(desk, *PLACE, SMALL).history()) < 12


def test_the_newest_turn_is_sent_from_its_beginning_however_long_it_is(desk: Desk) -> None:
    thread = turns(3)
    thread.user("A long one")
    for number in range(100):
        thread.model(call(f"x{number}"))
        thread.result(f"x{number}", data="y" * 900)
    store(desk, *PLACE, thread.messages)
    history = Transcript(desk, *PLACE, SMALL).history()
    assert history[0].role == "user"
    assert len(history) == 201


def test_what_is_committed_meanwhile_follows(desk: Desk, read: list[int]) -> None:
    thread = turns(1)
    store(desk, *PLACE, thread.messages)
    transcript = Transcript(desk, *PLACE, SMALL)
    before = transcript.history()
    assert transcript.history() is before
    thread.user("More", picture())
    transcript.add(thread.messages[4:])
    assert transcript.history()[-1].content[0] == thread.messages[-1].content[0]
    assert len(read) == 1


def test_nothing_is_fetched_that_is_not_sent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = Thread()
    for _ in range(3):
        thread.user("Look", picture(60 + thread.turn, 50))
        thread.model(call(f"c{thread.turn}", "read"))
        thread.result(f"c{thread.turn}", "read", data="z" * 50_000, images=(picture(90, 10 + thread.turn),))
        thread.model("Done")
    store(desk, *PLACE, thread.messages)
    fetched: list[str] = []
    get = desk.blobs.get_bytes
    monkeypatch.setattr(desk.blobs, "get_bytes", lambda key: fetched.append(key) or get(key))
    transcript = Transcript(desk, *PLACE, ANTHROPIC)
    assert len(transcript.history()) == 12
    assert len(fetched) == 5  # the three prompts' pictures, and of the newest turn the result and its picture
    thread.model("And done")
    transcript.add(thread.messages[-1:])
    transcript.history()
    assert len(fetched) == 5


def test_a_conversation_without_messages_is_an_empty_history(desk: Desk) -> None:
    assert Transcript(desk, *PLACE, ANTHROPIC).history() == ()
