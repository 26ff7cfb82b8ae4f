"""Refer to an asset from content: `asset:<id>` is the value of an image field, and stays when addresses change."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from fermata.content.documents.document import DOCUMENT_ID

REFERENCE_PREFIX = "asset:"
_REFERENCE = re.compile(rf"{REFERENCE_PREFIX}({DOCUMENT_ID.pattern})")
_MAX_REFERENCE_DEPTH = 20


def make_asset_reference(asset_id: str) -> str:
    """Return the value by which content refers to an asset."""
    return f"{REFERENCE_PREFIX}{asset_id}"


def parse_asset_reference(value: Any) -> str:
    """Return the id of the asset that a value refers to; empty if it refers to none."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else ""


def iter_asset_references(value: Any) -> Iterator[str]:
    """Iterate over the ids of the assets that a content refers to, in its order and as often as it does."""
    found: list[str] = []
    replace_asset_references(value, found.append)
    yield from found


def replace_asset_references(value: Any, replace: Callable[[str], Any], depth: int = 0) -> Any:
    """Return a content with other values in the place of references.

    Args:
        value: The content.
        replace: Returns what stands for the asset with an id.
        depth: How deep the value is within the content. What is too deep stays as it is.
    """
    if asset_id := parse_asset_reference(value):
        return replace(asset_id)
    if depth < _MAX_REFERENCE_DEPTH and isinstance(value, list):
        return [replace_asset_references(item, replace, depth + 1) for item in value]
    if depth < _MAX_REFERENCE_DEPTH and isinstance(value, dict):
        return {name: replace_asset_references(member, replace, depth + 1) for name, member in value.items()}
    return value
