"""Say what a store of vectors does, whichever it is: rows beside the index, or a vector bucket (decision 0520)."""

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.search.lexical_embedding import Vector
from fermata.content.search.search_entry import SearchEntry
from fermata.content.search.searchable_text import SearchType
from fermata.domain.value_dataclass import value_dataclass

NEAREST_DOCUMENTS = 100
"""Documents that a search compares by their meaning."""


class EmbeddedVersion(NamedTuple):
    """A version of a document and the vector of its text, which is empty for one without text or model."""

    version: DocumentVersion
    vector: Vector


@value_dataclass(frozen=True)
class PlacedVector:
    """What the rows of a document in the index say of its vector: the entry, and the pointer to it.

    Attributes:
        key: Names the vector, if the store keeps it elsewhere.
    """

    entry: dict[str, Any] = field(default_factory=dict)
    pointer: dict[str, Any] = field(default_factory=dict)
    key: str = ""


class MeaningQuery(NamedTuple):
    """What is looked for: a vector of an embedder, among entries of a space, all of these types (of any, if empty)."""

    space: SpaceKey
    vector: Vector
    embedder: str
    types: Collection[SearchType]


class VectorStore(Protocol):
    """Keeps vectors, and finds those that are near to another one."""

    name: str
    """Stored with what is indexed, so that a space is indexed anew where its vectors are somewhere else."""

    def place_vectors(
        self, space: SpaceKey, embedded: Sequence[EmbeddedVersion], embedder: str
    ) -> Sequence[PlacedVector]:
        """Keep the vectors of versions, before their rows are written. It may be done again.

        Returns:
            For each version what its rows say. A vector without direction is placed nowhere.
        """
        ...

    def drop_vectors(self, space: SpaceKey, keys: Sequence[str]) -> None:
        """Delete vectors whose rows were replaced. One that is gone stays gone."""
        ...

    def find_meanings(self, query: MeaningQuery, entries: Sequence[SearchEntry]) -> dict[DocumentKey, float]:
        """Return the nearest of the entries, each with the cosine of the angle, from 0 to 1."""
        ...
