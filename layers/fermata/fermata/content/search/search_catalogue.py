"""Hold the entries of a space in the process, so that a search reads only what was indexed since the one before."""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable
from zlib import crc32

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.search.index_keys import ENTRY_PREFIX
from fermata.content.search.lexical_embedding import list_trigrams, normalize_words
from fermata.content.search.search_entry import SearchEntry

MAX_CATALOGUES = 20
"""Of spaces that a process holds at once. One of 10,000 documents takes about 20 MB."""
OVERLAP_SECONDS = 10
"""Entries of this time are read again, because clocks of writers differ and writes take time."""
_MASK_BITS = 512
_KEPT_SECONDS = 43_200
"""After this time everything is read anew: the marks of what is gone do not stay longer than a day."""


class SearchCatalogue:
    """The entries of one space."""

    def __init__(self) -> None:
        self.entries: dict[DocumentKey, SearchEntry] = {}
        self._lock = threading.Lock()
        self._read_until = 0.0
        self._loaded_at = 0.0

    def refresh(self, resources: Resources, space: SpaceKey) -> None:
        """Read what was indexed since the last time, with one request if it is little."""
        with self._lock:
            now = resources.clock.time()
            if now - self._loaded_at > _KEPT_SECONDS:
                self.entries.clear()
                self._read_until, self._loaded_at = 0.0, now
            begin = max(0, int((self._read_until - OVERLAP_SECONDS) * 1000))
            rows = resources.tables.query_items(
                resources.settings.content_table,
                space.pk,
                min_sk=f"{ENTRY_PREFIX}{begin:013d}",
                max_sk=f"{ENTRY_PREFIX}~",
            )
            for row in rows:
                self._take(row)
            self._read_until = now

    def _take(self, row: Item) -> None:
        _, _, model, document_id = row["sk"].split("#", 3)
        key = DocumentKey(model, document_id)
        before = self.entries.get(key)
        if before is not None:
            if row["sk"] <= before.place:
                return
            del self.entries[key]
        if row.get("gone"):
            return
        self.entries[key] = _parse_entry(key, row)


def _parse_entry(key: DocumentKey, row: Item) -> SearchEntry:
    data = json.loads(row["data"])
    signature = int(row["signature"], 16) if "signature" in row else None
    grams = frozenset(list_trigrams(normalize_words(f"{data['title']} {data['slug']}")))
    shown = (data["type"], data["title"], data["slug"], data["status"])
    folded = f"{' '.join(data['title'].casefold().split())}\n{data['slug']}\n{key.id.casefold()}"
    vector = (signature, row.get("vectorKey", ""), row.get("embedder", ""))
    return SearchEntry(key, row["sk"], *shown, *vector, grams, mask_grams(grams), folded)


def mask_grams(grams: Iterable[str]) -> int:
    """Return a bit for each part of a word, by which many entries are compared at once. Some share one bit."""
    mask = 0
    for gram in grams:
        mask |= 1 << (crc32(gram.encode()) % _MASK_BITS)
    return mask


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
