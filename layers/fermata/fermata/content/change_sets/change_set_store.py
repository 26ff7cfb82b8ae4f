"""Begin, fill, read and discard change sets. Readers of the space see nothing of them."""

from collections.abc import Iterator

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Delete,
    ItemKey,
    Put,
    TransactionCanceled,
    Write,
    build_versioned_delete,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import (
    ChangedDocument,
    ChangeSet,
    change_set_from_item,
    change_set_sort_key,
    change_set_to_item,
    changed_document_from_item,
    changed_document_sort_key,
    changed_documents_prefix,
)
from fermata.content.change_sets.change_set_backlog import HealthThresholds, require_healthy
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.document import ContentAuthor
from fermata.content.documents.document_commit import MAX_WRITES
from fermata.content.documents.read_document import PROJECT_KEY, read_newest_version
from fermata.domain.errors import Conflict, NotFound
from fermata.domain.value_dataclass import value_dataclass

MAX_CLOSING_DELETES = 30
"""Of the documents of a change set, together with the row that closes it. More are deleted behind it."""
MAX_CHANGE_SET_ATTEMPTS = 5
KEEP_CLOSED_SECONDS = 30 * 86_400
"""How long it is listed that a change set was merged or discarded."""
KEEP_OPEN_SECONDS = 30 * 86_400
"""After so long without a change, one that waits is discarded."""


class ChangeSetClosed(Conflict):
    """A change set was merged or discarded, so that it takes no more changes."""


@value_dataclass(frozen=True)
class ChangeSetContents:
    """A change set with its documents."""

    change_set: ChangeSet
    documents: tuple[ChangedDocument, ...] = ()


def begin_change_set(
    resources: Resources,
    space: SpaceKey,
    title: str,
    author: ContentAuthor,
    *,
    branch: str = "",
    change_set_id: str = "",
) -> ChangeSet:
    """Begin an empty change set, or return the one that an earlier copy of the request has begun.

    Args:
        resources: Of the process.
        space: The space.
        title: What it is for.
        author: Who begins it.
        branch: Its name as a branch; empty for none.
        change_set_id: The same for every repetition of the request; a new one without it.

    Raises:
        NotFound: There is no such space.
        TooManyRequests: Too many wait to be merged.
    """
    read_space(resources, space)
    known = list_change_sets(resources, space)
    for one in known:
        if one.id == change_set_id:
            return one
    if waiting := sum(one.status == "open" for one in known):
        require_healthy(waiting, read_health_thresholds(resources, space))
    now = resources.clock.now_iso()
    change_set = ChangeSet(id=change_set_id or new_id(), title=title, branch=branch, created_at=now, user=author.user)
    put = Put(resources.settings.content_table, change_set_to_item(space, change_set), if_absent=True)
    try:
        resources.tables.write_items(put)
    except ConditionFailed:  # a copy of the request has begun it at the same moment
        return read_change_set(resources, space, change_set.id).change_set
    return change_set


def read_health_thresholds(resources: Resources, space: SpaceKey) -> HealthThresholds:
    """Read from how many waiting change sets a space is warned and blocked."""
    project = read_newest_version(resources, space, PROJECT_KEY)
    settings = project.content.get_locale(DEFINITION_LOCALE) if project and project.content else {}
    return HealthThresholds.from_settings(settings)


def list_change_sets(resources: Resources, space: SpaceKey) -> list[ChangeSet]:
    """Return the change sets that are open, and those that were closed in the last days, the newest first."""
    rows = resources.tables.query_items(resources.settings.content_table, space.pk, min_sk="c#", max_sk="c#~")
    return sorted(map(change_set_from_item, rows), key=lambda one: one.created_at, reverse=True)


