"""Readers (design §4): one place to begin, one key to wait for, one poller for all of a process."""

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.desk import Desk
from fermata.turns import log as logs
from fermata.turns import reading
from fermata.turns.log import Entry, Log, telling
from fermata.turns.reading import Tails, catch_up
from fermata.turns.turn import Turn
from fermata.words.errors import Invalid, NotFound
from fermata.words.events import Event, Text
from tests.unit.turns.stage import OK, PATIENCE, Stage, call, calls


@pytest.fixture
def told(stage: Stage) -> Stage:
    """A turn that is over, with calls, text and a tool error."""
    stage.start()
    stage.says(
        calls(call("deleteNode", nodeId="a"), call("no_such_tool"), text="I delete."),
        calls(call("deleteNode", nodeId="b")),
        "Done.",
    )
    for _ in range(2):
        stage.run()
        stage.answer(OK)
    stage.run()
    return stage


@pytest.fixture
def tails(stage: Stage) -> Iterator[Tails]:
    """The poller of a process in real time: it waits on a clock that goes on by itself."""
    settings = stage.desk.settings.model_copy(update={"poll_ms": 4, "idle_poll_ms": 16})
    desk = Desk(settings, Clock())
    desk.__dict__.update(tables=stage.desk.tables, blobs=stage.desk.blobs)
    poller = Tails(desk)
    yield poller
    for follower in list(poller._followers):
        poller.leave(follower)
    wait_until(lambda: poller._thread is None)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.001)


def numbered(entries: list[Entry], after: int = 0) -> list[tuple[int, Event]]:
    """What a reader that has seen `after` shows of these entries."""
    events = [(entry.first + place, event) for entry in entries for place, event in enumerate(entry.events)]
    return [(number, event) for number, event in events if number > after]


def append(stage: Stage, text: str, turn: Turn | None = None) -> Entry:
    turn = turn or stage.turn
    tail = logs.last(stage.desk, turn.pk)
    assert tail is not None
    return Log.behind(stage.desk, turn.place, tail).append(telling(Text(text=text)))


def follow(tails: Tails, turn: Turn, number: int = 2) -> "queue.Queue[Entry | None]":
    seen: queue.Queue[Entry | None] = queue.Queue()
    tails.follow(turn, number, seen.put)
    return seen


def test_a_reader_may_begin_behind_any_event_and_misses_and_repeats_none(told: Stage) -> None:
    whole = numbered(told.entries())
    for after in range(len(whole) + 1):
        known = catch_up(told.desk, told.turn, after)
        assert numbered(known, after) == whole[after:], f"after {after}"


