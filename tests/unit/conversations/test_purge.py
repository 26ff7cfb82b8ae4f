"""What was deleted a month ago is forgotten, and nothing else."""

import pytest

from fermata.aws.blob_store import conversation_folder
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.conversations.purge import BIN_RETENTION_DAYS, purge_deleted_conversations
from tests.resources import TestClock
from tests.unit.conversations.message_builders import ThreadBuilder, make_image, store_messages
from tests.unit.conversations.test_conversation_store import ADA, create_titled

DAY = 86_400


def create_filled_conversation(resources: Resources, clock: TestClock, messages: int = 3) -> str:
    made = create_titled(resources, clock)
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image())
    for number in range(messages - 1):
        thread.add_reply("x" * 40_000 if number == 0 else "Ok")
    store_messages(resources, "bakery", made, thread.messages)
    return made


def count_rows_and_blobs(resources: Resources, conversation: str) -> tuple[int, int]:
    """Rows and blobs."""
    found = resources.blobs._client.list_objects_v2(
        Bucket="fermata", Prefix=conversation_folder("bakery", conversation)
    )
    return len(
        resources.tables.query_items("conversations", message_store.conversation_partition("bakery", conversation))
    ), found["KeyCount"]


def test_a_month_after_it_was_deleted_a_conversation_is_forgotten_with_all_it_held(
    resources: Resources, clock: TestClock
) -> None:
    made, kept = create_filled_conversation(resources, clock, 60), create_filled_conversation(resources, clock)
    assert count_rows_and_blobs(resources, made) == (61, 2)
    conversation_store.delete_conversation(resources, ADA, made)
    clock.advance(BIN_RETENTION_DAYS * DAY - 1)
    assert purge_deleted_conversations(resources) == 0
    clock.advance(2)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, made) == (0, 0)
    assert count_rows_and_blobs(resources, kept) == (4, 2)
    assert purge_deleted_conversations(resources) == 0


def test_one_that_cannot_be_forgotten_does_not_keep_the_others(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create_filled_conversation(resources, clock), create_filled_conversation(resources, clock)
    for made in (first, second):
        conversation_store.delete_conversation(resources, ADA, made)
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    remove = resources.blobs.delete_folder

    def stumbling(folder: str) -> int:
        if folder.endswith(first):
            raise RuntimeError("S3 is not well")
        return remove(folder)

    monkeypatch.setattr(resources.blobs, "delete_folder", stumbling)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, second) == (0, 0)
    monkeypatch.undo()
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, first) == (0, 0)


def test_a_purge_that_died_half_way_is_taken_up_again(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create_filled_conversation(resources, clock)
    conversation_store.delete_conversation(resources, ADA, made)
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    with monkeypatch.context() as patched:
        patched.setattr(resources.tables, "query_sort_keys", lambda *_, **__: [])
        patched.setattr(resources.tables, "batch_delete", lambda *_: None)
        purge_deleted_conversations(resources)
    assert count_rows_and_blobs(resources, made) == (4, 0)
    assert purge_deleted_conversations(resources) == 1
    assert count_rows_and_blobs(resources, made) == (0, 0)


def test_it_stops_when_its_time_is_over(resources: Resources, clock: TestClock) -> None:
    for _ in range(3):
        conversation_store.delete_conversation(resources, ADA, create_filled_conversation(resources, clock))
    clock.advance(BIN_RETENTION_DAYS * DAY + 1)
    assert purge_deleted_conversations(resources, lambda: False) == 0
    assert purge_deleted_conversations(resources) == 3
