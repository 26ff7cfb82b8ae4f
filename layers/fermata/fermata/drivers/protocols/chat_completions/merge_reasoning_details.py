"""Put the fragments of `reasoning_details` together (decision 0195)."""

from collections.abc import Sequence
from typing import Any

_GROWING_FIELDS = ("text", "summary", "data")


def merge_reasoning_details(fragments: Sequence[Any]) -> list[Any]:
    """Return one detail for each index and type, as the server accepts it back.

    The texts of its fragments follow each other; of other members, such as the signature, the last value counts.
    Fragments without an index belong to the detail before them, if it has the same type and is not signed yet.
    """
    merger = _DetailMerger()
    for fragment in fragments:
        merger.add(fragment)
    return [detail.build() if isinstance(detail, _Detail) else detail for detail in merger.details]


class _Detail:
    """One detail while it grows."""

    def __init__(self) -> None:
        self.members: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}

    def extend(self, fragment: dict[str, Any]) -> None:
        for name, value in fragment.items():
            if name in _GROWING_FIELDS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif value is not None or name not in self.members:
                self.members[name] = value
            self.members.setdefault(name, "")

    def build(self) -> dict[str, Any]:
        return self.members | {name: "".join(texts) for name, texts in self._texts.items()}

    def is_continued_by(self, fragment: dict[str, Any]) -> bool:
        has_same_type = fragment.get("type") in (None, self.members.get("type"))
        has_same_id = fragment.get("id") is None or self.members.get("id") in (None, fragment["id"])
        return has_same_type and has_same_id


class _DetailMerger:
    """Find the detail of each fragment at once, however many there are."""

    def __init__(self) -> None:
        self.details: list[Any] = []
        self._newest: dict[tuple[Any, ...], _Detail] = {}

    def add(self, fragment: Any) -> None:
        if not isinstance(fragment, dict):
            self.details.append(fragment)
            return
        detail = self._find(fragment)
        if detail is None:
            detail = _Detail()
            self.details.append(detail)
        detail.extend(fragment)
        if isinstance(index := fragment.get("index"), int):
            kind = str(detail.members.get("type"))
            for key in ((index,), (index, kind), (index, kind, str(fragment.get("id")))):
                self._newest[key] = detail

    def _find(self, fragment: dict[str, Any]) -> _Detail | None:
        index = fragment.get("index")
        if not isinstance(index, int):
            last = self.details[-1] if self.details else None
            if not isinstance(last, _Detail) or last.members.get("index") != index or last.members.get("signature"):
                return None
            return last if last.is_continued_by(fragment) else None
        kind = fragment.get("type")
        keys = [(index,)] if kind is None else [(index, str(kind), str(fragment.get("id"))), (index, str(kind))]
        found = (self._newest[key] for key in keys if key in self._newest)
        return next((detail for detail in found if detail.is_continued_by(fragment)), None)
