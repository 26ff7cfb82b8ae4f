"""Readers (design §4): one place to begin, one key to wait for, one poller for all of a process."""

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.resources import Resources
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.events import Event, TextEvent
from fermata.turns.read.follow_log import MAX_POLL_FAILURES, LogPoller, read_entries_after
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, TurnLog, build_entry_key, fixed_events, read_last_entry
from tests.unit.turns.stage import MAX_THREAD_WAIT_SECONDS, OK, Stage, reply_with_calls, tool_call_block


@pytest.fixture
def told(stage: Stage) -> Stage:
    """A turn that is over, with calls, text and a tool error."""
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("deleteNode", nodeId="a"), tool_call_block("no_such_tool"), text="I delete."),
        reply_with_calls(tool_call_block("deleteNode", nodeId="b")),
        "Done.",
    )
    for _ in range(2):
        stage.run_workflow()
        stage.answer_request(OK)
    stage.run_workflow()
    return stage


@pytest.fixture
def tails(stage: Stage) -> Iterator[LogPoller]:
    """The poller of a process in real time: it waits on a clock that goes on by itself."""
    settings = stage.resources.settings.model_copy(update={"poll_ms": 4, "idle_poll_ms": 16})
    resources = Resources(settings, Clock())
    resources.__dict__.update(tables=stage.resources.tables, blobs=stage.resources.blobs)
    poller = LogPoller(resources)
    yield poller
    for follower in list(poller._followers):
        poller.unfollow(follower)
    wait_until(lambda: poller._thread is None)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + MAX_THREAD_WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.001)


def numbered(entries: list[LogEntry], after: int = 0) -> list[tuple[int, Event]]:
    """What a reader that has seen `after` shows of these entries."""
    events = [(entry.first_number + place, event) for entry in entries for place, event in enumerate(entry.events)]
    return [(number, event) for number, event in events if number > after]


def append(stage: Stage, text: str, turn: Turn | None = None) -> LogEntry:
    turn = turn or stage.turn
    tail = read_last_entry(stage.resources, turn.pk)
    assert tail is not None
    return TurnLog.from_last_entry(stage.resources, turn.partition, tail).append(fixed_events(TextEvent(text=text)))


def follow(tails: LogPoller, turn: Turn, number: int = 2) -> "queue.Queue[LogEntry | None]":
    seen: queue.Queue[LogEntry | None] = queue.Queue()
    tails.follow(turn, number, seen.put)
    return seen


def test_a_reader_may_begin_behind_any_event_and_misses_and_repeats_none(told: Stage) -> None:
    whole = numbered(told.entries())
    for after in range(len(whole) + 1):
        known = read_entries_after(told.resources, told.turn, after)
        assert numbered(known, after) == whole[after:], f"after {after}"


