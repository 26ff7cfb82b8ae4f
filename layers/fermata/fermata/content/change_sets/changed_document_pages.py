"""Read what a change set changes page by page: each document beside the version that it has begun with."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import (
    ChangedDocument,
    changed_document_from_item,
    changed_documents_prefix,
)
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import read_versions_at_once
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass

MAX_CHANGED_LISTED = 100
"""Documents of a page, whose former versions are read with one request."""
_MAX_PAGE_BYTES = 3_000_000
"""Of what the documents of a page and their former versions say, as JSON: a response stays below the 6 MB of Lambda."""
_AFTER = "!"
"""It is smaller than every character of an id."""


@value_dataclass(frozen=True)
class ChangedDocumentPage:
    """A page of the documents of a change set.

    Attributes:
        bases: The versions with which documents have begun. One that is new has none.
        after: The cursor of the next page; empty behind the last.
    """

    documents: tuple[ChangedDocument, ...]
    bases: Mapping[DocumentKey, DocumentVersion] = field(default_factory=dict)
    after: str = ""


def read_changed_documents(
    resources: Resources,
    space: SpaceKey,
    change_set_id: str,
    *,
    limit: int | None,
    after: str = "",
    model: str = "",
    has_bases: bool = True,
) -> ChangedDocumentPage:
    """Return a page of the documents of an open change set, by model and id.

    A page ends early where its documents or their former versions are large, and has one document at least.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set.
        limit: The greatest number of documents; None for as many as one response holds.
        after: The cursor of the page before: `model/id` of its last document.
        model: Only documents of it; empty for all.
        has_bases: Whether the former versions are read, too.

    Raises:
        InvalidRequest: The cursor or the model is none.
    """
    prefix = changed_documents_prefix(change_set_id)
    narrow = f"{prefix}{_check_model(model)}#" if model else prefix
    begin = max(narrow, f"{prefix}{_parse_cursor(after)}{_AFTER}" if after else "")
    end = f"{narrow}~"
    if begin > end:
        return ChangedDocumentPage(())  # the cursor is of a model behind this one
    more = None if limit is None else limit + 1
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=begin, max_sk=end, limit=more
    )
    unpacked = (changed_document_from_item(resources, row) for row in rows[:limit])
    documents = list(_iter_fitting(unpacked))
    bases = _read_bases(resources, space, documents) if has_bases else {}
    shown = list(_iter_fitting(documents, bases))
    has_more = len(shown) < len(rows)
    after = f"{shown[-1].model}/{shown[-1].id}" if has_more else ""
    return ChangedDocumentPage(tuple(shown), bases, after)


def _iter_fitting(
    documents: Iterable[ChangedDocument], bases: Mapping[DocumentKey, DocumentVersion] = MappingProxyType({})
) -> Iterator[ChangedDocument]:
    """Yield the first of the documents that fit into a response, with their former versions; one at least."""
    size = 0
    for position, one in enumerate(documents):
        size += sum(_measure_json(said.content) for said in (one, bases.get(one.key)) if said)
        if position and size > _MAX_PAGE_BYTES:
            return
        yield one


def _measure_json(content: DocumentContent | None) -> int:
    """Return how long a content is as JSON with escapes, of which a response has fewer (decision 0685)."""
    return len(json.dumps(content.model_dump(mode="json"))) if content else 0


def count_changed_models(resources: Resources, space: SpaceKey, change_set_id: str) -> dict[str, int]:
    """Return how many documents of each model an open change set changes, by the ids of models.

    Args:
        resources: Of the process.
        space: The space.
        change_set_id: The change set, which is there.
    """
    prefix = changed_documents_prefix(change_set_id)
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", attributes=("sk",)
    )
    return dict(sorted(Counter(row["sk"].split("#", 3)[2] for row in rows).items()))


def _read_bases(
    resources: Resources, space: SpaceKey, documents: list[ChangedDocument]
) -> dict[DocumentKey, DocumentVersion]:
    wanted = [(one.key, one.base_version) for one in documents]
    return {key: version for (key, _), version in read_versions_at_once(resources, space, wanted).items()}


def _check_model(model: str) -> str:
    DocumentKey(model, "any").check()
    return model


def _parse_cursor(cursor: str) -> str:
    model, separator, document_id = cursor.partition("/")
    if not separator:
        raise InvalidRequest("'cursor' must be the 'nextCursor' of a page of this change set.")
    DocumentKey(model, document_id).check()
    return f"{model}#{document_id}"
