"""Log readers: where they start, and the one poller for all readers of a process."""

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.dynamodb_items_and_writes import serialize_item
from fermata.aws.resources import Resources
from fermata.domain.errors import LogRewound, NotFound
from fermata.domain.events import CancelledEvent, Event, TextEvent
from fermata.privacy.erase_content import erase_partition, erase_turn
from fermata.turns.read import follow_log, poll_schedule
from fermata.turns.read.follow_log import (
    ERASED_LOG_REASON,
    MAX_POLL_FAILURES,
    LogFollower,
    LogPoller,
    read_entries_after,
)
from fermata.turns.read.poll_schedule import PollSchedule
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, TurnLog, build_entry_key, fixed_events, read_last_entry
from fermata.wire.http.error_responses import response_from_error
from tests.unit.turns.stage import MAX_THREAD_WAIT_SECONDS, OK, Stage, reply_with_calls, tool_call_block


@pytest.fixture
def ended_stage(stage: Stage) -> Stage:
    """A turn that has ended, with calls, text and a tool error."""
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
def poller(stage: Stage) -> Iterator[LogPoller]:
    """A poller that runs in real time."""
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


def number_events(entries: list[LogEntry], after: int = 0) -> list[tuple[int, Event]]:
    """Return the events behind number `after`, with their numbers."""
    events = [(entry.first_number + place, event) for entry in entries for place, event in enumerate(entry.events)]
    return [(number, event) for number, event in events if number > after]


def append_text(stage: Stage, text: str, turn: Turn | None = None) -> LogEntry:
    turn = turn or stage.turn
    tail = read_last_entry(stage.resources, turn.pk)
    assert tail is not None
    return TurnLog.from_last_entry(stage.resources, turn.partition, tail).append(fixed_events(TextEvent(text=text)))


def follow_into_queue(poller: LogPoller, turn: Turn, number: int = 2) -> "queue.Queue[LogEntry | None]":
    received: queue.Queue[LogEntry | None] = queue.Queue()
    poller.follow(turn, number, received.put)
    return received


def test_reading_after_any_event_misses_and_repeats_none(ended_stage: Stage) -> None:
    whole = number_events(ended_stage.entries())
    for after in range(len(whole) + 1):
        entries = read_entries_after(ended_stage.resources, ended_stage.turn, after)
        assert number_events(entries, after) == whole[after:], f"after {after}"


