"""Read how many pixels an AVIF image has before it is decoded: as its boxes say, and as its frames say.

A decoder makes room for what the sequence headers of AV1 say, whatever the boxes around them say. So every one is read.
ISO/IEC 23008-12 defines the boxes, https://aomediacodec.github.io/av1-spec/ (5.5.1) the sequence header.
"""

from collections.abc import Iterator
from typing import NamedTuple

from fermata.content.media.media_kind import AVIF, Box, iter_boxes
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError
from fermata.domain.image_header import MAX_INPUT_IMAGE_PIXELS, ImageHeader

_MAX_UNITS = 10_000
_MAX_LOCATION_BYTES = 16 * 1024
"""Of the box that says where items are: 64 bytes for each."""
_SEQUENCE_HEADER = 1
_SEQUENCE_HEADER_BYTES = 512
"""With 32 operating points it has fewer."""
_DAMAGED = "is damaged, or cut off"


class _LocationSizes(NamedTuple):
    """How many bits each number has that says where a part of an item is."""

    offset: int
    length: int
    base: int
    number: int


class _Bits:
    """Numbers of some bits each, from the first bit of a text of bytes on."""

    def __init__(self, data: bytes) -> None:
        self._value, self._left = int.from_bytes(data, "big"), len(data) * 8

    def read(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise InvalidImageError(_DAMAGED)
        return self._value >> self._left & (1 << count) - 1


def check_avif_header(raw: bytes) -> ImageHeader:
    """Return what an AVIF image says of itself. It is not decoded, so it may still be damaged.

    Raises:
        InvalidImageError: It is damaged, or an animation.
        ImageTooLargeError: It has more pixels than are decoded, in its boxes or in any of its frames.
    """
    top = list(iter_boxes(raw, 0, len(raw)))
    if any(box.kind == b"moov" for box in top):
        raise InvalidImageError("is an AVIF that moves; save its first picture, or a video")
    meta = _find(top, b"meta")
    inside = list(iter_boxes(raw, meta.start + 4, meta.end))
    sizes = [*_iter_stated_sizes(raw, inside), *_iter_coded_sizes(raw, inside)]
    if not sizes:
        raise InvalidImageError(_DAMAGED)
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    header = ImageHeader(AVIF, width, height)
    if header.pixel_count > (most := MAX_INPUT_IMAGE_PIXELS[AVIF]):
        raise ImageTooLargeError(f"has {width:,} by {height:,} pixels, and of {AVIF} at most {most:,} in all are taken")
    return header


def _find(boxes: list[Box], kind: bytes) -> Box:
    found = next((box for box in boxes if box.kind == kind), None)
    if found is None:
        raise InvalidImageError(_DAMAGED)
    return found


def _iter_stated_sizes(raw: bytes, meta: list[Box]) -> Iterator[tuple[int, int]]:
    properties = _find(meta, b"iprp")
    container = _find(list(iter_boxes(raw, properties.start, properties.end)), b"ipco")
    for box in iter_boxes(raw, container.start, container.end):
        if box.kind == b"ispe" and box.end - box.start >= 12:
            yield (
                int.from_bytes(raw[box.start + 4 : box.start + 8], "big"),
                int.from_bytes(raw[box.start + 8 : box.start + 12], "big"),
            )


def _iter_coded_sizes(raw: bytes, meta: list[Box]) -> Iterator[tuple[int, int]]:
    """Iterate over the sizes of the frames of all items: those of the image, of its tiles, of their grid, of alpha."""
    kinds = dict(_iter_item_kinds(raw, _find(meta, b"iinf")))
    data = next((box for box in meta if box.kind == b"idat"), Box(b"idat", 0, 0))
    for item, content in _iter_item_contents(raw, _find(meta, b"iloc"), data):
        if kinds.get(item) == b"av01":
            yield from _iter_frame_sizes(content)
        elif kinds.get(item) == b"grid":
            width = 4 if content[1:2] and content[1] & 1 else 2  # whatever else its flags say
            yield (
                int.from_bytes(content[4 : 4 + width], "big"),
                int.from_bytes(content[4 + width : 4 + 2 * width], "big"),
            )


def _iter_frame_sizes(content: bytes) -> Iterator[tuple[int, int]]:
    for count, (kind, unit) in enumerate(_iter_units(content)):
        if count > _MAX_UNITS:
            raise InvalidImageError(f"has more than {_MAX_UNITS:,} parts; save it anew")
        if kind == _SEQUENCE_HEADER:
            yield _read_frame_size(_Bits(unit[:_SEQUENCE_HEADER_BYTES]))


def _iter_item_kinds(raw: bytes, box: Box) -> Iterator[tuple[int, bytes]]:
    skipped = 6 if raw[box.start : box.start + 1] == b"\0" else 8
    for entry in iter_boxes(raw, box.start + skipped, box.end):
        if entry.kind == b"infe":
            name = entry.start + 4
            kind = name + (2 if raw[entry.start : entry.start + 1] == b"\2" else 4) + 2
            yield int.from_bytes(raw[name : kind - 2], "big"), raw[kind : kind + 4]


def _iter_item_contents(raw: bytes, box: Box, data: Box) -> Iterator[tuple[int, bytes]]:
    """Iterate over the items that a box of locations names, each with its bytes."""
    if box.end - box.start > _MAX_LOCATION_BYTES:
        raise InvalidImageError("has too many images in it; save it anew")
    bits = _Bits(raw[box.start : box.end])
    version, _ = bits.read(8), bits.read(24)
    sizes = _LocationSizes(*(bits.read(4) * 8 for _ in range(4)))
    wide, left = 16 if version < 2 else 32, 2 * len(raw)
    for _ in range(bits.read(wide)):
        item = bits.read(wide)
        method = bits.read(16) & 15 if version else 0
        if method > 1 or not sizes.length:
            raise InvalidImageError("refers to its pixels in a way that is not supported; save it anew")
        bits.read(16)
        base = bits.read(sizes.base) + (data.start if method else 0)
        parts = []
        for _ in range(bits.read(16)):
            bits.read(sizes.number if version else 0)
            start, length = base + bits.read(sizes.offset), bits.read(sizes.length)
            parts.append(raw[start : start + length])
            left -= length
            if left < 0:
                raise InvalidImageError("says more of its bytes than it has; save it anew")
        yield item, b"".join(parts)


def _iter_units(part: bytes) -> Iterator[tuple[int, bytes]]:
    """Iterate over the units of AV1 data: the kind of each, and its content."""
    at = 0
    while at < len(part):
        head, at = part[at], at + 1
        at += head >> 2 & 1  # the byte of a layer
        size = len(part) - at
        if head >> 1 & 1:
            size, at = _read_size(part, at)
        yield head >> 3 & 15, part[at : at + size]
        at += size


def _read_size(part: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits in each byte, the lowest first, and where it ends."""
    size = 0
    for place in range(8):
        if at >= len(part):
            raise InvalidImageError(_DAMAGED)
        size |= (part[at] & 127) << place * 7
        at += 1
        if not part[at - 1] & 128:
            return size, at
    raise InvalidImageError(_DAMAGED)


def _read_frame_size(bits: _Bits) -> tuple[int, int]:
    """Return the greatest width and height of the frames behind a sequence header.

    Behind one that is not reduced, a frame may say another size, as large as the bits of a size can say, and a decoder
    takes it. Encoders use no more bits than the size needs, and then half of that is no more than the size.
    """
    bits.read(4)  # profile, still picture
    is_reduced = bits.read(1)
    if is_reduced:
        bits.read(5)
    else:
        _skip_operating_points(bits)
    width_bits, height_bits = bits.read(4) + 1, bits.read(4) + 1
    width, height = bits.read(width_bits) + 1, bits.read(height_bits) + 1
    return (width, height) if is_reduced else (max(width, 1 << width_bits - 1), max(height, 1 << height_bits - 1))


def _skip_operating_points(bits: _Bits) -> None:
    has_model = delay_bits = 0
    if bits.read(1):  # timing
        bits.read(64)
        if bits.read(1):
            _skip_variable_number(bits)
        if has_model := bits.read(1):
            delay_bits = bits.read(5) + 1
            bits.read(42)
    has_delays = bits.read(1)
    for _ in range(bits.read(5) + 1):
        bits.read(12)
        if bits.read(5) > 7:
            bits.read(1)
        if has_model and bits.read(1):
            bits.read(2 * delay_bits + 1)
        if has_delays and bits.read(1):
            bits.read(4)


def _skip_variable_number(bits: _Bits) -> None:
    zeros = 0
    while not bits.read(1):
        zeros += 1
    bits.read(min(zeros, 32))
