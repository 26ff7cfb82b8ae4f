"""What a picture is and how large, read from its first bytes: nothing is decoded, so nothing in it can do harm."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

IMAGE_MIME_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_IMAGE_EDGE_PIXELS = 1568
MAX_STORED_IMAGE_PIXELS = 1_500_000
"""The largest picture that no provider shrinks before its model sees it; what is kept is no larger."""
MAX_INPUT_IMAGE_PIXELS = {
    "image/jpeg": 12_000_000,
    "image/png": 8_300_000,
    "image/gif": 8_300_000,
    "image/webp": 4_100_000,
}
"""A larger one is not opened: decoding one of these takes 65 MB, and 80 at the worst, which a door has to spare."""
_PNG = b"\x89PNG\r\n\x1a\n"
_NOT_FRAMES = (0xC4, 0xC8, 0xCC)
"""Segments among C0 to CF that describe no frame: Huffman tables, a reserved one, arithmetic coding."""
_BARE = (0x01, *range(0xD0, 0xD9))
"""Markers without a length: TEM, RST0 to RST7, SOI."""


class ImageHeader(NamedTuple):
    mime_type: str
    width: int
    height: int

    @property
    def longest_edge(self) -> int:
        """The longer one."""
        return max(self.width, self.height)

    @property
    def pixel_count(self) -> int:
        return self.width * self.height


def read_image_header(data: bytes) -> ImageHeader | None:
    """None for anything that is not one of the four kinds, or whose header says no size."""
    if data.startswith(b"\xff\xd8\xff"):
        found = _jpeg(data)
        kind = "image/jpeg"
    elif data.startswith(_PNG):
        found = _numbers(data, 16, 20, 4, "big") if data[12:16] == b"IHDR" else None
        kind = "image/png"
    elif data.startswith((b"GIF87a", b"GIF89a")):
        found = _numbers(data, 6, 8, 2, "little")
        kind = "image/gif"
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        found = _webp(data)
        kind = "image/webp"
    else:
        return None
    return ImageHeader(kind, *found) if found and min(found) > 0 else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    for marker, start in _segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in _NOT_FRAMES:
            found = _numbers(data, start + 3, start + 5, 2, "big")
            return (found[1], found[0]) if found else None
        if marker == 0xDA:  # the picture itself begins, and no frame came before it
            return None
    return None


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Each marker and where its length stands."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _BARE:
            at += 2
            continue
        yield marker, at + 2
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2:
            return
        at += 2 + length


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        found = _numbers(data, 26, 28, 2, "little")
        return (found[0] & 0x3FFF, found[1] & 0x3FFF) if found else None
    return None


def _numbers(
    data: bytes, first: int, second: int, size: int, order: Literal["big", "little"]
) -> tuple[int, int] | None:
    """Two numbers of `size` bytes, at these two places."""
    if len(data) < second + size:
        return None
    return int.from_bytes(data[first : first + size], order), int.from_bytes(data[second : second + size], order)