def test_reading_begins_near_its_event_number(ended_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    last = ended_stage.entries()[-1]
    entries = read_entries_after(ended_stage.resources, ended_stage.turn, last.next_number - 1)
    assert entries == [last]


def test_reading_behind_the_end_fails_with_the_last_number(ended_stage: Stage) -> None:
    end = ended_stage.entries()[-1].next_number - 1
    with pytest.raises(LogRewound, match=f"the last one is number {end}") as refused:
        read_entries_after(ended_stage.resources, ended_stage.turn, end + 1)
    assert response_from_error(refused.value, "r").body == {
        "error": refused.value.message,
        "code": "logRewound",
        "lastSeq": end,
    }


def test_a_turn_without_a_log_is_not_found(stage: Stage) -> None:
    turn = stage.start_turn().model_copy(update={"id": "another"})
    with pytest.raises(NotFound):
        read_entries_after(stage.resources, turn, 0)


def test_a_follower_gets_every_entry_once_and_in_order(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()
    received = follow_into_queue(poller, stage.turn)
    appended = [append_text(stage, str(number)) for number in range(20)]
    assert [received.get(timeout=MAX_THREAD_WAIT_SECONDS) for _ in appended] == appended
    assert received.empty()


def test_followers_of_many_turns_share_one_read(
    stage: Stage, poller: LogPoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    batch_get = stage.resources.tables.batch_get_items

    def counted(table: str, keys: Any, *, consistent: bool = True) -> Any:
        sizes.append(len(keys))
        return batch_get(table, keys)

    all_turns = []
    for _ in range(3):
        stage.new_conversation()
        all_turns.append(stage.start_turn())
    monkeypatch.setattr(poller.resources.tables, "batch_get_items", counted)
    received = [follow_into_queue(poller, turn) for turn in all_turns for _ in range(5)]
    for turn in all_turns:
        append_text(stage, "x", turn)
    for received_by_one in received:
        assert received_by_one.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert max(sizes) <= len(all_turns), "two who wait for the same entry read it once"


def build_row(stage: Stage, entry: LogEntry, pk: str = "") -> dict[str, Any]:
    """Return the row of an entry in the form in which it is told of."""
    key = build_entry_key(entry.first_number)
    item = stage.resources.tables.get_item(stage.resources.settings.bridges_table, stage.turn.pk, key)
    assert item is not None
    return serialize_item({**item, "pk": pk or stage.turn.pk})


def test_a_reader_that_hears_of_an_append_gets_it_without_waiting_for_its_interval(stage: Stage) -> None:
    settings = stage.resources.settings.model_copy(update={"poll_ms": 3_600_000, "idle_poll_ms": 3_600_000})
    resources = Resources(settings, Clock())
    resources.__dict__.update(tables=stage.resources.tables, blobs=stage.resources.blobs)
    poller = LogPoller(resources)
    stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    follower = poller.follow(stage.turn, 2, received.put)
    for number in range(20):
        appended = append_text(stage, str(number))
        poller.hear_append(build_row(stage, appended, "another log"))
        poller.hear_append(build_row(stage, appended))
        poller.hear_append(build_row(stage, appended))
        assert received.get(timeout=MAX_THREAD_WAIT_SECONDS) == appended
    assert received.empty()
    poller.unfollow(follower)


def test_an_entry_that_was_told_of_is_delivered_without_a_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    readers = [LogFollower(turn.pk, 2, received.put, PollSchedule(stage.resources.settings, 0)) for _ in range(2)]
    poller._followers.update(readers)
    appended = append_text(stage, "x" * 50_000)
    poller.hear_append(build_row(stage, appended))
    monkeypatch.setattr(stage.resources.tables, "batch_get_items", lambda *_, **__: pytest.fail("it was read"))
    poller._poll(readers)
    assert [received.get_nowait(), received.get_nowait()] == [appended, appended]


def test_a_reader_that_hears_of_appends_is_polled_for_what_it_was_not_told_and_else_seldom(stage: Stage) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    follower = LogFollower(turn.pk, 2, received.put, PollSchedule(stage.resources.settings, 0))
    poller._followers.add(follower)
    poller.set_hearing(True)

    def poll_and_wait() -> float:
        poller._poll([follower])
        return follower.schedule.next_poll_at - stage.resources.clock.monotonic()

    seldom = stage.resources.settings.idle_poll_ms / 1000
    assert poll_and_wait() == pytest.approx(seldom), "nothing was told"
    appended = [append_text(stage, text) for text in ("one", "two", "three", "four")]
    for entry in (appended[2], appended[1]):
        poller.hear_append(build_row(stage, entry))
    assert follower.schedule.next_poll_at == 0
    assert poll_and_wait() <= 0, "the first one is read, and what follows it was told"
    assert poll_and_wait() <= 0
    assert poll_and_wait() == pytest.approx(seldom), "nobody has told of the fourth"
    assert [received.get_nowait() for _ in range(3)] == appended[:3]
    assert received.empty()
    poll_and_wait()
    assert received.get_nowait() == appended[3]
    assert not follower.heard_rows
    poller.set_hearing(False)
    assert follower.schedule.next_poll_at == 0, "an append may have been missed"
    assert poll_and_wait() < seldom


def test_a_row_behind_one_that_nobody_told_of_is_kept_and_not_looked_for_without_pause(stage: Stage) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    follower = LogFollower(turn.pk, 2, received.put, PollSchedule(stage.resources.settings, 0))
    poller._followers.add(follower)
    poller.set_hearing(True)
    first, second = (append_text(stage, text) for text in ("one", "two"))
    row = build_row(stage, first)
    tables, key = stage.resources.settings.bridges_table, build_entry_key(first.first_number)
    stage.resources.tables.batch_delete(tables, [(turn.pk, key)])
    poller.hear_append(build_row(stage, second))
    poller._poll([follower])
    assert follower.schedule.next_poll_at > stage.resources.clock.monotonic()
    poller.hear_append(row)
    for _ in range(2):
        assert follower.schedule.next_poll_at <= stage.resources.clock.monotonic()
        poller._poll([follower])
    assert [received.get_nowait(), received.get_nowait()] == [first, second]


def test_a_reader_is_not_taken_to_have_heard_what_another_one_was_told_of(stage: Stage) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    told, late = (LogFollower(turn.pk, 2, received.put, PollSchedule(stage.resources.settings, 0)) for _ in range(2))
    poller._followers.add(told)
    poller.set_hearing(True)
    first, second = (append_text(stage, text) for text in ("one", "two"))
    for entry in (first, second):
        poller.hear_append(build_row(stage, entry))
    poller._followers.add(late)
    poller._poll([told, late])
    seldom = stage.resources.settings.idle_poll_ms / 1000
    assert late.schedule.next_poll_at < stage.resources.clock.monotonic() + seldom / 2, "nobody tells it of the second"
    poller._poll([told])
    poller._poll([late])
    assert [received.get_nowait() for _ in range(4)] == [first, first, second, second]


def test_what_a_reader_was_told_of_and_not_given_is_read_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_log, "MAX_HEARD_ROWS", 1)
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    follower = LogFollower(turn.pk, 2, received.put, PollSchedule(stage.resources.settings, 0))
    poller._followers.add(follower)
    poller.set_hearing(True)
    appended = [append_text(stage, text) for text in ("one", "two", "three")]
    for entry in appended:
        poller.hear_append(build_row(stage, entry))
    for entry in appended:
        assert follower.schedule.next_poll_at == 0
        poller._poll([follower])
        assert received.get_nowait() == entry
    assert follower.schedule.next_poll_at > 0, "it was told of no more"


def test_more_than_100_followers_take_several_reads(stage: Stage, poller: LogPoller) -> None:
    turn = stage.start_turn()
    turns = [turn.model_copy(update={"id": f"turn-{number}"}) for number in range(130)]
    received = [follow_into_queue(poller, followed_turn) for followed_turn in (*turns, turn)]
    append_text(stage, "x")
    assert received[-1].get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert len(poller._followers) == 131


def test_a_follower_that_left_gets_nothing_more(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()
    gone: queue.Queue[LogEntry | None] = queue.Queue()
    follower = poller.follow(stage.turn, 2, gone.put)
    poller.unfollow(follower)
    stays = follow_into_queue(poller, stage.turn)
    append_text(stage, "x")
    assert stays.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert gone.empty()


def test_the_polling_thread_ends_with_its_last_follower_and_restarts(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    follower = poller.follow(stage.turn, 2, received.put)
    poller.unfollow(follower)
    wait_until(lambda: poller._thread is None)
    again = follow_into_queue(poller, stage.turn)
    append_text(stage, "x")
    assert again.get(timeout=MAX_THREAD_WAIT_SECONDS)


def test_a_failed_delivery_affects_no_other_follower(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()

    def closed(_entry: LogEntry | None) -> None:
        raise RuntimeError("Event loop is closed")

    poller.follow(stage.turn, 2, closed)
    received = follow_into_queue(poller, stage.turn)
    append_text(stage, "one")
    assert received.get(timeout=MAX_THREAD_WAIT_SECONDS)
    append_text(stage, "two")
    assert received.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert len(poller._followers) == 1


def test_an_unreadable_entry_ends_only_the_followers_of_its_log(stage: Stage, poller: LogPoller) -> None:
    broken = stage.start_turn()
    stage.new_conversation()
    stage.start_turn()
    bad, good = follow_into_queue(poller, broken), follow_into_queue(poller, stage.turn)
    appended = append_text(stage, "x" * 50_000, broken)
    blob = stage.resources.tables.get_item(
        stage.resources.settings.bridges_table, broken.pk, build_entry_key(appended.first_number)
    )
    assert blob is not None
    append_text(stage, "fine")
    assert good.get(timeout=MAX_THREAD_WAIT_SECONDS)
    first = bad.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert first is not None
    stage.resources.blobs._client.delete_object(Bucket=stage.resources.settings.bucket, Key=blob["blob"])
    again = follow_into_queue(poller, broken)
    assert again.get(timeout=MAX_THREAD_WAIT_SECONDS) is None
    append_text(stage, "still fine")
    assert good.get(timeout=MAX_THREAD_WAIT_SECONDS)


def test_followers_do_not_notice_temporary_errors(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()
    stage.faults.fail_call(
        "dynamodb.BatchGetItem", "ProvisionedThroughputExceededException", times=MAX_POLL_FAILURES - 1
    )
    received = follow_into_queue(poller, stage.turn)
    append_text(stage, "x")
    assert received.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert stage.faults.is_spent


def test_followers_are_notified_of_lasting_errors(stage: Stage, poller: LogPoller) -> None:
    stage.start_turn()
    stage.faults.fail_call("dynamodb.BatchGetItem", "ThrottlingException", times=MAX_POLL_FAILURES)
    received = follow_into_queue(poller, stage.turn)
    assert received.get(timeout=MAX_THREAD_WAIT_SECONDS) is None
    assert not poller._followers


def test_the_reader_of_an_erased_log_is_told_so(
    stage: Stage, poller: LogPoller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_schedule, "EXISTENCE_CHECK_SECONDS", 0.05)
    erased = stage.start_turn()
    stage.new_conversation()
    stays = stage.start_turn()
    erased_reader, other_reader = follow_into_queue(poller, erased), follow_into_queue(poller, stays)
    erase_turn(stage.resources, erased.tenant, erased.id)
    told = erased_reader.get(timeout=MAX_THREAD_WAIT_SECONDS)
    while told is not None and told.state.phase != "ended":
        told = erased_reader.get(timeout=MAX_THREAD_WAIT_SECONDS)
    assert told is not None
    assert isinstance(told.events[-1], CancelledEvent)
    assert "erased" in str(told.events[-1].reason)
    appended = append_text(stage, "x", stays)
    assert other_reader.get(timeout=MAX_THREAD_WAIT_SECONDS) == appended
    wait_until(lambda: len(poller._followers) == 1)


def test_a_log_that_is_gone_is_found_in_the_request_that_looks_for_its_next_entry(stage: Stage) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    schedule = PollSchedule(stage.resources.settings, stage.resources.clock.monotonic())
    follower = LogFollower(turn.pk, 2, received.put, schedule)
    reads: list[int] = []
    for _ in range(2):
        stage.pass_time(poll_schedule.EXISTENCE_CHECK_SECONDS)
        reads.append(count_reads(stage, lambda: poller._poll([follower])))
        reads.append(count_reads(stage, lambda: poller._poll([follower])))
    assert (reads, received.empty()) == ([1, 1, 1, 1], True)
    erase_partition(stage.resources, stage.resources.settings.bridges_table, turn.pk)
    stage.pass_time(poll_schedule.EXISTENCE_CHECK_SECONDS)
    assert count_reads(stage, lambda: poller._poll([follower])) == 2, "being sure takes one more"
    told = received.get_nowait()
    assert told is not None
    assert (told.first_number, told.events) == (2, (CancelledEvent(reason=ERASED_LOG_REASON),))


def test_a_stale_read_erases_no_log(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    poller, turn = LogPoller(stage.resources), stage.start_turn()
    received: queue.Queue[LogEntry | None] = queue.Queue()
    schedule = PollSchedule(stage.resources.settings, stage.resources.clock.monotonic())
    follower = LogFollower(turn.pk, 2, received.put, schedule)
    read = stage.resources.tables.batch_get_items

    def read_stale(table: str, keys: Any, *, consistent: bool = True) -> Any:
        return read(table, keys) if consistent else {}

    monkeypatch.setattr(stage.resources.tables, "batch_get_items", read_stale)
    stage.pass_time(poll_schedule.EXISTENCE_CHECK_SECONDS)
    schedule.add_miss(stage.resources.clock.monotonic())
    poller._poll([follower])
    assert received.empty()


def count_reads(stage: Stage, act: Callable[[], None]) -> int:
    count = 0
    read = stage.resources.tables.batch_get_items

    def counted(table: str, keys: Any, *, consistent: bool = True) -> Any:
        nonlocal count
        count += 1
        return read(table, keys, consistent=consistent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage.resources.tables, "batch_get_items", counted)
        act()
    return count


def test_the_status_of_a_turn_follows_its_phases(stage: Stage) -> None:
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
    [request] = paused["pending"]
    assert (request["toolName"], request["input"]) == ("deleteNode", {"nodeId": "a"})
    assert request["deadline"].endswith("Z")
    stage.answer_request(OK)
    assert stage.show_turn()["pending"] == []
    stage.run_workflow()
    assert stage.show_turn()["status"] == "done"
