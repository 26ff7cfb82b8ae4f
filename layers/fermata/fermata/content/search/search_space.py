"""Search a space: equal titles and slugs before parts of them, before typing errors, before what means the same.

Scores are from 0 to 1. What is equal has 1, and what contains the query has 0.9 or more. Similar spellings have less,
and so do similar meanings. A document has the best of its scores.
"""

import heapq
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.search.lexical_embedding import list_trigrams, normalize_words
from fermata.content.search.open_vector_stores import open_vector_stores
from fermata.content.search.search_catalogue import mask_grams, open_catalogue
from fermata.content.search.search_entry import SearchEntry
from fermata.content.search.search_index import TextEmbedder
from fermata.content.search.searchable_text import SearchType
from fermata.content.search.vector_store import MeaningQuery
from fermata.domain.errors import InvalidRequest

MAX_QUERY_CHARS = 500
MAX_FOUND = 50
_COMPARED_SPELLINGS = 100
_MAX_SHORT_CHARS = 60
"""Of texts that are compared letter by letter, which takes as long as the product of their lengths."""
_LEAST_EQUAL_LETTERS = 0.7
_EQUAL, _CONTAINED, _SPELLED, _MEANT = 1.0, 0.9, 0.85, 0.85
MIN_SCORE = 0.2
"""Less is no match: any two texts have some letters in common."""


class FoundDocument(NamedTuple):
    """A document that was found, and how well it matches."""

    entry: SearchEntry
    score: float

    def to_view(self) -> dict[str, object]:
        """Return the JSON form."""
        entry = self.entry
        return {
            "model": entry.key.model,
            "id": entry.key.id,
            "type": entry.type,
            "title": entry.title,
            "slug": entry.slug,
            "status": entry.status,
            "score": round(self.score, 4),
        }


def search_space(
    resources: Resources,
    space: SpaceKey,
    query: str,
    embedder: TextEmbedder | None,
    *,
    types: Collection[SearchType] = (),
    limit: int = 10,
) -> list[FoundDocument]:
    """Return the documents that match best, the best first.

    Args:
        resources: Of the process.
        space: The only space that is searched.
        query: What is looked for.
        embedder: The model with which the space is indexed; None to search titles and slugs only.
        types: Only documents of these types; all without it. They are chosen before the limit is applied.
        limit: The greatest number of documents.

    Raises:
        InvalidRequest: The query is empty or too long.
        ProviderError: The embedder failed. Nothing is returned instead.
    """
    query = query.strip()
    if not query or len(query) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"A query has 1 to {MAX_QUERY_CHARS} characters.")
    catalogue = open_catalogue(resources, space)
    chosen = [entry for entry in catalogue.entries.values() if not types or entry.type in types]
    scores = _score_spellings(chosen, query)
    if embedder is not None and chosen:
        meaning = MeaningQuery(space, embedder.embed([query])[0], embedder.name, types)
        for key, score in _score_meanings(resources, chosen, meaning).items():
            scores[key] = max(score, scores.get(key, 0.0))
    found = [FoundDocument(catalogue.entries[key], score) for key, score in scores.items() if score >= MIN_SCORE]
    return heapq.nsmallest(limit, found, key=lambda one: (-one.score, one.entry.key))


def _score_spellings(chosen: list[SearchEntry], query: str) -> dict[DocumentKey, float]:
    wanted = " ".join(query.casefold().split())
    scores = {entry.key: score for entry in chosen if wanted in entry.folded and (score := _score_part(entry, wanted))}
    grams = frozenset(list_trigrams(normalize_words(query)))
    mask = mask_grams(grams)
    matcher = _match_letters(wanted)
    shared = [(entry.gram_mask & mask).bit_count() for entry in chosen]
    for place in heapq.nlargest(_COMPARED_SPELLINGS, range(len(chosen)), key=shared.__getitem__):
        entry = chosen[place]
        if common := len(grams & entry.grams):
            alike = max(
                2 * common / (len(grams) + len(entry.grams)), _compare_short_texts(entry, matcher) if matcher else 0.0
            )
            scores[entry.key] = max(scores.get(entry.key, 0.0), _SPELLED * alike)
    return scores


def _score_part(entry: SearchEntry, wanted: str) -> float:
    """Return the score of an entry whose title, slug or id contains the query; 0 if it is only a part of its id."""
    title, slug, document = entry.folded.split("\n", 2)
    if wanted in (title, slug, document):
        return _EQUAL
    containing = [text for text in (title, slug) if wanted in text]
    return _CONTAINED + (_EQUAL - _CONTAINED) * 0.99 * len(wanted) / len(containing[0]) if containing else 0.0


def _match_letters(wanted: str) -> SequenceMatcher[str] | None:
    """Return what compares short texts with a query, which it indexes once; None for a query that is no short text."""
    return SequenceMatcher(None, b=wanted, autojunk=False) if len(wanted) <= _MAX_SHORT_CHARS else None


def _compare_short_texts(entry: SearchEntry, matcher: SequenceMatcher[str]) -> float:
    return max(_compare_letters(matcher, text) for text in entry.folded.split("\n", 2)[:2])


def _compare_letters(matcher: SequenceMatcher[str], text: str) -> float:
    """Return how much of two short texts is equal and in the same order; 0 if they have little in common."""
    matcher.set_seq1(text[:_MAX_SHORT_CHARS])
    for measure in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio):  # each is a bound of the next one
        alike = measure()
        if alike < _LEAST_EQUAL_LETTERS:
            return 0.0
    return alike


def _score_meanings(
    resources: Resources, chosen: Sequence[SearchEntry], query: MeaningQuery
) -> dict[DocumentKey, float]:
    """Return the scores of the documents whose vectors are nearest to that of the query, in any store."""
    return {
        key: _MEANT * cosine
        for store in open_vector_stores(resources)
        for key, cosine in store.find_meanings(query, chosen).items()
    }
