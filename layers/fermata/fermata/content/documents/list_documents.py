"""List the documents of a model, page by page."""

from functools import partial
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import ContentStatus, DocumentHead, DocumentKey
from fermata.content.documents.document_rows import head_from_item
from fermata.content.documents.staged_rows import read_rows_together

MAX_LISTED = 200
_SCANNED_HEADS = 1000
"""Heads that are read at once while most of them do not match."""
_AFTER = "!"
"""It is smaller than every character of an id."""


class ListFilter(NamedTuple):
    """Which documents are listed. All conditions have to hold.

    Attributes:
        missing: A locale in which they say nothing.
    """

    status: ContentStatus | None = None
    category: str = ""
    missing: str = ""

    def matches(self, head: DocumentHead) -> bool:
        """Return whether a document is listed."""
        is_missing = not self.missing or self.missing not in head.locales
        return self.status in (None, head.status) and self.category in ("", head.category) and is_missing


class DocumentPage(NamedTuple):
    """A page of a list. `after` is the cursor of the next one; empty behind the last."""

    documents: tuple[DocumentHead, ...]
    after: str = ""


def list_documents(
    resources: Resources,
    space: SpaceKey,
    model: str,
    *,
    limit: int = 50,
    after: str = "",
    only: ListFilter | None = None,
) -> DocumentPage:
    """Return documents of a model in the order of their ids, which is that of their creation.

    Only heads are read, so that a page costs as much in a model of 10,000 documents as in one of 50.

    Args:
        resources: Of the process.
        space: The space.
        model: The id of the model.
        limit: The greatest number of documents.
        after: The cursor of the page before.
        only: Which documents are listed; all without it.
    """
    DocumentKey(model, after or "any").check()
    found: list[DocumentHead] = []
    scanned = _SCANNED_HEADS if only and only != ListFilter() else limit + 1
    while len(found) <= limit:
        begin = f"d#{model}#{after}{_AFTER}" if after else f"d#{model}#"
        query = partial(
            resources.tables.query_items,
            resources.settings.content_table,
            space.pk,
            min_sk=begin,
            max_sk=f"d#{model}#~",
            limit=scanned,
        )
        rows, shown = read_rows_together(resources, space, query)
        heads = [head_from_item(row) for row in shown]
        found += [head for head in heads if only is None or only.matches(head)]
        if len(rows) < scanned:
            break
        after = rows[-1]["sk"].rpartition("#")[2]
    return DocumentPage(tuple(found[:limit]), found[limit - 1].id if len(found) > limit else "")
