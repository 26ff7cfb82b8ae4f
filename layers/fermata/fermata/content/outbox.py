"""Read what has changed in content from the stream of its table, which is the outbox of the store (decision 0409).

The stream repeats a batch until it is consumed. So whoever reads it may be told of a change twice, and of the changes
of one document in their order.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import deserialize_item
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, VersionAction
from fermata.content.documents.document_rows import VERSION_PREFIX
from fermata.content.documents.staged_rows import COMMIT_PREFIX, COMMITTED, RELEASED, STAGED_BY
from fermata.content.forms.submission import SUBMISSION_PREFIX


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


class SubmissionStep(NamedTuple):
    """A submission of a form that was received, or decided about."""

    space: SpaceKey
    submission: str
    version: int

    @property
    def place(self) -> str:
        """Where it is, for logs."""
        return f"{self.space.name}/{self.submission}"


OutboxEntry: TypeAlias = ContentChange | ChangeSetStep | SubmissionStep
"""What the outbox tells its consumers."""


def read_content_change(record: Mapping[str, Any]) -> ContentChange | None:
    """Return the change that a record of the stream reports; None for a record of something else.

    New rows of versions are changes, and those that a staged commit has released. A row that it has only marked is
    none, nor that a row was erased. An author who is renamed in a row that was released tells of the change again.
    """
    image = record["dynamodb"].get("NewImage")
    if image is None or not image["sk"]["S"].startswith(VERSION_PREFIX) or STAGED_BY in image:
        return None
    if record["eventName"] != "INSERT" and RELEASED not in image:
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


def read_submission_step(record: Mapping[str, Any]) -> SubmissionStep | None:
    """Return what became of a submission; None for a record of something else.

    A moderator who is renamed in a row tells of the same step again.
    """
    image = record["dynamodb"].get("NewImage")
    if image is None or not image["sk"]["S"].startswith(SUBMISSION_PREFIX):
        return None
    submission = image["sk"]["S"].removeprefix(SUBMISSION_PREFIX)
    return SubmissionStep(SpaceKey(*_split_space(image["pk"]["S"])), submission, int(image["version"]["N"]))


def read_switched_commit(record: Mapping[str, Any]) -> tuple[SpaceKey, str] | None:
    """Return the staged commit that a record of the stream reports as switched, and its space; None for another record.

    Its process may have died behind the switch: then nobody else takes the marks off.
    """
    image = record["dynamodb"].get("NewImage")
    if record["eventName"] != "MODIFY" or image is None or not image["sk"]["S"].startswith(COMMIT_PREFIX):
        return None
    if image.get("status") != {"S": COMMITTED} or "ttl" in image:  # a token of delivery has no status
        return None
    return SpaceKey(*_split_space(image["pk"]["S"])), image["sk"]["S"].removeprefix(COMMIT_PREFIX)


def _split_space(partition: str) -> tuple[str, str, str]:
    _, tenant, _, site, environment = partition.split("#")
    return tenant, site, environment


def ignore_changes(_changes: Sequence[ContentChange]) -> None:
    """Prepare nothing."""


def consume_content_changes(
    records: Sequence[Mapping[str, Any]],
    apply: Callable[[Any], object],
    finish: Callable[[SpaceKey, str], object],
    prepare: Callable[[Sequence[ContentChange]], object] = ignore_changes,
) -> dict[str, list[dict[str, str]]]:
    """Apply the changes of a batch, one after the other, up to the first that fails.

    Args:
        records: The records of the stream's event.
        apply: Does what an OutboxEntry needs. It is called again for one whose process died or response was lost.
        finish: Takes the marks of a staged commit off whose process may have died.
        prepare: Does for all changes at once what it can, before they are applied. It raises nothing.

    Returns:
        The response to the stream: where it begins again; everything before is done.
    """
    batch, unread = _read_batch(records)
    prepare([change for _, change, _ in batch if isinstance(change, ContentChange)])
    for record, change, switched in batch:
        try:
            if change is not None:
                apply(change)
            elif switched is not None:
                finish(*switched)
        except Exception:  # noqa: BLE001 - logged whole, and the stream repeats the change with all behind it
            observability.log_exception("content.change_failed", **_describe_record(change, switched))
            return _begin_again_at(record)
    return _begin_again_at(unread) if unread is not None else {"batchItemFailures": []}


def _read_batch(
    records: Sequence[Mapping[str, Any]],
) -> tuple[list[tuple[Mapping[str, Any], OutboxEntry | None, tuple[SpaceKey, str] | None]], Mapping[str, Any] | None]:
    """Return what each record reports, up to the first that cannot be read; and that one, if there is one."""
    batch = []
    for record in records:
        try:
            change = read_content_change(record) or read_change_set_step(record) or read_submission_step(record)
            batch.append((record, change, read_switched_commit(record)))
        except Exception:  # noqa: BLE001 - logged whole, and the stream repeats the record with all behind it
            observability.log_exception("content.change_failed")
            return batch, record
    return batch, None


def _begin_again_at(record: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}


def _describe_record(change: OutboxEntry | None, switched: tuple[SpaceKey, str] | None) -> dict[str, Any]:
    if change is not None:
        return {"document": change.place, "version": change.version}
    return {"commit": switched[1], "space": switched[0].name} if switched else {}
