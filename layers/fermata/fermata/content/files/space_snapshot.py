"""Keep what a space holds in one object of the bucket, for processes that begin (decision 0632).

    w#snapshot   which object it is, and of which tree

A snapshot is as old as it is: whoever takes it reads what has changed since. So only much that has changed makes
another one, and one that is missing costs time.
"""

import zlib
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from fermata.aws.blob_store import compress_json, encode_json
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, ItemKey, build_versioned_put
from fermata.aws.observability import log_warning
from fermata.aws.resources import Resources
from fermata.content.content_model import parse_content_model
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import DocumentVersion
from fermata.content.documents.read_document import ModelState
from fermata.content.files.whole_space import ModelMark, WholeSpace
from fermata.domain.errors import InvalidRequest

WHOLE_SPACE_SORT_KEY = "w#snapshot"
MIN_SNAPSHOT_DOCUMENTS = 500
"""Documents that a process has to read, before it stores a snapshot of them. A tenth of a large space is many, too."""
MAX_SNAPSHOT_BYTES = 64 * 1024 * 1024
"""Of its JSON, which a process holds in memory."""
_FORM = 1
"""The form of the object. One of another form is none."""


def snapshot_folder(space: SpaceKey) -> str:
    """Return the folder of the snapshots of a space."""
    return f"{space.folder}/snapshots"


def read_space_snapshot(resources: Resources, space: SpaceKey, record: ContentSpace) -> WholeSpace | None:
    """Return a space as its snapshot has it, at the moment that its marks say; None without one.

    Args:
        resources: Of the process.
        space: The space.
        record: The space as it is set up now. A snapshot of one that was erased before is none, and neither is one
            that cannot be read.
    """
    row = resources.tables.get_item_by_key(_make_key(resources, space))
    if row is None:
        return None
    try:
        return _parse(resources.blobs.find_json(row["blob"]), record)
    except (ValueError, LookupError, TypeError, zlib.error, InvalidRequest) as error:
        log_warning("content.snapshot_unreadable", space=space.name, error=type(error).__name__)
        return None


def _parse(stored: Any, record: ContentSpace) -> WholeSpace | None:
    if stored is None or (stored["form"], stored["created_at"]) != (_FORM, record.created_at):
        return None
    versions = _open_versions_adapter().validate_python(stored["versions"])
    return WholeSpace(
        record,
        {name: ModelState(parse_content_model(model), *counts) for name, model, *counts in stored["models"]},
        {version.key: version for version in versions},
        {name: ModelMark(*mark) for name, *mark in stored["marks"]},
    )


def store_space_snapshot(resources: Resources, space: SpaceKey, whole: WholeSpace) -> None:
    """Store what a space holds, without who has written it. If two processes do so at once, one of both stays.

    Args:
        resources: Of the process.
        space: The space.
        whole: What it holds.
    """
    key = _make_key(resources, space)
    before = resources.tables.get_item_by_key(key)
    try:
        text = _encode(whole)
    except PydanticSerializationError as error:
        log_warning("content.snapshot_unwritable", space=space.name, error=type(error).__name__)
        return
    if len(text) > MAX_SNAPSHOT_BYTES or (before and before["tree"] == whole.tree):
        return
    blob = resources.blobs.put_compressed_json(snapshot_folder(space), compress_json(text))
    version = before["version"] if before else None
    item = {"pk": key.pk, "sk": key.sk, "v": 1, "version": (version or 0) + 1, "tree": whole.tree, "blob": blob}
    try:
        resources.tables.write_items(build_versioned_put(key.table, item, version))
    except ConditionFailed:
        return  # the sweep deletes the object that no row names


def list_kept_snapshots(resources: Resources, space: SpaceKey) -> set[str]:
    """Return the objects of the folder that are in use."""
    row = resources.tables.get_item_by_key(_make_key(resources, space))
    return {row["blob"]} if row else set()


def _make_key(resources: Resources, space: SpaceKey) -> ItemKey:
    return ItemKey(resources.settings.content_table, space.pk, WHOLE_SPACE_SORT_KEY)


def _encode(whole: WholeSpace) -> bytes:
    """Return the JSON of a space, without the names of people: their erasure does not look into objects.

    The versions are written without being made values of Python first, which takes five times as long.

    Raises:
        PydanticSerializationError: A text has half of a character, which no door lets in.
    """
    others = {
        "form": _FORM,
        "created_at": whole.record.created_at,
        "marks": [[name, *mark] for name, mark in whole.marks.items()],
        "models": [[name, one.model.to_wire(), one.version, one.documents] for name, one in whole.models.items()],
    }
    versions = _open_versions_adapter().dump_json(
        list(whole.versions.values()), exclude_defaults=True, exclude={"__all__": {"user", "turn", "call"}}
    )
    return encode_json(others)[:-1] + b',"versions":' + versions + b"}"


@cache
def _open_versions_adapter() -> TypeAdapter[list[DocumentVersion]]:
    return TypeAdapter(list[DocumentVersion])
