"""List the versions of a document, and restore any of them, also of a document that was deleted."""

import json
from typing import Any

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import ChangeOptions, WrittenDocument, change_document
from fermata.content.documents.document import ContentAuthor, DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import version_sort_key, versions_prefix
from fermata.content.documents.read_document import read_restorable_content
from fermata.content.documents.staged_rows import MARK_ATTRIBUTES, show_rows
from fermata.domain.errors import NotFound


def list_versions(
    resources: Resources, space: SpaceKey, key: DocumentKey, *, limit: int = 50, before: int | None = None
) -> list[DocumentVersion]:
    """Return the versions of a document, the newest first, without what they say.

    Args:
        resources: Of the process.
        space: The space.
        key: The document, which may be deleted.
        limit: The greatest number of versions.
        before: Only versions with a smaller number.

    Raises:
        NotFound: It never existed.
    """
    key.check()
    prefix = versions_prefix(key)
    rows = resources.tables.query_items(
        resources.settings.content_table,
        space.pk,
        min_sk=prefix,
        max_sk=f"{prefix}~" if before is None else version_sort_key(key, max(before - 1, 0)),
        descending=True,
        limit=limit,
        attributes=("data", "user", *MARK_ATTRIBUTES),
    )
    shown = show_rows(resources, space, rows)
    newest = _version_without_content(rows[0]).version if rows else 1
    if len(shown) < len(rows) and newest > 1:  # only the newest one may not be there yet
        return list_versions(resources, space, key, limit=limit, before=newest)
    if not shown and before is None:
        raise NotFound(f"There is no {key.model} {key.id}.")
    return [_version_without_content(row) for row in shown]


def _version_without_content(row: dict[str, Any]) -> DocumentVersion:
    return DocumentVersion.model_validate({**json.loads(row["data"]), "user": row.get("user", "")})


def restore_document(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    version: int,
    author: ContentAuthor,
    options: ChangeOptions | None = None,
) -> WrittenDocument:
    """Let a document say again what it said at a version. This is itself a new version.

    Args:
        resources: Of the process.
        space: The space.
        key: The document, which may be deleted.
        version: The version.
        author: Who restores it.
        options: What the change depends on.

    Raises:
        NotFound: There is no such version, or it is the mark of a deletion.
        Conflict: Its slug is another document's by now.
        ContentRefused: It breaks the rules that its model has by now.
    """
    content = read_restorable_content(resources, space, key, version)
    options = (options or ChangeOptions())._replace(
        action="restore", restored_from=version, section_models=tuple(content.parts)
    )
    return change_document(resources, space, key, author, lambda _before, _basis: content, options)
