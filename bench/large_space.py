"""Measure a space of 10,000 documents: requests of a list and a write, and the time of a search."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench.harness import BenchHarness
from bench.report import ResultRow
from bench.stats import LatencySamples
from fermata.aws.clock import Clock
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentVersion
from fermata.content.documents.document_rows import head_sort_key, list_head_attributes
from fermata.content.documents.list_documents import list_documents
from fermata.content.model_store import create_space
from fermata.content.search.open_vector_stores import open_vector_stores
from fermata.content.search.search_catalogue import OVERLAP_SECONDS
from fermata.content.search.search_index import TextEmbedder, build_index_rows
from fermata.content.search.search_space import search_space
from fermata.content.search.vector_store import EmbeddedVersion
from local import seed

DOCUMENT_COUNT = 10_000
MAX_SEARCH_MS = 150
MAX_WRITE_REQUESTS = 3
MS_PER_SECOND = 1000
_SPACE = SpaceKey(seed.TENANT, "large")
_AUTHOR = ContentAuthor("bench")
_WORDS = ("rye", "oats", "dark", "bread", "flour", "oven", "morning", "harvest", "baker", "price", "summer", "village")
_PUTS_AT_ONCE = 99
_LISTED = 50


def measure_large_space(harness: BenchHarness, document_count: int, repetitions: int) -> Iterator[ResultRow]:
    """Yield the rows of a space of many documents.

    Args:
        harness: The running service, in whose tables they are stored.
        document_count: How many documents the space has.
        repetitions: How often a search is timed.
    """
    resources = harness.resources
    create_space(resources, _SPACE, ContentSpace(), _AUTHOR)
    title = _store_documents(resources, document_count)
    yield _measure_list(resources, document_count)
    yield _measure_write(resources)
    yield _measure_search(resources, document_count, title, repetitions)


def _store_documents(resources: Resources, count: int) -> str:
    """Store heads and entries of the index, which is all that lists and searches read. Return the last title."""
    chosen = random.Random(14)
    rows: list[dict[str, Any]] = []
    earlier = Resources(resources.settings, _EarlierClock())
    embedder, (store,) = TextEmbedder(), open_vector_stores(resources)
    for number in range(count):
        title = f"{' '.join(chosen.sample(_WORDS, 4))} {number}"
        version = _make_version(f"d{number:05d}", title)
        rows.append({"pk": _SPACE.pk, "sk": head_sort_key(version.key), "v": 1, **list_head_attributes(version)})
        embedded = EmbeddedVersion(version, embedder.embed([title])[0])
        (placed,) = store.place_vectors(_SPACE, [embedded], embedder.name)
        rows += build_index_rows(earlier, _SPACE, version, {}, placed)
    for start in range(0, len(rows), _PUTS_AT_ONCE):
        table = resources.settings.content_table
        resources.tables.write_items(*(Put(table, row) for row in rows[start : start + _PUTS_AT_ONCE]))
    return title


def _make_version(document: str, title: str) -> DocumentVersion:
    at = "2026-11-29T00:00:00.000Z"
    content = DocumentContent(title=title, slug=document)
    return DocumentVersion(model="post", id=document, version=1, action="create", at=at, created_at=at, content=content)


class _EarlierClock(Clock):
    """A clock that is late, so that documents were indexed a while ago: each search reads again what is new."""

    def time(self) -> float:
        return super().time() - 2 * OVERLAP_SECONDS


class _CountedRequests:
    """Counts the requests of a client while it is watched."""

    def __init__(self, resources: Resources) -> None:
        self.count: Counter[str] = Counter()
        events = resources.tables._client.meta.events
        events.register("before-call.dynamodb", lambda model, **_: self.count.update([model.name]))

    def take(self) -> int:
        total = self.count.total()
        self.count.clear()
        return total


def _measure_list(resources: Resources, count: int) -> ResultRow:
    requests = _CountedRequests(resources)
    counts: list[int] = []
    for after in ("", f"d{count // 2:05d}", f"d{count - _LISTED:05d}"):
        list_documents(resources, _SPACE, "post", limit=_LISTED, after=after)
        counts.append(requests.take())
    return ResultRow(
        "content.list",
        f"requests of a page of {count:,} documents: first, middle, last",
        "1 each",
        ", ".join(map(str, counts)),
        counts == [1, 1, 1],
    )


def _measure_write(resources: Resources) -> ResultRow:
    requests = _CountedRequests(resources)
    content = DocumentContent(title="New", slug="new-post")
    create_document(resources, _SPACE, "post", _AUTHOR, content, effect_key="bench/1")
    count = requests.take()
    return ResultRow(
        "content.write",
        "requests of a write of a document",
        f"≤ {MAX_WRITE_REQUESTS}",
        f"{count}",
        count <= MAX_WRITE_REQUESTS,
    )


def _measure_search(resources: Resources, count: int, title: str, repetitions: int) -> ResultRow:
    misspelled = title[1] + title[0] + title[2:]
    queries = ("rye bread", misspelled, "summer price")
    samples = LatencySamples.from_samples(list(_time_searches(resources, queries, repetitions)))
    return ResultRow(
        "content.search",
        f"a hybrid search over {count:,} documents",
        f"≤ {MAX_SEARCH_MS} ms p50",
        f"{samples.p50:.1f} p50, {samples.p95:.1f} p95 ms",
        samples.p50 <= MAX_SEARCH_MS,
        samples.to_json(),
    )


def _time_searches(resources: Resources, queries: Sequence[str], repetitions: int) -> Iterator[float]:
    """Yield the milliseconds of warm searches. The first one reads the index whole."""
    embedder = TextEmbedder()
    search_space(resources, _SPACE, queries[0], embedder)
    for number in range(max(3, repetitions)):
        started = time.perf_counter()
        found = search_space(resources, _SPACE, queries[number % len(queries)], embedder)
        yield (time.perf_counter() - started) * MS_PER_SECOND
        if not found:
            raise RuntimeError(f"Nothing was found for {json.dumps(queries[number % len(queries)])}.")
