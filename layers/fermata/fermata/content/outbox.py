"""Read what has changed in content from the stream of its table, which is the outbox of the store (decision 0409).

The stream repeats a batch until it is consumed. So whoever reads it may be told of a change twice, and of the changes
of one document in their order.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import deserialize_item
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, VersionAction


class ContentChange(NamedTuple):
    """A version of a document that was stored."""

    space: SpaceKey
    document: DocumentKey
    version: int
    action: VersionAction
    at: str

    @property
    def place(self) -> str:
        """Where it is, for logs."""
        return f"{self.space.name}/{self.document.model}/{self.document.id}"


class ChangeSetStep(NamedTuple):
    """A change set that was opened, merged or discarded."""

    space: SpaceKey
    change_set: str
    version: int
    status: str

    @property
    def place(self) -> str:
        """Where it is, for logs."""
        return f"{self.space.name}/{self.change_set}"


OutboxEntry: TypeAlias = ContentChange | ChangeSetStep
"""What the outbox tells its consumers."""


def read_content_change(record: Mapping[str, Any]) -> ContentChange | None:
    """Return the change that a record of the stream reports; None for a record of something else.

    Only new rows of versions are changes. That an author was renamed, or that a row was erased, is none.
    """
    image = record["dynamodb"].get("NewImage")
    if record["eventName"] != "INSERT" or image is None or not image["sk"]["S"].startswith("h#"):
        return None
    row = deserialize_item(image)
    data = json.loads(row["data"])
    tenant, site, environment = _split_space(row["pk"])
    key = DocumentKey(data["model"], data["id"])
    return ContentChange(SpaceKey(tenant, site, environment), key, data["version"], data["action"], data["at"])


def read_change_set_step(record: Mapping[str, Any]) -> ChangeSetStep | None:
    """Return what became of a change set; None for a record of something else.

    One that is closed is written no more, unless its author is renamed. That step is the same then.
    """
    image = record["dynamodb"].get("NewImage")
    if record["eventName"] not in ("INSERT", "MODIFY") or image is None or not image["sk"]["S"].startswith("c#"):
        return None
    row = deserialize_item(image)
    status = json.loads(row["data"])["status"]
    if record["eventName"] == "MODIFY" and status == "open":
        return None
    return ChangeSetStep(SpaceKey(*_split_space(row["pk"])), row["sk"].removeprefix("c#"), int(row["version"]), status)


def _split_space(partition: str) -> tuple[str, str, str]:
    _, tenant, _, site, environment = partition.split("#")
    return tenant, site, environment


def consume_content_changes(
    records: Iterable[Mapping[str, Any]], apply: Callable[[Any], object]
) -> dict[str, list[dict[str, str]]]:
    """Apply the changes of a batch, one after the other, up to the first that fails.

    Args:
        records: The records of the stream's event.
        apply: Does what an OutboxEntry needs. It is called again for one whose process died or response was lost.

    Returns:
        The response to the stream: where it begins again; everything before is done.
    """
    for record in records:
        change: OutboxEntry | None = read_content_change(record) or read_change_set_step(record)
        if change is None:
            continue
        try:
            apply(change)
        except Exception:  # noqa: BLE001 - logged whole, and the stream repeats the change with all behind it
            observability.log_exception("content.change_failed", document=change.place, version=change.version)
            return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