def test_a_reader_begins_with_one_query_and_not_at_the_first_event(
    told: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = told.entries()[-1]
    known = catch_up(told.desk, told.turn, last.next - 1)
    assert known == [last]


def test_to_begin_behind_the_end_is_an_error_that_names_the_end(told: Stage) -> None:
    end = told.entries()[-1].next - 1
    with pytest.raises(Invalid, match=f"the last one is number {end}"):
        catch_up(told.desk, told.turn, end + 1)


def test_a_turn_without_a_log_cannot_be_read(stage: Stage) -> None:
    turn = stage.start().model_copy(update={"id": "another"})
    with pytest.raises(NotFound):
        catch_up(stage.desk, turn, 0)


def test_a_follower_gets_every_entry_once_and_in_order(stage: Stage, tails: Tails) -> None:
    stage.start()
    seen = follow(tails, stage.turn)
    made = [append(stage, str(number)) for number in range(20)]
    assert [seen.get(timeout=PATIENCE) for _ in made] == made
    assert seen.empty()


def test_many_followers_of_many_turns_share_one_read(
    stage: Stage, tails: Tails, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    batch_get = stage.desk.tables.batch_get

    def counted(table: str, keys: Any) -> Any:
        sizes.append(len(keys))
        return batch_get(table, keys)

    all_turns = []
    for _ in range(3):
        stage.new_conversation()
        all_turns.append(stage.start())
    monkeypatch.setattr(tails.desk.tables, "batch_get", counted)
    seen = [follow(tails, turn) for turn in all_turns for _ in range(5)]
    for turn in all_turns:
        append(stage, "x", turn)
    for one in seen:
        assert one.get(timeout=PATIENCE)
    assert max(sizes) <= len(all_turns), "two who wait for the same entry read it once"


def test_more_than_a_hundred_followers_are_served_in_several_reads(stage: Stage, tails: Tails) -> None:
    turn = stage.start()
    turns = [turn.model_copy(update={"id": f"turn-{number}"}) for number in range(130)]
    seen = [follow(tails, one) for one in (*turns, turn)]
    append(stage, "x")
    assert seen[-1].get(timeout=PATIENCE)
    assert len(tails._followers) == 131


def test_a_follower_that_left_hears_nothing_more(stage: Stage, tails: Tails) -> None:
    stage.start()
    gone: queue.Queue[Entry | None] = queue.Queue()
    follower = tails.follow(stage.turn, 2, gone.put)
    tails.leave(follower)
    stays = follow(tails, stage.turn)
    append(stage, "x")
    assert stays.get(timeout=PATIENCE)
    assert gone.empty()


def test_the_poller_ends_with_its_last_reader_and_begins_again_with_the_next(stage: Stage, tails: Tails) -> None:
    stage.start()
    seen: queue.Queue[Entry | None] = queue.Queue()
    follower = tails.follow(stage.turn, 2, seen.put)
    tails.leave(follower)
    wait_until(lambda: tails._thread is None)
    again = follow(tails, stage.turn)
    append(stage, "x")
    assert again.get(timeout=PATIENCE)


def test_a_reader_that_cannot_be_told_takes_nobody_with_it(stage: Stage, tails: Tails) -> None:
    stage.start()

    def closed(_entry: Entry | None) -> None:
        raise RuntimeError("Event loop is closed")

    tails.follow(stage.turn, 2, closed)
    seen = follow(tails, stage.turn)
    append(stage, "one")
    assert seen.get(timeout=PATIENCE)
    append(stage, "two")
    assert seen.get(timeout=PATIENCE)
    assert len(tails._followers) == 1


def test_an_entry_that_cannot_be_read_ends_its_own_readers_only(stage: Stage, tails: Tails) -> None:
    broken = stage.start()
    stage.new_conversation()
    stage.start()
    bad, good = follow(tails, broken), follow(tails, stage.turn)
    made = append(stage, "x" * 50_000, broken)
    blob = stage.desk.tables.get(stage.desk.settings.bridges_table, broken.pk, logs.key(made.first))
    assert blob is not None
    append(stage, "fine")
    assert good.get(timeout=PATIENCE)
    first = bad.get(timeout=PATIENCE)
    assert first is not None
    stage.desk.blobs._client.delete_object(Bucket=stage.desk.settings.bucket, Key=blob["blob"])
    again = follow(tails, broken)
    assert again.get(timeout=PATIENCE) is None
    append(stage, "still fine")
    assert good.get(timeout=PATIENCE)


def test_trouble_that_passes_is_not_noticed_by_the_readers(stage: Stage, tails: Tails) -> None:
    stage.start()
    stage.seam.refuse(
        "dynamodb.BatchGetItem", "ProvisionedThroughputExceededException", times=reading.MOST_FAILURES - 1
    )
    seen = follow(tails, stage.turn)
    append(stage, "x")
    assert seen.get(timeout=PATIENCE)
    assert stage.seam.is_spent


def test_trouble_that_stays_is_told_to_the_readers(stage: Stage, tails: Tails) -> None:
    stage.start()
    stage.seam.refuse("dynamodb.BatchGetItem", "ThrottlingException", times=reading.MOST_FAILURES)
    seen = follow(tails, stage.turn)
    assert seen.get(timeout=PATIENCE) is None
    assert not tails._followers


def test_a_reader_is_polled_more_seldom_the_longer_it_waits(tails: Tails) -> None:
    intervals = [round(tails._interval(waited) * 1000) for waited in (0, 0.03, 0.08, 1, 60)]
    assert intervals == [4, 4, 10, 16, 16]


def test_where_a_turn_stands_is_told_to_whoever_comes_back(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="a")), "Done.")
    assert stage.look() | {"pending": []} == {
        "bridgeId": stage.turn.id,
        "conversationId": stage.conversation.id,
        "status": "running",
        "seq": 1,
        "round": 0,
        "pending": [],
    }
    stage.run()
    paused = stage.look()
    assert (paused["status"], paused["seq"]) == ("paused", stage.entries()[-1].next - 1)
    [asked] = paused["pending"]
    assert (asked["toolName"], asked["input"]) == ("deleteNode", {"nodeId": "a"})
    assert asked["deadline"].endswith("Z")
    stage.answer(OK)
    assert stage.look()["pending"] == []
    stage.run()
    assert stage.look()["status"] == "done"