def test_a_reader_begins_with_one_query_and_not_at_the_first_event(
    told: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = told.entries()[-1]
    known = read_entries_after(told.resources, told.turn, last.next_number - 1)
    assert known == [last]


def test_to_begin_behind_the_end_is_an_error_that_names_the_end(told: Stage) -> None:
    end = told.entries()[-1].next_number - 1
    with pytest.raises(InvalidRequest, match=f"the last one is number {end}"):
        read_entries_after(told.resources, told.turn, end + 1)


def test_a_turn_without_a_log_cannot_be_read(stage: Stage) -> None:
    turn = stage.start_turn().model_copy(update={"id": "another"})
    with pytest.raises(NotFound):
        read_entries_after(stage.resources, turn, 0)


def test_a_follower_gets_every_entry_once_and_in_order(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()
    seen = follow(tails, stage.turn)
    made = [append(stage, str(number)) for number in range(20)]
    assert [seen.get(timeout=MAX_THREAD_WAIT_SECONDS) for _ in made] == made
    assert seen.empty()


def test_many_followers_of_many_turns_share_one_read(
    stage: Stage, tails: LogPoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    batch_get = stage.resources.tables.batch_get_items

    def counted(table: str, keys: Any) -> Any:
        sizes.append(len(keys))
        return batch_get(table, keys)

    all_turns = []
    for _ in range(3):
        stage.new_conversation()
        all_turns.append(stage.start_turn())
    monkeypatch.setattr(tails.resources.tables, "batch_get_items", counted)
    seen = [follow(tails, turn) for turn in all_turns for _ in range(5)]
    for turn in all_turns:
        append(stage, "x", turn)
    for one in seen:
        assert one.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert max(sizes) <= len(all_turns), "two who wait for the same entry read it once"


def test_more_than_a_hundred_followers_are_served_in_several_reads(stage: Stage, tails: LogPoller) -> None:
    turn = stage.start_turn()
    turns = [turn.model_copy(update={"id": f"turn-{number}"}) for number in range(130)]
    seen = [follow(tails, one) for one in (*turns, turn)]
    append(stage, "x")
    assert seen[-1].get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert len(tails._followers) == 131


def test_a_follower_that_left_hears_nothing_more(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()
    gone: queue.Queue[LogEntry | None] = queue.Queue()
    follower = tails.follow(stage.turn, 2, gone.put)
    tails.unfollow(follower)
    stays = follow(tails, stage.turn)
    append(stage, "x")
    assert stays.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert gone.empty()


def test_the_poller_ends_with_its_last_reader_and_begins_again_with_the_next(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()
    seen: queue.Queue[LogEntry | None] = queue.Queue()
    follower = tails.follow(stage.turn, 2, seen.put)
    tails.unfollow(follower)
    wait_until(lambda: tails._thread is None)
    again = follow(tails, stage.turn)
    append(stage, "x")
    assert again.get(timeout=MAX_THREAD_WAIT_SECONDS)


def test_a_reader_that_cannot_be_told_takes_nobody_with_it(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()

    def closed(_entry: LogEntry | None) -> None:
        raise RuntimeError("Event loop is closed")

    tails.follow(stage.turn, 2, closed)
    seen = follow(tails, stage.turn)
    append(stage, "one")
    assert seen.get(timeout=MAX_THREAD_WAIT_SECONDS)
    append(stage, "two")
    assert seen.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert len(tails._followers) == 1


def test_an_entry_that_cannot_be_read_ends_its_own_readers_only(stage: Stage, tails: LogPoller) -> None:
    broken = stage.start_turn()
    stage.new_conversation()
    stage.start_turn()
    bad, good = follow(tails, broken), follow(tails, stage.turn)
    made = append(stage, "x" * 50_000, broken)
    blob = stage.resources.tables.get_item(
        stage.resources.settings.bridges_table, broken.pk, build_entry_key(made.first_number)
    )
    assert blob is not None
    append(stage, "fine")
    assert good.get(timeout=MAX_THREAD_WAIT_SECONDS)
    first = bad.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert first is not None
    stage.resources.blobs._client.delete_object(Bucket=stage.resources.settings.bucket, Key=blob["blob"])
    again = follow(tails, broken)
    assert again.get(timeout=MAX_THREAD_WAIT_SECONDS) is None
    append(stage, "still fine")
    assert good.get(timeout=MAX_THREAD_WAIT_SECONDS)


def test_trouble_that_passes_is_not_noticed_by_the_readers(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()
    stage.faults.fail_call(
        "dynamodb.BatchGetItem", "ProvisionedThroughputExceededException", times=MAX_POLL_FAILURES - 1
    )
    seen = follow(tails, stage.turn)
    append(stage, "x")
    assert seen.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert stage.faults.is_spent


def test_trouble_that_stays_is_told_to_the_readers(stage: Stage, tails: LogPoller) -> None:
    stage.start_turn()
    stage.faults.fail_call("dynamodb.BatchGetItem", "ThrottlingException", times=MAX_POLL_FAILURES)
    seen = follow(tails, stage.turn)
    assert seen.get(timeout=MAX_THREAD_WAIT_SECONDS) is None
    assert not tails._followers


def test_a_reader_is_polled_more_seldom_the_longer_it_waits(tails: LogPoller) -> None:
    intervals = [round(tails._compute_interval(waited) * 1000) for waited in (0, 0.03, 0.08, 1, 60)]
    assert intervals == [4, 4, 10, 16, 16]


def test_where_a_turn_stands_is_told_to_whoever_comes_back(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a")), "Done.")
    assert stage.show_turn() | {"pending": []} == {
        "bridgeId": stage.turn.id,
        "conversationId": stage.conversation.id,
        "status": "running",
        "seq": 1,
        "round": 0,
        "pending": [],
    }
    stage.run_workflow()
    paused = stage.show_turn()
    assert (paused["status"], paused["seq"]) == ("paused", stage.entries()[-1].next_number - 1)
    [asked] = paused["pending"]
    assert (asked["toolName"], asked["input"]) == ("deleteNode", {"nodeId": "a"})
    assert asked["deadline"].endswith("Z")
    stage.answer_request(OK)
    assert stage.show_turn()["pending"] == []
    stage.run_workflow()
    assert stage.show_turn()["status"] == "done"
