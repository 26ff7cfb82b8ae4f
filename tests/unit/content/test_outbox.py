"""The rows of versions are the outbox: a consumer that dies or fails is given what it has not done again."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put, serialize_item
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.outbox import ContentChange, consume_content_changes, read_content_change
from tests.unit.content.conftest import ADA

RYE = DocumentKey("post", "rye")


@pytest.fixture
def stream(resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Three changes of one document, as the stream of the table reports them."""
    records: list[dict[str, Any]] = []
    write = resources.tables.write_items

    def record(*writes: Any) -> None:
        write(*writes)
        for one in writes:
            image = {"NewImage": serialize_item(one.item)} if isinstance(one, Put) else {}
            event = "INSERT" if isinstance(one, Put) else "MODIFY"
            records.append({"eventName": event, "dynamodb": {"SequenceNumber": str(len(records)), **image}})

    monkeypatch.setattr(resources.tables, "write_items", record)
    create_document(resources, space, "post", ADA, DocumentContent(title="Rye", slug="rye"), document_id="rye")
    update_document(resources, space, RYE, ADA, lambda post: post.model_copy(update={"title": "Dark rye"}))
    delete_document(resources, space, RYE, ADA)
    return records


def finish_nothing(_space: SpaceKey, _commit: str) -> None:
    raise AssertionError("no commit was staged")


def deliver(stream: list[dict[str, Any]], apply: Callable[[ContentChange], object]) -> int:
    """Deliver batches as Lambda does, from where the last one has failed, and return how many there were."""
    batches, start = 0, 0
    while start < len(stream):
        batches += 1
        try:
            failures = consume_content_changes(stream[start:], apply, finish_nothing)["batchItemFailures"]
        except SystemExit:  # the process is gone, and has reported nothing
            continue
        start = int(failures[0]["itemIdentifier"]) if failures else len(stream)
    return batches


def test_every_version_is_a_change_and_nothing_else_is(stream: list[dict[str, Any]], space: SpaceKey) -> None:
    changes = [change for record in stream if (change := read_content_change(record))]
    assert [(one.space, one.document, one.version, one.action) for one in changes] == [
        (space, RYE, 1, "create"),
        (space, RYE, 2, "update"),
        (space, RYE, 3, "delete"),
    ]
    renamed = stream[0] | {"eventName": "MODIFY"}
    assert read_content_change(renamed) is None


@pytest.mark.parametrize("error", [RuntimeError("refused"), SystemExit(1)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_consumer_that_fails_or_dies_loses_nothing(
    stream: list[dict[str, Any]], error: BaseException, when: str
) -> None:
    done: list[int] = []
    troubles = [error, error]

    def apply(change: ContentChange) -> None:
        if when == "before" and change.version == 2 and troubles:
            raise troubles.pop()
        done.append(change.version)
        if when == "after" and change.version == 2 and troubles:
            raise troubles.pop()

    assert deliver(stream, apply) == 3
    assert sorted(set(done)) == [1, 2, 3]
    assert done[-2:] == [2, 3], "in the order of the document"


def test_what_cannot_be_read_is_told_again_alone_and_keeps_nothing_before_it_from_consumers(
    stream: list[dict[str, Any]],
) -> None:
    places = [place for place, record in enumerate(stream) if read_content_change(record)]
    row = stream[places[1]]["dynamodb"]["NewImage"]
    stream[places[1]]["dynamodb"]["NewImage"] = row | {"data": {"S": "{}"}}
    applied: list[int] = []
    prepared: list[list[int]] = []

    def note(changes: Any) -> None:
        prepared.append([one.version for one in changes])

    answer = consume_content_changes(stream, lambda one: applied.append(one.version), finish_nothing, note)
    assert answer == {"batchItemFailures": [{"itemIdentifier": stream[places[1]]["dynamodb"]["SequenceNumber"]}]}
    assert applied == [1]
    assert prepared == [[1]], "what is behind it is prepared when it is applied"
