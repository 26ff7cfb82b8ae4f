"""Know the files of an asset: where they are, and how large they are by what is stored (decision 0665).

People write the record of an asset by hand, by an import and in change sets. What it says of sizes is measured then.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fermata.aws.resources import Resources
from fermata.aws.uploads import MAX_UPLOAD_BYTES
from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.domain.errors import InvalidRequest

FILES_FIELD = "files"
"""The field of an asset that describes its files."""
DIGEST_FIELD = "sha256"
BOX_FIELD = "box"
"""Of a file: for which place it was drawn, by a preset of the project."""
_SIZE_FIELD = "size"
WHOLE_FILE = "original"
"""The name of the file that has all of an upload."""
FILE_DIGEST = re.compile("[0-9a-f]{64}")
MAX_ASSET_FILES = 500
"""Each is asked for when it is measured. All presets of a project have fewer than 200 sizes."""


def media_root(space: SpaceKey) -> str:
    """Return the folder of all images of a space."""
    return f"{space.folder}/media"


def media_folder(space: SpaceKey, digest: str) -> str:
    """Return the folder of the files of an upload."""
    return f"{media_root(space)}/{digest}"


def list_asset_files(content: DocumentContent | None) -> list[Mapping[str, Any]]:
    """Return the files of an asset: name, media type, size in pixels and bytes, digest. What has no name is none."""
    files = content.get_locale(DEFINITION_LOCALE).get(FILES_FIELD) if content else None
    named = (file for file in files if isinstance(file, dict)) if isinstance(files, list) else ()
    return [file for file in named if isinstance(file.get("name"), str)]


def read_file_size(file: Mapping[str, Any]) -> int:
    """Return how many bytes a file of an asset has, by its record: never more than any has."""
    size = file.get(_SIZE_FIELD)
    return min(size, MAX_UPLOAD_BYTES["media"]) if isinstance(size, int) and size > 0 else 0


def measure_assets(
    resources: Resources,
    space: SpaceKey,
    contents: Mapping[DocumentKey, tuple[DocumentContent | None, DocumentContent | None]],
) -> dict[DocumentKey, DocumentContent | None]:
    """Return documents as they are stored: the files of assets with the sizes of what is stored.

    Args:
        resources: Of the process.
        space: The space of the documents.
        contents: What each said before, and what it is to say. Only assets are measured whose files change.

    Raises:
        InvalidRequest: An asset is to have more than `MAX_ASSET_FILES`.
    """
    changed = {
        key: (before, after)
        for key, (before, after) in contents.items()
        if key.model == ASSET_MODEL.id and after is not None and _read_record(before) != _read_record(after)
    }
    for key, (_before, after) in changed.items():
        if len(list_asset_files(after)) > MAX_ASSET_FILES:
            raise InvalidRequest(f"The asset {key.id} may have at most {MAX_ASSET_FILES} files.")
    files = {key: _list_new_files(before, after) for key, (before, after) in changed.items()}
    wholes = {key: [one for one in new if one["name"] == WHOLE_FILE] for key, new in files.items()}
    sizes = _read_sizes(resources, space, changed, wholes)
    # Where the whole file is missing, as after an import from another space, the others are not looked for.
    others = {key: new for key, new in files.items() if not wholes[key] or _find_sizes(changed[key][1], sizes)}
    sizes |= _read_sizes(resources, space, changed, others)
    found: dict[DocumentKey, DocumentContent | None] = {key: after for key, (_before, after) in contents.items()}
    for key, (before, after) in changed.items():
        found[key] = after and _apply_sizes(before, after, sizes)
    return found


def measure_asset(
    resources: Resources,
    space: SpaceKey,
    key: DocumentKey,
    before: DocumentContent | None,
    after: DocumentContent | None,
) -> DocumentContent | None:
    """Return one document as it is stored, as `measure_assets` does."""
    return measure_assets(resources, space, {key: (before, after)})[key]


def _read_record(content: DocumentContent | None) -> tuple[Any, ...]:
    fields = content.get_locale(DEFINITION_LOCALE) if content else {}
    return tuple(fields.get(name) for name in (DIGEST_FIELD, FILES_FIELD, _SIZE_FIELD))


def _list_known_files(before: DocumentContent | None, after: DocumentContent | None) -> dict[str, Mapping[str, Any]]:
    """Return the files by name that an asset has had of the same upload."""
    is_same = _read_record(before)[0] == _read_record(after)[0]
    return {file["name"]: file for file in list_asset_files(before)} if is_same else {}


def _list_new_files(before: DocumentContent | None, after: DocumentContent | None) -> list[Mapping[str, Any]]:
    known = _list_known_files(before, after)
    return [file for file in list_asset_files(after) if known.get(file["name"]) != file]


def _build_file_key(digest: Any, file: Mapping[str, Any]) -> str:
    """Return the end of a file's key, or nothing for one that has none: people can write both digests."""
    names = [one for one in (digest, file.get("sha256")) if isinstance(one, str) and FILE_DIGEST.fullmatch(one)]
    return "/".join(names) if len(names) == 2 else ""


def _read_sizes(
    resources: Resources,
    space: SpaceKey,
    changed: Mapping[DocumentKey, tuple[DocumentContent | None, DocumentContent | None]],
    files: Mapping[DocumentKey, Sequence[Mapping[str, Any]]],
) -> dict[str, int]:
    """Return the sizes of files by the end of their keys."""
    root = media_root(space)
    ends = {_build_file_key(_read_record(changed[key][1])[0], file) for key, own in files.items() for file in own}
    sizes = resources.blobs.get_sizes([f"{root}/{end}" for end in ends if end])
    return {key.removeprefix(f"{root}/"): size for key, size in sizes.items()}


def _find_sizes(content: DocumentContent | None, sizes: Mapping[str, int]) -> bool:
    """Return whether a file of an asset is stored."""
    digest = _read_record(content)[0]
    return any(_build_file_key(digest, file) in sizes for file in list_asset_files(content))


def _may_replace(known: Mapping[str, Any] | None, measured: Mapping[str, Any]) -> bool:
    """Return whether a file is replaced: one that is missing, or a size that a project has defined anew."""
    if known is None or not read_file_size(known):
        return True
    return bool(known.get(BOX_FIELD) and measured.get(BOX_FIELD) and read_file_size(measured))


def _apply_sizes(before: DocumentContent | None, after: DocumentContent, sizes: Mapping[str, int]) -> DocumentContent:
    """Return an asset with the true sizes of its files. Those of the same upload that it had before stay."""
    digest = _read_record(after)[0]
    files = dict(_list_known_files(before, after))
    for file in _list_new_files(before, after):
        measured = {**file, _SIZE_FIELD: sizes.get(_build_file_key(digest, file), 0)}
        if _may_replace(files.get(file["name"]), measured):
            files[file["name"]] = measured
    if not files:
        return after
    whole = read_file_size(files.get(WHOLE_FILE, {}))
    return after.with_fields(DEFINITION_LOCALE, {FILES_FIELD: list(files.values()), _SIZE_FIELD: whole})
