"""Keep vectors in an S3 vector bucket (decision 0520).

The key of a vector names its space, document, version and embedder, and its dimensions last. So the entry of a document
says which of its vectors counts, and what a process has left behind that died, or was too late, is never found.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Sequence

from fermata.aws.resources import Resources
from fermata.aws.vector_bucket import KeyedVector, NearVector, VectorBucket, VectorIndexGone
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.search.lexical_embedding import Vector
from fermata.content.search.packed_vector import MAX_DIMENSIONS
from fermata.content.search.search_entry import SearchEntry
from fermata.content.search.searchable_text import get_search_type
from fermata.content.search.vector_store import NEAREST_DOCUMENTS, EmbeddedVersion, MeaningQuery, PlacedVector
from fermata.domain.errors import ServiceUnavailable

_INDEX_GONE_WORDS = (
    "The vectors of this space are gone. Somebody who manages it has to index it again, also what is indexed already: "
    "`fermata content reindex {space} --again`, or POST content-index/{space} with `again`."
)
_CHECKED_VECTORS = 10
"""How many vectors that a query has not found are looked for by their keys. Those that were indexed first are."""


class BucketVectors:
    """The vectors of documents in the vector bucket of the deployment."""

    name = "bucket"

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @property
    def _bucket(self) -> VectorBucket:
        return self._resources.vector_bucket

    def place_vectors(
        self, space: SpaceKey, embedded: Sequence[EmbeddedVersion], embedder: str
    ) -> Sequence[PlacedVector]:
        """Store the vectors, with one request for all of one number of dimensions."""
        by_dimensions: dict[int, list[KeyedVector]] = defaultdict(list)
        pointer, placed = {"embedder": embedder, "store": self.name}, []
        for version, vector in embedded:
            key = ""
            if numbers := scale_to_one(vector):
                key = build_vector_key(space, version, embedder, len(numbers))
                attributes = {"space": space.pk, "embedder": embedder, "type": get_search_type(version)}
                by_dimensions[len(numbers)].append(KeyedVector(key, numbers, attributes))
            named = {"vectorKey": key} if key else {}
            placed.append(PlacedVector(named and {"embedder": embedder} | named, pointer | named, key))
        for vectors in by_dimensions.values():
            self._bucket.put_vectors(space.tenant, vectors)
        return placed

    def drop_vectors(self, space: SpaceKey, keys: Sequence[str]) -> None:
        """Delete vectors, with one request for all of one number of dimensions."""
        by_dimensions: dict[int, list[str]] = defaultdict(list)
        for key in dict.fromkeys(keys):
            by_dimensions[int(key.rpartition("#")[2])].append(key)
        for dimensions, part in by_dimensions.items():
            self._bucket.delete_vectors(space.tenant, dimensions, part)

    def find_meanings(self, query: MeaningQuery, entries: Sequence[SearchEntry]) -> dict[DocumentKey, float]:
        """Ask the bucket for the nearest vectors of the space, and keep those that entries name."""
        numbers = scale_to_one(query.vector)
        known = {entry.vector_key: entry.key for entry in entries if entry.embedder == query.embedder}
        known.pop("", None)
        if not numbers or not known:
            return {}
        selection = {"space": [query.space.pk], "embedder": [query.embedder]}
        if query.types:
            selection["type"] = sorted(query.types)
        try:
            near = self._bucket.find_nearest(query.space.tenant, numbers, selection, NEAREST_DOCUMENTS)
            self._check_most_are_there(query.space, near, known, len(numbers))
        except VectorIndexGone as error:  # nothing of it is found by meaning, which nobody should take for an answer
            raise ServiceUnavailable(_INDEX_GONE_WORDS.format(space=query.space.name)) from error
        return {known[one.key]: one.cosine for one in near if one.key in known}

    def _check_most_are_there(
        self, space: SpaceKey, near: Sequence[NearVector], known: Collection[str], dimensions: int
    ) -> None:
        """Tell an index that a change has created anew, after all vectors were gone, from one of which S3 misses some.

        Raises:
            VectorIndexGone: Most vectors were not found, and none of those that are looked for is there.
        """
        found = {one.key for one in near}
        unseen = [key for key in known if key not in found and key.endswith(f"#{dimensions}")]
        if len(near) >= NEAREST_DOCUMENTS or len(unseen) <= len(near):
            return
        if not self._bucket.find_stored_keys(space.tenant, dimensions, unseen[:_CHECKED_VECTORS]):
            raise VectorIndexGone("The vector index has only what was indexed since it was deleted.")


def build_vector_key(space: SpaceKey, version: DocumentVersion, embedder: str, dimensions: int) -> str:
    """Return the key of a version's vector. It is the same for the same version and embedder."""
    digest = hashlib.sha256(embedder.encode()).hexdigest()[:16]
    return f"{build_vector_key_prefix(space)}{version.model}#{version.id}#{version.version}#{digest}#{dimensions}"


def build_vector_key_prefix(space: SpaceKey) -> str:
    """Return how the keys of a space's vectors begin, and of no other's."""
    return f"{space.pk}#"


def scale_to_one(vector: Vector) -> Vector:
    """Return a vector of length 1 with the same direction; an empty one if it has none or too many dimensions.

    S3 refuses vectors of zeros, and numbers that 32 bits cannot hold.
    """
    length = math.hypot(*vector) if len(vector) <= MAX_DIMENSIONS else 0.0
    return [value / length for value in vector] if 0 < length < math.inf else []
