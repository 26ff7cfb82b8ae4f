"""A JSON array whose items are encoded once, however often they are sent (decision 0204)."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

encode_compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
JsonItem = dict[str, Any]


class EncodedPart:
    """Items that follow each other in an array. They must not change any more."""

    def __init__(self, items: Sequence[JsonItem]) -> None:
        self.items = items

    @cached_property
    def text(self) -> str:
        """The items as JSON, separated by commas."""
        return ",".join(map(encode_compact_json, self.items))


class EncodedItems(list[JsonItem]):
    """The items of all parts; `text` is their array as JSON, put together from what is encoded already."""

    def __init__(self, parts: Iterable[EncodedPart]) -> None:
        self._parts = [part for part in parts if part.items]
        super().__init__(item for part in self._parts for item in part.items)

    @property
    def text(self) -> str:
        return f"[{','.join(part.text for part in self._parts)}]"


def encode_body(body: JsonItem) -> bytes:
    """Encode the JSON body of a request. A lone surrogate, which UTF-8 cannot encode, becomes a question mark."""
    members = (
        f"{encode_compact_json(name)}:{value.text if isinstance(value, EncodedItems) else encode_compact_json(value)}"
        for name, value in body.items()
    )
    return f"{{{','.join(members)}}}".encode("utf-8", "replace")
