"""Define a change set: documents as they are to become, beside what is stored, until it is merged or discarded.

c#<id>                     the change set
b#<id>#<model>#<document>  a document as it is in it, and the version that it has begun with
"""

import json
import re
from typing import Any, Literal

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import (
    ContentAuthor,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
    VersionAction,
)
from fermata.content.documents.document_rows import BytesCounter, leave_uncounted, pack_content, unpack_content
from fermata.domain.base import RecordModel
from fermata.domain.errors import NotFound

CHANGE_SET_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
ChangeSetStatus = Literal["open", "merged", "discarded"]


class ChangeSet(RecordModel):
    """A change set.

    Attributes:
        branch: Its name as a branch of the studio; empty for one that has none.
        documents: How many documents it changes.
        models: How many of them are models.
        changed_at: When a document was changed in it; empty if none was.
        user: Who has begun it. It is an attribute of its own in the row, which the erasure of a user renames.
    """

    id: str
    title: str = ""
    branch: str = ""
    status: ChangeSetStatus = "open"
    version: int = 1
    documents: int = 0
    models: int = 0
    created_at: str = ""
    changed_at: str = ""
    closed_at: str = ""
    user: str = ""

    @property
    def branch_name(self) -> str:
        """What the studio's tools call it, also one that was begun by hand and has no name of a branch."""
        return self.branch or f"cr/{self.id}"

    @property
    def last_changed_at(self) -> str:
        """When somebody has worked on it for the last time."""
        return self.changed_at or self.created_at

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        return self.to_known()


class ChangedDocument(RecordModel):
    """A document as it is in a change set.

    Attributes:
        base_version: The version that it has begun with; 0 for a document that is new.
        version: How often it was changed in the change set.
        content: What it says in the change set; None if it is deleted there.
    """

    model: str
    id: str
    base_version: int
    version: int = 1
    content: DocumentContent | None = None

    @property
    def key(self) -> DocumentKey:
        """Which document it is."""
        return DocumentKey(self.model, self.id)

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people."""
        content = {} if self.content is None else self.content.model_dump(mode="json", by_alias=True)
        return {**self.to_known(exclude=frozenset({"content"})), **content, "deleted": self.content is None}


def show_changed_document(
    changed: ChangedDocument, at: str = "", author: ContentAuthor | None = None
) -> DocumentVersion:
    """Return a document as it is in a change set, as if it were stored. It has the number of its base.

    Args:
        changed: The document in the change set.
        at: When it was changed; empty if that does not matter.
        author: Who has changed it.
    """
    by = author or ContentAuthor("")
    action: VersionAction = "delete" if changed.content is None else "update" if changed.base_version else "create"
    return DocumentVersion(
        model=changed.model,
        id=changed.id,
        version=changed.base_version,
        action=action,
        at=at,
        created_at=at if action == "create" else "",
        user=by.user,
        source=by.source,
        turn=by.turn,
        call=by.call,
        content=changed.content,
    )


def change_set_sort_key(change_set_id: str) -> str:
    """Return the sort key of a change set.

    Raises:
        NotFound: It is no id of a change set.
    """
    if not CHANGE_SET_ID.fullmatch(change_set_id):
        raise NotFound("There is no such change set.")
    return f"c#{change_set_id}"


def changed_document_sort_key(change_set_id: str, key: DocumentKey) -> str:
    """Return the sort key of a document in a change set."""
    return f"{changed_documents_prefix(change_set_id)}{key.model}#{key.id}"


def changed_documents_prefix(change_set_id: str) -> str:
    """Return what the sort keys of a change set's documents begin with."""
    return f"b#{change_set_id}#"


def change_set_to_item(space: SpaceKey, change_set: ChangeSet) -> Item:
    """Return the row of a change set."""
    data = change_set.model_dump(mode="json", exclude={"user", "version", "documents"})
    return {
        "pk": space.pk,
        "sk": change_set_sort_key(change_set.id),
        "v": 1,
        "version": change_set.version,
        "documents": change_set.documents,
        "data": json.dumps(data, ensure_ascii=False),
        "user": change_set.user,
    }


def change_set_from_item(item: Item) -> ChangeSet:
    """Parse the row of a change set."""
    own = {"version": item["version"], "documents": item["documents"], "user": item.get("user", "")}
    return ChangeSet.model_validate({**json.loads(item["data"]), **own})


def changed_document_to_item(
    resources: Resources,
    space: SpaceKey,
    change_set_id: str,
    changed: ChangedDocument,
    count_bytes: BytesCounter = leave_uncounted,
) -> Item:
    """Return the row of a document in a change set; store a large content in the bucket first.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
        changed: The document.
        count_bytes: As in `pack_content`.
    """
    return {
        "pk": space.pk,
        "sk": changed_document_sort_key(change_set_id, changed.key),
        "v": 1,
        "base_version": changed.base_version,
        "version": changed.version,
        **pack_content(resources, space, changed.content, count_bytes),
    }


def changed_document_from_item(resources: Resources, item: Item) -> ChangedDocument:
    """Parse the row of a document in a change set."""
    _, _, model, document_id = item["sk"].split("#", 3)
    return ChangedDocument(
        model=model,
        id=document_id,
        base_version=item["base_version"],
        version=item["version"],
        content=unpack_content(resources, item),
    )
