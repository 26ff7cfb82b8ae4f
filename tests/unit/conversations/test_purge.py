"""The purge removes what was deleted a month ago, and nothing else."""

from typing import Any

import pytest

from fermata.aws.blob_store import conversation_folder
from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import BIN_SHARD_COUNT
from fermata.conversations.conversation_store import delete_conversation
from fermata.conversations.message_store import conversation_partition
from fermata.conversations.purge import BIN_RETENTION_DAYS, MIN_RETENTION_SECONDS, purge_deleted_conversations
from tests.resources import TestClock
from tests.unit.conversations.message_builders import ThreadBuilder, make_image, store_messages
from tests.unit.conversations.test_conversation_store import ADA, create_titled

DAY = 86_400


def create_filled_conversation(resources: Resources, clock: TestClock, messages: int = 3) -> str:
    conversation = create_titled(resources, clock)
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image())
    for number in range(messages - 1):
        thread.add_reply("x" * 40_000 if number == 0 else "Ok")
    store_messages(resources, "bakery", conversation, thread.messages)
    return conversation


def count_rows_and_blobs(resources: Resources, conversation: str) -> tuple[int, int]:
    folder = conversation_folder("bakery", conversation)
    listed = resources.blobs._client.list_objects_v2(Bucket="fermata", Prefix=folder)
    rows = resources.tables.query_items("conversations", conversation_partition("bakery", conversation))
    return len(rows), listed["KeyCount"]


def test_a_conversation_is_purged_a_month_after_it_was_deleted(resources: Resources, clock: TestClock) -> None:
    deleted = create_filled_conversation(resources, clock, 60)
    kept = create_filled_conversation(resources, clock)
    assert count_rows_and_blobs(resources, deleted) == (61, 2)
    delete_conversation(resources, ADA, deleted)
    clock.advance(BIN_RETENTION_DAYS * DAY - 1)
    assert purge_deleted_conversations(resources) == 0
    clock.advance(2)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, deleted) == (0, 0)
    assert count_rows_and_blobs(resources, kept) == (4, 2)
    assert purge_deleted_conversations(resources) == 0


def test_a_conversation_that_cannot_be_purged_does_not_stop_the_others(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = create_filled_conversation(resources, clock)
    second = create_filled_conversation(resources, clock)
    for conversation in (first, second):
        delete_conversation(resources, ADA, conversation)
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    original = resources.blobs.delete_folder

    def fail_for_first(folder: str) -> int:
        if folder.endswith(first):
            raise RuntimeError("S3 is not well")
        return original(folder)

    monkeypatch.setattr(resources.blobs, "delete_folder", fail_for_first)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, second) == (0, 0)
    monkeypatch.undo()
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, first) == (0, 0)


def test_the_next_purge_resumes_one_that_broke_off(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = create_filled_conversation(resources, clock)
    delete_conversation(resources, ADA, conversation)
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    with monkeypatch.context() as patched:
        patched.setattr(resources.tables, "query_sort_keys", lambda *_, **__: [])
        patched.setattr(resources.tables, "batch_delete", lambda *_: None)
        purge_deleted_conversations(resources)
    assert count_rows_and_blobs(resources, conversation) == (4, 0)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, conversation) == (0, 0)


def test_a_purge_stops_when_its_time_is_over(resources: Resources, clock: TestClock) -> None:
    for _ in range(3):
        delete_conversation(resources, ADA, create_filled_conversation(resources, clock))
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    assert purge_deleted_conversations(resources, lambda: False) == 0
    assert purge_deleted_conversations(resources) == 3


def test_a_tenant_says_how_long_deleted_conversations_are_kept(resources: Resources, clock: TestClock) -> None:
    deleted = create_filled_conversation(resources, clock)
    delete_conversation(resources, ADA, deleted)
    clock.advance(2 * DAY)
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 3) == 0
    shorter: Any = {"get_retention_days": lambda tenant: {"bakery": 2}[tenant]}
    assert purge_deleted_conversations(resources, **shorter) == 0, "not due by what was known before"
    assert purge_deleted_conversations(resources, **shorter, is_whole_bin_read=True) == 1


def test_every_page_of_the_bin_is_read(resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a tenant that keeps them for long do not hide those of others behind them."""
    monkeypatch.setattr("fermata.conversations.purge._PAGE_SIZE", 2)
    for _ in range(13):
        delete_conversation(resources, ADA, create_titled(resources, clock))
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 99) == 0
    clock.advance(MIN_RETENTION_SECONDS)
    at_once: Any = {"get_retention_days": lambda _: 0, "is_whole_bin_read": True}
    assert purge_deleted_conversations(resources, **at_once) == 13


def test_a_tenant_may_keep_them_longer_than_it_did(resources: Resources, clock: TestClock) -> None:
    deleted = create_filled_conversation(resources, clock)
    delete_conversation(resources, ADA, deleted)
    assert purge_deleted_conversations(resources) == 0
    clock.advance(BIN_RETENTION_DAYS * DAY)
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 40) == 0
    clock.advance(10 * DAY)
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 40) == 1


def test_no_function_writes_to_a_conversation_that_is_purged_at_once(resources: Resources, clock: TestClock) -> None:
    """A turn that ran when its conversation was deleted may write until its function is stopped."""
    delete_conversation(resources, ADA, create_filled_conversation(resources, clock))
    clock.advance(15 * 60)
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 0) == 0
    clock.advance(MIN_RETENTION_SECONDS)
    assert purge_deleted_conversations(resources, get_retention_days=lambda _: 0) == 1


def test_a_restored_conversation_stays_restored(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The purge has read it in the bin, and an operator takes it out before the purge writes."""
    deleted = create_filled_conversation(resources, clock)
    delete_conversation(resources, ADA, deleted)
    key = (resources.settings.conversations_table, conversation_partition("bakery", deleted), "meta")

    def restore(_: str) -> int:
        values = {":user": "t#bakery#u#ada#site", ":now": clock.now_iso()}
        resources.tables.write_items(Update(*key, "SET gpk = :user, gsk = :now REMOVE deleted_at", values))
        return 30

    assert purge_deleted_conversations(resources, get_retention_days=restore) == 0
    row = resources.tables.get_item(*key)
    assert row
    assert (row["gpk"], row["gsk"]) == ("t#bakery#u#ada#site", clock.now_iso())


@pytest.mark.parametrize("kept", [20, 40])
def test_an_hourly_purge_reads_what_is_new_or_due_and_not_what_waits(
    resources: Resources, clock: TestClock, kept: int
) -> None:
    """Measured in rows that the index returns. The bin holds twice as much, and the purge reads the same."""
    for number in range(kept + 3):
        if number == kept:
            purge_deleted_conversations(resources)
            clock.advance(DAY)
        delete_conversation(resources, ADA, create_titled(resources, clock))
    read: list[int] = []
    resources.tables._client.meta.events.register(
        "after-call.dynamodb.Query", lambda parsed, **_: read.append(parsed["Count"])
    )
    purge_deleted_conversations(resources)
    assert sum(read) == 3, "those deleted since the last purge"
    read.clear()
    purge_deleted_conversations(resources)
    assert (sum(read), len(read)) == (0, BIN_SHARD_COUNT)
    purge_deleted_conversations(resources, is_whole_bin_read=True)
    assert sum(read) == kept + 3
