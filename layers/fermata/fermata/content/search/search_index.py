"""Keep the search index of a space: an entry for each document, in the order in which they were indexed.

Whoever has read the entries until a moment reads only newer ones (decision 0461). Vectors are in a store of their own
(decision 0520): they are stored before the rows that name them, and those that no row names are deleted afterwards.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.documents.read_document import read_newest_version
from fermata.content.search.index_keys import ENTRY_PREFIX, pointer_sort_key
from fermata.content.search.lexical_embedding import LEXICAL_MODEL, Vector, embed_lexically
from fermata.content.search.open_vector_stores import open_vector_stores
from fermata.content.search.row_vectors import RowVectors
from fermata.content.search.searchable_text import build_searchable_text, get_search_type
from fermata.content.search.vector_store import EmbeddedVersion, PlacedVector, VectorStore
from fermata.domain.errors import Conflict
from fermata.domain.value_dataclass import value_dataclass

_SETTINGS_SORT_KEY = "search-model"
_GONE_SECONDS = 86_400
"""How long an entry says that its document is gone, for whoever has read the index before."""

EmbedTexts = Callable[[Sequence[str]], list[Vector]]
"""Turns texts into vectors, all of the same model."""


@value_dataclass(frozen=True)
class TextEmbedder:
    """A model that turns texts into vectors. `name` says which: vectors of different models are never compared.

    `revision` says by which choice of the space it was opened: what a newer choice has indexed, it does not replace.
    """

    name: str = LEXICAL_MODEL
    embed: EmbedTexts = embed_lexically
    revision: int = 0


@value_dataclass(frozen=True)
class IndexSettings:
    """With which model a space is indexed: a credential and a model of the tenant; the lexical one without them.

    `revision` grows with each choice, and is 0 before the first.
    """

    credential: str = ""
    model: str = ""
    revision: int = field(default=0, compare=False)

    @property
    def embedder_name(self) -> str:
        """The name of the model."""
        return f"{self.credential}/{self.model}" if self.model else LEXICAL_MODEL


def read_index_settings(resources: Resources, space: SpaceKey) -> IndexSettings:
    """Return with which model a space is indexed."""
    row = resources.tables.get_item(resources.settings.content_table, space.pk, _SETTINGS_SORT_KEY)
    if row is None:
        return IndexSettings()
    return IndexSettings(row.get("credential", ""), row.get("model", ""), int(row.get("revision", 0)))


def set_index_settings(resources: Resources, space: SpaceKey, settings: IndexSettings) -> None:
    """Choose with which model a space is indexed from now on. All documents have to be indexed again.

    Args:
        resources: Of the process.
        space: The space.
        settings: The credential and the model.

    Raises:
        Conflict: Somebody else chooses at the same moment.
    """
    table = resources.settings.content_table
    before = resources.tables.get_item(table, space.pk, _SETTINGS_SORT_KEY)
    row = {"pk": space.pk, "sk": _SETTINGS_SORT_KEY, "v": 1, "credential": settings.credential, "model": settings.model}
    row["revision"] = int(before["revision"]) + 1 if before else 1
    condition = "revision = :before" if before else "attribute_not_exists(pk)"
    values = {":before": before["revision"]} if before else {}
    try:
        resources.tables.write_items(Put(table, row, condition=condition, values=values))
    except ConditionFailed:
        raise Conflict("Somebody else chooses the model of this space at the same moment. Look at it again.") from None


def index_documents(
    resources: Resources, space: SpaceKey, keys: Sequence[DocumentKey], embedder: TextEmbedder, *, again: bool = False
) -> int:
    """Bring the entries of documents to their newest versions. One that is current already is left alone.

    Args:
        resources: Of the process.
        space: The space.
        keys: At most 100 documents.
        embedder: Turns their texts into vectors, all of them together.
        again: Whether entries of current versions are made anew.

    Returns:
        How many entries were written.

    Raises:
        ProviderError: The embedder failed. Nothing was written.
        IndexMoved: Somebody else indexes them, or has indexed one with a model that was chosen later.
    """
    table = resources.settings.content_table
    store = open_vector_stores(resources)[0]
    pointers = resources.tables.batch_get_items(table, [(space.pk, pointer_sort_key(key)) for key in keys])
    found: list[tuple[DocumentVersion, Item]] = []
    replaced: list[str] = []
    for key in keys:
        version = read_newest_version(resources, space, key)
        pointer = pointers.get((space.pk, pointer_sort_key(key)), {})
        _check_chosen(key, pointer, embedder)
        if version and (again or not _is_current(pointer, version, embedder, store)):
            found.append((version, pointer))
        elif "replaced" in pointer:  # whoever has written the row may have died before it was deleted
            replaced.append(pointer["replaced"])
    embedded = _embed_versions([version for version, _ in found], embedder)
    placed = store.place_vectors(space, embedded, embedder.name)
    try:
        for (version, pointer), vector in zip(found, placed, strict=True):
            row = _store_entry(resources, space, version, pointer | {"chosen": embedder.revision}, vector, store)
            replaced += [row["replaced"]] if "replaced" in row else []
    finally:
        store.drop_vectors(space, replaced)
    return len(found)


def find_unindexed(
    resources: Resources, space: SpaceKey, versions: Mapping[DocumentKey, int], embedder: TextEmbedder
) -> list[DocumentKey]:
    """Return the documents of which a version, or a newer one, is not indexed yet. One request tells.

    Args:
        resources: Of the process.
        space: The space.
        versions: The version of each document, at most 100.
        embedder: With which it is to be indexed.
    """
    table, store = resources.settings.content_table, open_vector_stores(resources)[0]
    rows = resources.tables.batch_get_items(table, [(space.pk, pointer_sort_key(key)) for key in versions])
    pointers = {key: rows.get((space.pk, pointer_sort_key(key)), {}) for key in versions}
    return [
        key
        for key, pointer in pointers.items()
        if int(pointer.get("version", 0)) < versions[key]
        or not _is_with_others(pointer, embedder, store)
        or ("replaced" in pointer and int(pointer["version"]) == versions[key])
    ]


def _check_chosen(key: DocumentKey, pointer: Item, embedder: TextEmbedder) -> None:
    """Leave a document to the model with which its space is indexed since an embedder was opened."""
    if int(pointer.get("chosen", 0)) > embedder.revision:
        raise IndexMoved(f"Somebody has chosen another model and indexed {key.model}/{key.id} with it.")


def _is_with_others(pointer: Item, embedder: TextEmbedder, store: VectorStore) -> bool:
    """Return whether the vector of a document can be compared with those of others."""
    return pointer.get("embedder") == embedder.name and pointer.get("store", RowVectors.name) == store.name


def _is_current(pointer: Item, version: DocumentVersion, embedder: TextEmbedder, store: VectorStore) -> bool:
    is_indexed = int(pointer.get("version", 0)) >= version.version
    return is_indexed and (version.is_deleted or _is_with_others(pointer, embedder, store))


def _embed_versions(versions: Sequence[DocumentVersion], embedder: TextEmbedder) -> list[EmbeddedVersion]:
    texts = [build_searchable_text(version) for version in versions]
    filled = [text for text in texts if text.strip()]
    vectors = iter(embedder.embed(filled) if filled else [])
    return [
        EmbeddedVersion(version, next(vectors) if text.strip() else [])
        for version, text in zip(versions, texts, strict=True)
    ]


def _store_entry(
    resources: Resources,
    space: SpaceKey,
    version: DocumentVersion,
    pointer: Item,
    vector: PlacedVector,
    store: VectorStore,
) -> Item:
    """Replace the entry of a document. Somebody who has indexed a newer version, or is faster, wins.

    Returns:
        The row that says where the entry is.
    """
    table, key = resources.settings.content_table, version.key
    entry, row = build_index_rows(resources, space, version, pointer, vector)
    before = pointer.get("entry")
    condition = "#entry = :before" if before else "attribute_not_exists(pk)"
    values, names = ({":before": before}, {"#entry": "entry"}) if before else ({}, {})
    writes: list[Write] = [Put(table, entry), Put(table, row, condition=condition, values=values, names=names)]
    if before and before != entry["sk"]:
        writes.append(Delete(table, space.pk, before))
    try:
        resources.tables.write_items(*writes)
    except (TransactionCanceled, ConditionFailed):
        _drop_unnamed_vector(resources, space, key, vector, store)
        raise IndexMoved(f"Somebody else has indexed {key.model}/{key.id} at the same moment.") from None
    return row


def _drop_unnamed_vector(
    resources: Resources, space: SpaceKey, key: DocumentKey, vector: PlacedVector, store: VectorStore
) -> None:
    """Delete a vector whose rows were refused, unless those of somebody else name it."""
    row = resources.tables.get_item(resources.settings.content_table, space.pk, pointer_sort_key(key)) or {}
    if vector.key and row.get("vectorKey") != vector.key:
        store.drop_vectors(space, [vector.key])


def build_index_rows(
    resources: Resources, space: SpaceKey, version: DocumentVersion, pointer: Item, vector: PlacedVector
) -> tuple[Item, Item]:
    """Return the entry of a version, and the row that says where it is.

    Args:
        resources: Of the process.
        space: The space.
        version: The version, which may be the mark of a deletion.
        pointer: The row that is replaced, empty for none, and under `chosen` the revision of the embedder.
        vector: Where the vector of its text is.
    """
    entry = _build_entry(resources, space, version, pointer.get("entry", "")) | vector.entry
    row = {
        "pk": space.pk,
        "sk": pointer_sort_key(version.key),
        "v": 1,
        "version": version.version,
        "entry": entry["sk"],
        **vector.pointer,
        **({"chosen": chosen} if (chosen := pointer.get("chosen")) else {}),
    }
    former = pointer.get("vectorKey", "")
    return entry, row | ({"replaced": former} if former and former != vector.key else {})


class IndexMoved(Exception):
    """A document was indexed by somebody else meanwhile. The same call may be made again."""


def _build_entry(resources: Resources, space: SpaceKey, version: DocumentVersion, before: str) -> Item:
    """Build the entry of a version, behind the one that it replaces, also if both are made in one millisecond."""
    now = resources.clock.time()
    earliest = int(before.split("#")[1]) + 1 if before else 0
    sort_key = f"{ENTRY_PREFIX}{max(int(now * 1000), earliest):013d}#{version.model}#{version.id}"
    entry: dict[str, Any] = {"pk": space.pk, "sk": sort_key, "v": 1}
    content = version.content
    if content is None:
        return entry | {"gone": True, "ttl": int(now) + _GONE_SECONDS}
    shown = {
        "type": get_search_type(version),
        "title": content.title[:200],
        "slug": content.slug,
        "status": content.status.value,
    }
    return entry | {"data": json.dumps(shown, ensure_ascii=False)}
