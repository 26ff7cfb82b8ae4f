"""Read what has changed in content from the stream of its table, which is the outbox of the store (decision 0409).

The stream repeats a batch until it is consumed. So whoever reads it may be told of a change twice, and of the changes
of one document in their order.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

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


def _split_space(partition: str) -> tuple[str, str, str]:
    _, tenant, _, site, environment = partition.split("#")
    return tenant, site, environment


def consume_content_changes(
    records: Iterable[Mapping[str, Any]], apply: Callable[[ContentChange], object]
) -> dict[str, list[dict[str, str]]]:
    """Apply the changes of a batch, one after the other, up to the first that fails.

    Args:
        records: The records of the stream's event.
        apply: Does what a change needs. It is called again for a change whose response was lost, or whose process died.

    Returns:
        The response to the stream: where it begins again; everything before is done.
    """
    for record in records:
        change = read_content_change(record)
        if change is None:
            continue
        try:
            apply(change)
        except Exception:  # noqa: BLE001 - logged whole, and the stream repeats the change with all behind it
            place = f"{change.space.name}/{change.document.model}/{change.document.id}"
            observability.log_exception("content.change_failed", document=place, version=change.version)
            return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
