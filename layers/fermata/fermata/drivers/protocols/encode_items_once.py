"""Encode the items of a JSON array once, however often they are sent (decision 0204)."""

import json
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

encode_compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
JsonItem = dict[str, Any]
MAX_KEPT_BYTES = 256 * 1024
"""Images are larger. They are encoded again, which takes little time, instead of held in memory twice."""


class EncodedPart:
    """Items that follow each other in an array. They must not change any more."""

    def __init__(self, items: Sequence[JsonItem]) -> None:
        self.items = items
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The items as JSON, separated by commas."""
        if self._encoded is not None:
            return self._encoded
        encoded = b",".join(_encode_value(item) for item in self.items)
        if len(encoded) <= MAX_KEPT_BYTES:
            self._encoded = encoded
        return encoded


_get_items = attrgetter("items")
_get_encoded = attrgetter("encoded")


class EncodedItems(list[JsonItem]):
    """The items of all parts, and their array as JSON, put together from what is encoded already."""

    def __init__(self, parts: Iterable[EncodedPart]) -> None:
        self.parts = list(filter(_get_items, parts))
        super().__init__(chain.from_iterable(map(_get_items, self.parts)))

    def write_encoded(self, buffer: BytesIO) -> None:
        """Write the array as JSON."""
        buffer.write(b"[")
        for part in self.parts[:1]:
            buffer.write(part.encoded)
        following = map(_get_encoded, self.parts[1:])
        buffer.writelines(chain.from_iterable(zip(repeat(b","), following)))
        buffer.write(b"]")


def encode_body(body: JsonItem) -> bytes:
    """Encode the JSON body of a request."""
    buffer = BytesIO()  # a join would hold all pieces beside the whole
    separator = b"{"
    for name, value in body.items():
        buffer.write(separator + _encode_value(name) + b":")
        if isinstance(value, EncodedItems):
            value.write_encoded(buffer)
        else:
            buffer.write(_encode_value(value))
        separator = b","
    buffer.write(b"}")
    return buffer.getvalue()


def _encode_value(value: Any) -> bytes:
    """Encode as JSON in UTF-8, where a lone surrogate cannot be: it becomes a question mark."""
    return encode_compact_json(value).encode("utf-8", "replace")
