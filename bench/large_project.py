"""Measure a project of 5,000 entries: its checks, its files, its import and export, its cache, and a merge."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import BenchHarness
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.files.canonical_json import format_canonical_json
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.project_files import FileTree, format_project_files
from fermata.content.files.read_project import make_project, read_cached_space, read_whole_space
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space
from fermata.content.validation.validate_document import validate_document
from local import seed

ENTRY_COUNT, VALIDATED_COUNT, MERGED_COUNT = 5_000, 1_000, 100
MAX_VALIDATION_MS, MAX_BUILT_MS, MAX_WARM_MS, MAX_MERGE_MS = 1000, 2000, 50, 1000
_AUTHOR = ContentAuthor("bench")
_LOCALES = ("en", "tr")
_FIELDS: dict[str, Any] = {
    "title": {"type": "string", "required": True, "max": 120},
    "body": {"type": "markdown", "required": True},
    "link": {"type": "url"},
    "contact": {"type": "email"},
    "price": {"type": "decimal", "min": 0},
    "stock": {"type": "integer", "min": 0},
    "day": {"type": "date"},
    "kind": {"type": "select", "options": ["bread", "cake"]},
    "tags": {"type": "array", "items": "string"},
    "colour": {"type": "color"},
}


def write_project_files(count: int) -> FileTree:
    """Return the files of a project with so many entries of a model with ten fields, in two languages."""
    model = {"id": "loaf", "kind": "collection", "name": "Loaves", "domain": "shop", "i18n": True}
    config = {
        "domains": ["shop"],
        "locales": {"default": _LOCALES[0], "supported": list(_LOCALES)},
        "stack": "other",
        "version": 1,
        "workflow": "auto-merge",
    }
    files: dict[str, Any] = {
        ".contentrain/config.json": config,
        ".contentrain/models/loaf.json": model | {"fields": _FIELDS, "title_field": "title"},
    }
    record = {"source": "human", "status": "draft", "updated_by": "ada@example.com"}
    for locale in _LOCALES:
        entries = {f"loaf-{number:05d}": _make_entry(number, locale) for number in range(count)}
        files[f".contentrain/content/shop/loaf/{locale}.json"] = entries
        files[f".contentrain/meta/loaf/{locale}.json"] = dict.fromkeys(entries, record)
    return {path: format_canonical_json(value) for path, value in files.items()}


def _make_entry(number: int, locale: str) -> dict[str, Any]:
    return {
        "title": f"Loaf {number} ({locale})",
        "body": f"A **dark** loaf of rye, number {number}. " * 4,
        "link": f"https://bakery.example/{locale}/loaf-{number}",
        "contact": "ada@bakery.example",
        "price": 3.5 + number % 10,
        "stock": number % 40,
        "day": f"2026-11-{number % 28 + 1:02d}",
        "kind": ("bread", "cake")[number % 2],
        "tags": ["rye", f"batch-{number % 50}"],
        "colour": "#8a5a2b",
    }


def measure_project_files(entry_count: int) -> Iterator[ResultRow]:
    """Time what needs no table: the checks of entries, and a project that is read from files and written again."""
    files = write_project_files(entry_count)
    started_ns = time.perf_counter_ns()
    project = parse_project_files(files)
    written = format_project_files(project)
    seconds = (time.perf_counter_ns() - started_ns) / NS_PER_MS / 1000
    assert len(project.documents) == entry_count
    yield _make_identity_row(
        "project.files", f"{entry_count:,} entries read from files and written", written, files, seconds
    )
    model = project.models["loaf"]
    contents = list(project.documents.values())[:VALIDATED_COUNT]
    milliseconds = min(_time(lambda: _validate_all(contents, model)) for _ in range(3))
    yield _make_time_row(
        "project.validation", f"validation of {len(contents):,} entries", milliseconds, MAX_VALIDATION_MS
    )


def measure_large_project(harness: BenchHarness, entry_count: int, repetitions: int) -> Iterator[ResultRow]:
    """Yield the rows of a project in the tables of the running service.

    Args:
        harness: The running service.
        entry_count: How many entries the project has.
        repetitions: How often what is warm is timed.
    """
    resources, space = harness.resources, SpaceKey(seed.TENANT, "project")
    create_space(resources, space, ContentSpace(), _AUTHOR)
    files = write_project_files(entry_count)
    started_ns = time.perf_counter_ns()
    write_project(resources, space, parse_project_files(files), _AUTHOR)
    exported = format_project_files(make_project(read_whole_space(resources, space)))
    seconds = (time.perf_counter_ns() - started_ns) / NS_PER_MS / 1000
    yield _make_identity_row(
        "project.import", f"{entry_count:,} entries imported and exported", exported, files, seconds
    )
    yield from _measure_cache(resources, space, entry_count, repetitions)
    yield _measure_merge(resources, space, min(MERGED_COUNT, entry_count))


def _measure_cache(resources: Resources, space: SpaceKey, entry_count: int, repetitions: int) -> Iterator[ResultRow]:
    built_ms = _time(lambda: read_cached_space(resources, space))
    yield _make_time_row("project.built", f"snapshot of {entry_count:,} entries, built", built_ms, MAX_BUILT_MS)
    warm_ms = LatencySamples.from_samples(
        _time(lambda: read_cached_space(resources, space)) for _ in range(repetitions)
    )
    yield _make_time_row("project.warm", "the same, read by a warm process (p50)", warm_ms.p50, MAX_WARM_MS)


def _measure_merge(resources: Resources, space: SpaceKey, count: int) -> ResultRow:
    change_set = begin_change_set(resources, space, "Bench", _AUTHOR)
    for number in range(count):
        key = DocumentKey("loaf", f"loaf-{number:05d}")
        change_in_change_set(resources, space, change_set.id, key, _double_price)
    merge_ms = _time(lambda: merge_change_set(resources, space, change_set.id, _AUTHOR))
    first = read_cached_space(resources, space).get_content(DocumentKey("loaf", "loaf-00000"))
    assert first is not None
    assert first.get_locale("en")["price"] == 7
    return _make_time_row("project.merge", f"merge of {count} documents", merge_ms, MAX_MERGE_MS)


def _double_price(before: DocumentVersion | None, _basis: object) -> DocumentContent:
    assert before is not None
    assert before.content is not None
    fields = before.content.get_locale("en")
    return before.content.with_fields("en", {**fields, "price": 2 * fields["price"]})


def _validate_all(contents: list[DocumentContent], model: Any) -> None:
    problems = [problem for content in contents for problem in validate_document(content, model, {}, _LOCALES)]
    assert problems == []


def _time(act: Callable[[], object]) -> float:
    started_ns = time.perf_counter_ns()
    act()
    return (time.perf_counter_ns() - started_ns) / NS_PER_MS


def _make_time_row(key: str, title: str, milliseconds: float, maximum: float) -> ResultRow:
    numbers = {"ms": round(milliseconds, 1)}
    return ResultRow(key, title, f"≤ {maximum:,} ms", f"{milliseconds:,.0f} ms", milliseconds <= maximum, numbers)


def _make_identity_row(key: str, title: str, written: FileTree, files: FileTree, seconds: float) -> ResultRow:
    is_same = written == files
    result = f"{'identical' if is_same else 'different'} ({seconds:.1f} s)"
    return ResultRow(key, title, "byte-identical", result, is_same, {"seconds": round(seconds, 2)})
