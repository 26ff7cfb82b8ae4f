"""Hold the entries of a space in the process, so that a search reads only what was indexed since the one before."""

import json
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.search.lexical_embedding import list_trigrams, normalize_words
from fermata.content.search.search_index import ENTRY_PREFIX
from fermata.content.search.searchable_text import SearchType

MAX_CATALOGUES = 20
"""Of spaces that a process holds at once. One of 10,000 documents takes about 20 MB."""
_OVERLAP_SECONDS = 60
"""Entries of this time are read again, because clocks of writers differ and writes take time."""
_KEPT_SECONDS = 43_200
"""After this time everything is read anew: the marks of what is gone do not stay longer than a day."""


class SearchEntry(NamedTuple):
    """What a search knows of a document without reading it."""

    key: DocumentKey
    place: str
    type: SearchType
    title: str
    slug: str
    status: str
    signature: int | None
    embedder: str
    grams: frozenset[str]


class SearchCatalogue:
    """The entries of one space."""

    def __init__(self) -> None:
        self.entries: dict[DocumentKey, SearchEntry] = {}
        self._keys_by_gram: defaultdict[str, set[DocumentKey]] = defaultdict(set)
        self._lock = threading.Lock()
        self._read_until = 0.0
        self._loaded_at = 0.0

    def refresh(self, resources: Resources, space: SpaceKey) -> None:
        """Read what was indexed since the last time, with one request if it is little."""
        with self._lock:
            now = resources.clock.time()
            if now - self._loaded_at > _KEPT_SECONDS:
                self.entries.clear()
                self._keys_by_gram.clear()
                self._read_until, self._loaded_at = 0.0, now
            begin = max(0, int((self._read_until - _OVERLAP_SECONDS) * 1000))
            rows = resources.tables.query_items(
                resources.settings.content_table,
                space.pk,
                min_sk=f"{ENTRY_PREFIX}{begin:013d}",
                max_sk=f"{ENTRY_PREFIX}~",
            )
            for row in rows:
                self._take(row)
            self._read_until = now

    def count_shared_grams(self, grams: Iterable[str]) -> Counter[DocumentKey]:
        """Return how many parts of words each document's title and slug have of these."""
        counts: Counter[DocumentKey] = Counter()
        for gram in grams:
            counts.update(self._keys_by_gram.get(gram, ()))
        return counts

    def _take(self, row: Item) -> None:
        _, _, model, document_id = row["sk"].split("#", 3)
        key = DocumentKey(model, document_id)
        before = self.entries.get(key)
        if before is not None:
            if row["sk"] <= before.place:
                return
            for gram in before.grams:
                self._keys_by_gram[gram].discard(key)
            del self.entries[key]
        if row.get("gone"):
            return
        entry = self.entries[key] = _parse_entry(key, row)
        for gram in entry.grams:
            self._keys_by_gram[gram].add(key)


def _parse_entry(key: DocumentKey, row: Item) -> SearchEntry:
    data = json.loads(row["data"])
    signature = int(row["signature"], 16) if "signature" in row else None
    grams = frozenset(list_trigrams(normalize_words(f"{data['title']} {data['slug']}")))
    shown = (data["type"], data["title"], data["slug"], data["status"])
    return SearchEntry(key, row["sk"], *shown, signature, row.get("embedder", ""), grams)


_catalogues: OrderedDict[tuple[str, SpaceKey], SearchCatalogue] = OrderedDict()
_catalogues_lock = threading.Lock()


def open_catalogue(resources: Resources, space: SpaceKey) -> SearchCatalogue:
    """Return the entries of a space as they are now.

    Args:
        resources: Of the process.
        space: The space, whose partition is the only one that is read.
    """
    name = (resources.settings.content_table, space)
    with _catalogues_lock:
        catalogue = _catalogues.pop(name, None) or SearchCatalogue()
        _catalogues[name] = catalogue
        if len(_catalogues) > MAX_CATALOGUES:
            _catalogues.popitem(last=False)
    catalogue.refresh(resources, space)
    return catalogue


def forget_catalogues() -> None:
    """Forget what the process has read, as a new process would."""
    with _catalogues_lock:
        _catalogues.clear()
