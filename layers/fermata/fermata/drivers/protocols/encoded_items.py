"""A JSON array whose items are encoded once, however often they are sent (decision 0204)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
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


class EncodedItems(list[JsonItem]):
    """The items of all parts, and their array as JSON, put together from what is encoded already."""

    def __init__(self, parts: Iterable[EncodedPart]) -> None:
        self.parts = [part for part in parts if part.items]
        super().__init__(item for part in self.parts for item in part.items)

    def iter_encoded(self) -> Iterator[bytes]:
        """Yield the pieces of the array's JSON."""
        separator = b"["
        for part in self.parts:
            yield separator
            yield part.encoded
            separator = b","
        yield b"]" if self.parts else b"[]"


def encode_body(body: JsonItem) -> bytes:
    """Encode the JSON body of a request."""
    encoded = BytesIO()  # a join would hold all pieces beside the whole
    for piece in _iter_encoded_body(body):
        encoded.write(piece)
    return encoded.getvalue()


def _iter_encoded_body(body: JsonItem) -> Iterator[bytes]:
    separator = b"{"
    for name, value in body.items():
        yield separator + _encode_value(name) + b":"
        if isinstance(value, EncodedItems):
            yield from value.iter_encoded()
        else:
            yield _encode_value(value)
        separator = b","
    yield b"}"


def _encode_value(value: Any) -> bytes:
    """Encode as JSON in UTF-8, where a lone surrogate cannot be: it becomes a question mark."""
    return encode_compact_json(value).encode("utf-8", "replace")
