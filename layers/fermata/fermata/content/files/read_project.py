"""Read a whole space: its models, and what its documents say."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.content.built_in_models import BUILT_IN_MODELS, VOCABULARY_MODEL
from fermata.content.content_model import META_MODEL, ContentModel, ModelKind
from fermata.content.content_space import ContentSpace, SpaceKey, read_space
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_rows import head_sort_key
from fermata.content.documents.read_document import (
    MAX_BATCH_KEYS,
    ModelState,
    model_state_from_item,
    read_versions_at_once,
)
from fermata.content.documents.review_workflow import PROJECT_MODEL_ID
from fermata.content.documents.staged_rows import MARK_ATTRIBUTES, show_rows
from fermata.content.files.project_files import ContentProject
from fermata.content.files.space_snapshot import MIN_SNAPSHOT_DOCUMENTS, read_space_snapshot, store_space_snapshot
from fermata.content.files.whole_space import ModelMark, WholeSpace
from fermata.domain.errors import PayloadTooLarge

PROJECT_MODEL = ContentModel(id=PROJECT_MODEL_ID, kind=ModelKind.SINGLETON, title="Project", built_in=True)
"""Holds the settings of a project: `config`, `context` and `emptyFiles`, which only files say."""
VOCABULARY_KEY = DocumentKey(VOCABULARY_MODEL.id, SINGLETON_ID)
HIDDEN_MODELS = frozenset({PROJECT_MODEL.id, VOCABULARY_MODEL.id})
"""Models of which no file is made, because their documents are files of their own."""
MAX_PROJECT_DOCUMENTS = 20_000
CONFIG_VERSION = 1
CACHED_SPACE_SECONDS = 600
MAX_STEADY_READS = 4
MAX_PARALLEL_READS = 4
_BUILT_IN = {model.id: model for model in BUILT_IN_MODELS}


def read_whole_space(resources: Resources, space: SpaceKey) -> WholeSpace:
    """Read a space with all of its models and documents.

    Args:
        resources: Of the process.
        space: The space.

    Raises:
        NotFound: There is no such space.
        PayloadTooLarge: It has more than `MAX_PROJECT_DOCUMENTS` documents.
    """
    record = read_space(resources, space)
    return _read_until_steady(resources, space, _read_anew(resources, space, record))


def read_cached_space(resources: Resources, space: SpaceKey) -> WholeSpace:
    """Return a space as it is now. Of what this process has read before, only what has changed since is read again.

    Each write of a document changes the head of its model, too. So two small requests tell that nothing has changed,
    and of a space in which something has, the heads of the models concerned are read, and the documents that differ.
    A process that begins takes the snapshot of another one, and reads what has changed since that.

    Args:
        resources: Of the process.
        space: The space.

    Raises:
        NotFound: There is no such space.
        PayloadTooLarge: It has more than `MAX_PROJECT_DOCUMENTS` documents.
    """
    known: WholeSpace | None = resources.cache.get_value(("whole space", space))
    record = read_space(resources, space)
    if known is None or known.record.created_at != record.created_at:
        # One that was erased, and made anew under its name, counts from one again: its marks tell nothing.
        found = _read_with_snapshot(resources, space, record)
    else:
        found = _read_until_steady(resources, space, replace(known, record=record))
        if (found.marks, found.record) == (known.marks, known.record):
            return known
    resources.cache.put_value(("whole space", space), CACHED_SPACE_SECONDS, found)
    return found


def _read_with_snapshot(resources: Resources, space: SpaceKey, record: ContentSpace) -> WholeSpace:
    """Read a space from its snapshot and what has changed since. Store another one where that was much."""
    snapshot = read_space_snapshot(resources, space, record)
    begun = _read_anew(resources, space, record) if snapshot is None else snapshot
    found = _read_until_steady(resources, space, begun)
    known = snapshot.versions if snapshot else {}
    read = sum(known.get(key) is not version for key, version in found.versions.items())
    if read >= max(MIN_SNAPSHOT_DOCUMENTS, len(found.versions) // 10):
        store_space_snapshot(resources, space, found)
    return found


def _read_anew(resources: Resources, space: SpaceKey, record: ContentSpace) -> WholeSpace:
    # The marks are read first: what changes behind them is read again.
    marks = _read_marks(resources, space)
    return _refresh(resources, space, record, read_all_heads(resources, space), WholeSpace(record), marks)


def _read_until_steady(resources: Resources, space: SpaceKey, found: WholeSpace) -> WholeSpace:
    """Read what has changed since a space was read, so that its documents are those of one moment.

    Where others write all the time, the last reading counts.
    """
    for _ in range(MAX_STEADY_READS):
        marks = _read_marks(resources, space)
        if marks == found.marks:
            break
        heads = _read_changed_heads(resources, space, found, marks)
        found = _refresh(resources, space, found.record, heads, found, marks)
    return found


def _read_marks(resources: Resources, space: SpaceKey) -> dict[str, ModelMark]:
    """Return for each model what changes whenever it or one of its documents does."""
    prefix, names = f"d#{META_MODEL}#", ("sk", "version", "documents", "changes", *MARK_ATTRIBUTES)
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", attributes=names
    )
    return {
        row["sk"].removeprefix(prefix): ModelMark(row["version"], row.get("documents", 0), row.get("changes", 0))
        for row in show_rows(resources, space, rows)
    }


def _read_changed_heads(
    resources: Resources, space: SpaceKey, known: WholeSpace, marks: Mapping[str, ModelMark]
) -> dict[DocumentKey, Item]:
    """Return the heads of all documents: those of models that have not changed as they are known."""
    changed = {name for name, mark in marks.items() if known.marks.get(name) != mark}
    heads: dict[DocumentKey, Item] = {
        key: {"version": version.version}
        for key, version in known.versions.items()
        if key.model in marks and key.model not in changed
    }
    table = resources.settings.content_table
    model_keys = [DocumentKey(META_MODEL, name) for name in marks]
    for start in range(0, len(model_keys), MAX_BATCH_KEYS):
        part = model_keys[start : start + MAX_BATCH_KEYS]
        rows = resources.tables.batch_get_items(table, [(space.pk, head_sort_key(key)) for key in part])
        heads |= _index_heads(show_rows(resources, space, rows.values()))
    for name in changed:
        prefix, names = f"d#{name}#", ("sk", "version", *MARK_ATTRIBUTES)
        found = resources.tables.query_items(
            table, space.pk, min_sk=prefix, max_sk=f"{prefix}~", attributes=names, limit=MAX_PROJECT_DOCUMENTS + 1
        )
        heads |= _index_heads(show_rows(resources, space, found))
    _check_count(heads)
    return heads


def _index_heads(rows: Sequence[Item]) -> dict[DocumentKey, Item]:
    return {DocumentKey(*row["sk"].split("#", 2)[1:]): row for row in rows}


def _refresh(
    resources: Resources,
    space: SpaceKey,
    record: ContentSpace,
    heads: dict[DocumentKey, Item],
    known: WholeSpace,
    marks: Mapping[str, ModelMark],
) -> WholeSpace:
    models: dict[str, ModelState] = {}
    versions: dict[DocumentKey, DocumentVersion] = {}
    for key, head in heads.items():
        version = known.versions.get(key)
        if key.model == META_MODEL:
            state = known.models.get(key.id)
            is_same = state and (state.version, state.documents) == (head["version"], head.get("documents", 0))
            models[key.id] = state if state and is_same else model_state_from_item(head)
        elif version is not None and version.version == head["version"]:
            versions[key] = version
    changed = [
        (key, int(head["version"])) for key, head in heads.items() if key.model != META_MODEL and key not in versions
    ]
    versions |= _read_versions(resources, space, changed)
    return WholeSpace(record, models, {key: versions[key] for key in sorted(versions)}, dict(marks))


def _read_versions(
    resources: Resources, space: SpaceKey, wanted: Sequence[tuple[DocumentKey, int]]
) -> dict[DocumentKey, DocumentVersion]:
    """Read versions, several hundred at a time: meanwhile the answers of before are parsed (decision 0675)."""

    def read_batch(start: int) -> dict[tuple[DocumentKey, int], DocumentVersion]:
        return read_versions_at_once(resources, space, wanted[start : start + MAX_BATCH_KEYS])

    starts = range(0, len(wanted), MAX_BATCH_KEYS)
    is_many = len(starts) > 1
    found = (
        resources.clock.map_in_threads(read_batch, starts, MAX_PARALLEL_READS) if is_many else map(read_batch, starts)
    )
    return {key: version for batch in found for (key, _), version in batch.items()}


def read_all_heads(resources: Resources, space: SpaceKey) -> dict[DocumentKey, Item]:
    """Return which version of each document of a space is current, and what is stored of its models.

    Raises:
        PayloadTooLarge: They are more than `MAX_PROJECT_DOCUMENTS`.
    """
    names = ("sk", "version", "documents", "definition", *MARK_ATTRIBUTES)
    rows = resources.tables.query_items(
        resources.settings.content_table,
        space.pk,
        min_sk="d#",
        max_sk="d#~",
        limit=MAX_PROJECT_DOCUMENTS + 1,
        attributes=names,
    )
    _check_count(rows)
    return _index_heads(show_rows(resources, space, rows))


def _check_count(heads: Sized) -> None:
    if len(heads) > MAX_PROJECT_DOCUMENTS:
        raise PayloadTooLarge(f"This works for spaces of up to {MAX_PROJECT_DOCUMENTS} documents.")


def make_project(whole: WholeSpace) -> ContentProject:
    """Return a space as a project. Built-in models that nobody uses or has changed are left out."""
    models = {
        model_id: state.model
        for model_id, state in whole.models.items()
        if model_id not in HIDDEN_MODELS and (state.documents or state.model != _BUILT_IN.get(model_id))
    }
    documents = {
        key: version.content
        for key, version in whole.versions.items()
        if key.model in models and version.content is not None
    }
    settings = whole.settings
    return ContentProject(
        locales=whole.record.locales,
        config=settings.get("config") or _describe_space(whole.record, list(models.values())),
        context=settings.get("context"),
        models=models,
        documents=documents,
        vocabulary=whole.get_content(VOCABULARY_KEY) or DocumentContent(),
        empty_files=tuple(settings.get("emptyFiles", ())),
    )


def _describe_space(record: ContentSpace, models: Sequence[ContentModel]) -> dict[str, Any]:
    """Return the configuration of a space that was never a project of files."""
    return {
        "version": CONFIG_VERSION,
        "stack": "other",
        "workflow": "auto-merge",
        "domains": sorted({model.domain for model in models}),
        "locales": {"default": record.default_locale, "supported": list(record.locales)},
    }