def read_change_set(resources: Resources, space: SpaceKey, change_set_id: str) -> ChangeSetContents:
    """Return a change set with its documents.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.

    Raises:
        NotFound: There is none.
    """
    change_set = read_change_set_alone(resources, space, change_set_id)
    if change_set.status != "open":
        return ChangeSetContents(change_set)
    prefix = changed_documents_prefix(change_set_id)
    rows = resources.tables.query_items(resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~")
    return ChangeSetContents(change_set, tuple(changed_document_from_item(resources, one) for one in rows))


def read_change_set_alone(resources: Resources, space: SpaceKey, change_set_id: str) -> ChangeSet:
    """Return a change set without its documents.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: As a client sent it.

    Raises:
        NotFound: There is no such change set.
    """
    row = resources.tables.get_item(resources.settings.content_table, space.pk, change_set_sort_key(change_set_id))
    if row is None:
        raise NotFound("There is no such change set.")
    return change_set_from_item(row)


def iter_waiting_documents(resources: Resources, space: SpaceKey, model: str) -> Iterator[ChangedDocument]:
    """Iterate over the documents of a model as they are in the change sets that are open.

    Args:
        resources: Of the process.
        space: The space.
        model: The id of the model.
    """
    table = resources.settings.content_table
    for one in list_change_sets(resources, space):
        if one.status != "open" or not one.documents:
            continue
        begin = f"{changed_documents_prefix(one.id)}{model}#"
        for row in resources.tables.query_items(table, space.pk, min_sk=begin, max_sk=f"{begin}~"):
            yield changed_document_from_item(resources, row)


def require_open(change_set: ChangeSet) -> None:
    """Check that a change set is neither merged nor discarded.

    Raises:
        ChangeSetClosed: It is.
    """
    if change_set.status != "open":
        raise ChangeSetClosed(f"The change set was {change_set.status}.")


def build_change_set_put(resources: Resources, space: SpaceKey, before: ChangeSet, after: ChangeSet) -> Put:
    """Build the write that replaces a change set as it was read.

    Args:
        resources: Of the process.
        space: The space.
        before: As it was read.
        after: As it is from now on.
    """
    item = change_set_to_item(space, after)
    if after.status != "open":
        item["ttl"] = int(resources.clock.time()) + KEEP_CLOSED_SECONDS
    return build_versioned_put(resources.settings.content_table, item, before.version)


def build_closing_writes(
    resources: Resources, space: SpaceKey, contents: ChangeSetContents, closed: ChangeSet
) -> list[Write]:
    """Build the writes that close a change set: its row, and the end of its documents if they are few.

    `delete_changed_documents` deletes those of a large one behind it.

    Args:
        resources: Of the process.
        space: The space.
        contents: The change set as it was read.
        closed: As it is from now on.
    """
    table = resources.settings.content_table
    deletes = [
        build_versioned_delete(
            ItemKey(table, space.pk, changed_document_sort_key(closed.id, document.key)), document.version
        )
        for document in contents.documents
    ]
    put = build_change_set_put(resources, space, contents.change_set, closed)
    return [put, *deletes] if len(deletes) <= MAX_CLOSING_DELETES else [put]


def delete_changed_documents(resources: Resources, space: SpaceKey, change_set_id: str) -> None:
    """Delete what is left of the documents of a change set that is closed. Nobody reads them any more. Idempotent.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
    """
    table, prefix = resources.settings.content_table, changed_documents_prefix(change_set_id)
    rows = resources.tables.query_items(table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", attributes=("sk",))
    for start in range(0, len(rows), MAX_WRITES):
        deletes = [Delete(table, space.pk, row["sk"]) for row in rows[start : start + MAX_WRITES]]
        resources.tables.write_items(*deletes)


def discard_change_set(resources: Resources, space: SpaceKey, change_set_id: str) -> ChangeSet:
    """Discard a change set with all that is in it. One that is discarded already stays so.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.

    Raises:
        NotFound: There is none.
        Conflict: It was merged, or somebody is changing it.
    """
    contents = read_change_set(resources, space, change_set_id)
    if contents.change_set.status == "discarded":
        delete_changed_documents(resources, space, change_set_id)
        return contents.change_set
    require_open(contents.change_set)
    closed = close_change_set(resources, contents.change_set, "discarded")
    try:
        resources.tables.write_items(*build_closing_writes(resources, space, contents, closed))
    except (TransactionCanceled, ConditionFailed):
        raise Conflict("The change set has just been changed. Look at it, and try again.") from None
    delete_changed_documents(resources, space, change_set_id)
    return closed


def close_change_set(resources: Resources, change_set: ChangeSet, status: str) -> ChangeSet:
    """Return a change set that is merged or discarded now."""
    update = {"status": status, "closed_at": resources.clock.now_iso(), "version": change_set.version + 1}
    return change_set.model_copy(update=update)
