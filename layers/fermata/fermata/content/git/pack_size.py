"""Check what a pack becomes before its objects are built (decision 0544).

A pack of a few kilobytes may become gigabytes: by zlib, or by deltas that copy the same bytes over and over. So the
sizes that it states are added up first. Whoever unpacks it then keeps to what was stated.
"""

import zlib
from typing import NamedTuple

MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Of all objects of a pack together: a function holds them in memory."""
_OBJECT_BYTES = 256
"""What an object takes besides its content."""
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
_HEADER_BYTES, _HASH_BYTES = 12, 20
_CHUNK_BYTES = 64 * 1024
_SIZES_BYTES = 20
"""Two numbers of up to ten bytes, with which a delta begins."""


class PackTooLarge(Exception):
    """A pack becomes more than may be held in memory."""


class _Object(NamedTuple):
    kind: int
    size: int
    start: int
    """Where its compressed content begins."""


def check_pack_size(pack: bytes, limit: int = MAX_UNPACKED_BYTES) -> None:
    """Return if the objects of a pack fit into memory together. The work ends where they do not.

    Args:
        pack: The whole pack.
        limit: How many bytes they may have, as they are and as deltas make them.

    Raises:
        PackTooLarge: They are more.
        ValueError: It is no pack.
    """
    total, position = 0, _HEADER_BYTES
    for _ in range(int.from_bytes(pack[8:_HEADER_BYTES], "big")):
        found = _read_object(pack, position)
        total += found.size + _OBJECT_BYTES
        if total > limit:
            raise PackTooLarge
        beginning, position = _skip_content(pack, found)
        if found.kind in (_OFFSET_DELTA, _REFERENCE_DELTA):
            _base, after = _read_number(beginning, 0)
            total += _read_number(beginning, after)[0]
        if total > limit:
            raise PackTooLarge


def _read_object(pack: bytes, position: int) -> _Object:
    size, after = _read_number(pack, position)
    kind, size = size >> 4 & 7, size & 15 | size >> 7 << 4
    if kind == _OFFSET_DELTA:
        _offset, after = _read_number(pack, after)
    return _Object(kind, size, after + _HASH_BYTES if kind == _REFERENCE_DELTA else after)


def _read_number(data: bytes, position: int) -> tuple[int, int]:
    """Return a number in bytes of seven bits, the lowest first, and where it ends."""
    number = 0
    for place, byte in enumerate(data[position : position + 10]):
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, position + place + 1
    raise ValueError("a number has no end")


def _skip_content(pack: bytes, found: _Object) -> tuple[bytes, int]:
    """Return the beginning of an object's content, and where the next object begins."""
    unpacker, beginning, unpacked, position = zlib.decompressobj(), b"", 0, found.start
    step = min(_CHUNK_BYTES, found.size + 64)
    while not unpacker.eof:
        chunk = pack[position : position + step]
        if not chunk:
            raise ValueError("the pack is cut off")
        position += len(chunk)
        try:
            content = unpacker.decompress(chunk, found.size - unpacked + 1)
        except zlib.error as error:
            raise ValueError("an object cannot be unpacked") from error
        unpacked += len(content)
        if unpacked > found.size:
            raise ValueError("an object is larger than it says")
        beginning = (beginning + content[:_SIZES_BYTES])[:_SIZES_BYTES]
    return beginning, position - len(unpacker.unused_data)
