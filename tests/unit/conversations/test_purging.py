"""What was deleted a month ago is forgotten, and nothing else."""

import pytest

from fermata.aws.blobs import conversation_folder
from fermata.aws.desk import Desk
from fermata.conversations import rows, threads
from fermata.conversations.purging import KEPT_DAYS, purge
from tests.desk import TestClock
from tests.unit.conversations.messages import Thread, picture, store
from tests.unit.conversations.test_threads import ADA, make

DAY = 86_400


def filled(desk: Desk, clock: TestClock, messages: int = 3) -> str:
    made = make(desk, clock)
    thread = Thread()
    thread.user("Look", picture())
    for number in range(messages - 1):
        thread.model("x" * 40_000 if number == 0 else "Ok")
    store(desk, "bakery", made, thread.messages)
    return made


def left(desk: Desk, conversation: str) -> tuple[int, int]:
    """Rows and blobs."""
    found = desk.blobs._client.list_objects_v2(Bucket="fermata", Prefix=conversation_folder("bakery", conversation))
    return len(desk.tables.query("conversations", rows.partition("bakery", conversation))), found["KeyCount"]


def test_a_month_after_it_was_deleted_a_conversation_is_forgotten_with_all_it_held(
    desk: Desk, clock: TestClock
) -> None:
    made, kept = filled(desk, clock, 60), filled(desk, clock)
    assert left(desk, made) == (61, 2)
    threads.remove(desk, ADA, made)
    clock.go_on(KEPT_DAYS * DAY - 1)
    assert purge(desk) == 0
    clock.go_on(2)
    assert purge(desk) == 1
    assert left(desk, made) == (0, 0)
    assert left(desk, kept) == (4, 2)
    assert purge(desk) == 0


def test_one_that_cannot_be_forgotten_does_not_keep_the_others(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = filled(desk, clock), filled(desk, clock)
    for made in (first, second):
        threads.remove(desk, ADA, made)
    clock.go_on(KEPT_DAYS * DAY + 1)
    remove = desk.blobs.remove_folder

    def stumbling(folder: str) -> int:
        if folder.endswith(first):
            raise RuntimeError("S3 is not well")
        return remove(folder)

    monkeypatch.setattr(desk.blobs, "remove_folder", stumbling)
    assert purge(desk) == 1
    assert left(desk, second) == (0, 0)
    monkeypatch.undo()
    assert purge(desk) == 1
    assert left(desk, first) == (0, 0)


def test_a_purge_that_died_half_way_is_taken_up_again(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(desk, clock)
    threads.remove(desk, ADA, made)
    clock.go_on(KEPT_DAYS * DAY + 1)
    with monkeypatch.context() as patched:
        patched.setattr(desk.tables, "keys", lambda *_, **__: [])
        patched.setattr(desk.tables, "remove", lambda *_: None)
        purge(desk)
    assert left(desk, made) == (4, 0)
    assert purge(desk) == 1
    assert left(desk, made) == (0, 0)


def test_it_stops_when_its_time_is_over(desk: Desk, clock: TestClock) -> None:
    for _ in range(3):
        threads.remove(desk, ADA, filled(desk, clock))
    clock.go_on(KEPT_DAYS * DAY + 1)
    assert purge(desk, lambda: False) == 0
    assert purge(desk) == 3
