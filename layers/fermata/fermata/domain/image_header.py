"""Read an image's type and size from its first bytes, without decoding it, so that a hostile file can do no harm."""

import itertools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

IMAGE_MIME_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_IMAGE_EDGE_PIXELS = 1568
MAX_STORED_IMAGE_PIXELS = 1_500_000
"""The largest image that no provider shrinks before its model sees it. Stored images are no larger (decision 0111)."""
MAX_INPUT_IMAGE_PIXELS = {
    "image/jpeg": 12_000_000,
    "image/png": 8_300_000,
    "image/gif": 8_300_000,
    "image/webp": 4_100_000,
    "image/avif": 4_100_000,
}
"""Larger images are refused. Decoding one of these takes 65 to 80 MB, which a function has to spare (decision 0111). An
AVIF is taken as content only."""
MAX_JPEG_SCANS = 64
"""A scan of a few bytes may pass over the whole image. Encoders write one, or about ten (decision 0235)."""
MAX_IMAGE_PARTS = 20_000
"""A part is a chunk of a PNG, or a segment or a padding byte of a JPEG: each costs a decoder as much as many pixels do.
Encoders write a part for 4 KB or more of an image, and a few beside (decision 0300)."""
_PNG = b"\x89PNG\r\n\x1a\n"
_NON_FRAME_MARKERS = (0xC4, 0xC8, 0xCC)
"""Markers from C0 to CF that start no frame: Huffman tables, a reserved one, arithmetic coding."""
_SCAN, _END_OF_IMAGE, _PADDING = 0xDA, 0xD9, 0xFF
_MARKERS_WITHOUT_LENGTH = (0x01, *range(0xD0, 0xD9))
"""TEM, RST0 to RST7, SOI."""
_MARKER_AFTER_SCAN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""The next marker behind a scan's data, in which FF is followed by 00 or is a restart."""


class ImageHeader(NamedTuple):
    """The type of an image and its size in pixels."""

    mime_type: str
    width: int
    height: int

    @property
    def longest_edge(self) -> int:
        """The greater one of width and height, in pixels."""
        return max(self.width, self.height)

    @property
    def pixel_count(self) -> int:
        """Width times height, which bounds the memory that decoding the image takes."""
        return self.width * self.height


def read_image_header(data: bytes) -> ImageHeader | None:
    """Return the header, or None if the data is none of IMAGE_MIME_TYPES or its header states no size."""
    if data.startswith(b"\xff\xd8\xff"):
        size = _jpeg_size(data)
        mime_type = "image/jpeg"
    elif data.startswith(_PNG):
        size = _read_two_integers(data, 16, 20, 4, "big") if data[12:16] == b"IHDR" else None
        mime_type = "image/png"
    elif data.startswith((b"GIF87a", b"GIF89a")):
        size = _read_two_integers(data, 6, 8, 2, "little")
        mime_type = "image/gif"
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        size = _webp_size(data)
        mime_type = "image/webp"
    else:
        return None
    return ImageHeader(mime_type, *size) if size and min(size) > 0 else None


def has_too_many_scans(data: bytes) -> bool:
    """Return whether a JPEG has more than MAX_JPEG_SCANS. What follows the end of the image does not count."""
    scan_count = 0
    for marker, _ in _iter_jpeg_segments(data):
        scan_count += marker == _SCAN
        if scan_count > MAX_JPEG_SCANS:
            return True
    return False


def has_too_many_parts(data: bytes) -> bool:
    """Return whether a JPEG or PNG has more than MAX_IMAGE_PARTS."""
    parts = _iter_png_chunks(data) if data.startswith(_PNG) else _iter_jpeg_segments(data)
    return sum(1 for _ in itertools.islice(parts, MAX_IMAGE_PARTS + 1)) > MAX_IMAGE_PARTS


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    for marker, start in itertools.islice(_iter_jpeg_segments(data), MAX_IMAGE_PARTS):
        if 0xC0 <= marker <= 0xCF and marker not in _NON_FRAME_MARKERS:
            size = _read_two_integers(data, start + 3, start + 5, 2, "big")  # height first
            return (size[1], size[0]) if size else None
        if marker == _SCAN:  # the image data starts without a frame before it
            return None
    return None


def _iter_jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over the markers, and padding bytes, and the offsets of what follows them."""
    offset = 2
    while offset + 4 <= len(data):
        if data[offset] != 0xFF:
            return
        marker = data[offset + 1]
        if marker == _END_OF_IMAGE:
            return
        yield marker, offset + 2
        if marker == _PADDING:
            offset += 1
            continue
        if marker in _MARKERS_WITHOUT_LENGTH:
            offset += 2
            continue
        length = int.from_bytes(data[offset + 2 : offset + 4], "big")
        if length < 2:
            return
        offset += 2 + length
        if marker == _SCAN:
            next_marker = _MARKER_AFTER_SCAN.search(data, offset)
            offset = next_marker.start() if next_marker else len(data)


def _iter_png_chunks(data: bytes) -> Iterator[int]:
    """Iterate over the offsets of the chunks."""
    offset = len(_PNG)
    while offset + 8 <= len(data):
        yield offset
        offset += 12 + int.from_bytes(data[offset : offset + 4], "big")


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        size = _read_two_integers(data, 26, 28, 2, "little")
        return (size[0] & 0x3FFF, size[1] & 0x3FFF) if size else None
    return None


def _read_two_integers(
    data: bytes, first: int, second: int, size: int, order: Literal["big", "little"]
) -> tuple[int, int] | None:
    """Return the two integers of `size` bytes at the offsets `first` and `second`."""
    if len(data) < second + size:
        return None
    return int.from_bytes(data[first : first + size], order), int.from_bytes(data[second : second + size], order)
