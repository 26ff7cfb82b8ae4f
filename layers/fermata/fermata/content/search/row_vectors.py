"""Keep vectors in the rows of the index, and find near ones by their signatures (decision 0461)."""

import heapq
from collections.abc import Sequence

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.search.index_keys import pointer_sort_key
from fermata.content.search.packed_vector import compare_directions, pack_vector, unpack_numbers
from fermata.content.search.search_entry import SearchEntry
from fermata.content.search.vector_store import NEAREST_DOCUMENTS, EmbeddedVersion, MeaningQuery, PlacedVector


class RowVectors:
    """The vectors of documents in their own rows, which go with them."""

    name = "rows"

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def place_vectors(
        self, _space: SpaceKey, embedded: Sequence[EmbeddedVersion], embedder: str
    ) -> Sequence[PlacedVector]:
        """Return what the rows hold: the signature in the entry, the numbers in the pointer."""
        return [_place_in_rows(one, embedder) for one in embedded]

    def drop_vectors(self, _space: SpaceKey, _keys: Sequence[str]) -> None:
        """Do nothing: vectors go with their rows."""

    def find_meanings(self, query: MeaningQuery, entries: Sequence[SearchEntry]) -> dict[DocumentKey, float]:
        """Compare the vectors of the documents whose signatures have the fewest other bits than that of the query.

        One request reads them.
        """
        packed = pack_vector(query.vector)
        signed = [entry for entry in entries if entry.signature is not None and entry.embedder == query.embedder]
        if packed is None or not signed:
            return {}
        other_bits = [((entry.signature or 0) ^ packed.signature).bit_count() for entry in signed]
        places = heapq.nsmallest(NEAREST_DOCUMENTS, range(len(signed)), key=other_bits.__getitem__)
        keys = {(query.space.pk, pointer_sort_key(signed[place].key)): signed[place].key for place in places}
        rows = self._resources.tables.batch_get_items(self._resources.settings.content_table, list(keys))
        return {
            keys[place]: compare_directions(packed.numbers, unpack_numbers(row.get("vector", "")))
            for place, row in rows.items()
            if row["embedder"] == query.embedder
        }


def _place_in_rows(embedded: EmbeddedVersion, embedder: str) -> PlacedVector:
    packed = pack_vector(embedded.vector)
    pointer = {"embedder": embedder, "store": RowVectors.name, "vector": packed.to_text() if packed else ""}
    return PlacedVector({"signature": f"{packed.signature:x}", "embedder": embedder} if packed else {}, pointer)
