"""Put the fragments of `reasoning_details` together (decision 0195)."""

from collections.abc import Sequence
from typing import Any

_GROWING_FIELDS = ("text", "summary", "data")


def merge_reasoning_details(fragments: Sequence[Any]) -> list[Any]:
    """Return one detail for each index and type, as the server accepts it back.

    The texts of its fragments follow each other; of other members, such as the signature, the last value counts.
    Fragments without an index belong to the detail before them, if it has the same type and is not signed yet.
    """
    details: list[Any] = []
    for fragment in fragments:
        detail = _find_detail(details, fragment) if isinstance(fragment, dict) else None
        if detail is None:
            details.append(dict(fragment) if isinstance(fragment, dict) else fragment)
        else:
            _extend(detail, fragment)
    return details


def _find_detail(details: list[Any], fragment: dict[str, Any]) -> dict[str, Any] | None:
    index = fragment.get("index")
    candidates = details if isinstance(index, int) else details[-1:]
    for detail in reversed(candidates):
        if not isinstance(detail, dict) or detail.get("index") != index:
            continue
        has_same_type = fragment.get("type") in (None, detail.get("type"))
        has_same_id = fragment.get("id") is None or detail.get("id") in (None, fragment["id"])
        is_closed = index is None and detail.get("signature") is not None
        if has_same_type and has_same_id and not is_closed:
            return detail
    return None


def _extend(detail: dict[str, Any], fragment: dict[str, Any]) -> None:
    for name, value in fragment.items():
        before = detail.get(name)
        if name in _GROWING_FIELDS and isinstance(value, str) and isinstance(before, str):
            detail[name] = before + value
        elif value is not None:
            detail[name] = value
