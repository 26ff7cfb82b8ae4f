"""Hold what a search knows of a document without reading it."""

from typing import NamedTuple

from fermata.content.documents.document import DocumentKey
from fermata.content.search.searchable_text import SearchType


class SearchEntry(NamedTuple):
    """A document as it was indexed."""

    key: DocumentKey
    place: str
    type: SearchType
    title: str
    slug: str
    status: str
    signature: int | None
    vector_key: str
    """Of its vector in the vector bucket; empty for a document without one there."""
    embedder: str
    grams: frozenset[str]
    gram_mask: int
    folded: str
    """Title, slug and id in the form in which they are compared, a line each."""
