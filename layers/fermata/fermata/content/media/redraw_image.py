"""Redraw an image for the web: decode it, and write its pixels anew, whole and in smaller sizes (decision 0460).

Metadata, further frames, and whatever else was in the file are gone afterwards. Pillow is imported with the first
image.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fermata.content.media.asset_files import WHOLE_FILE
from fermata.content.media.avif_header import check_avif_header
from fermata.content.media.media_kind import AVIF, detect_media_type
from fermata.domain.check_image_header import check_image_header
from fermata.domain.decode_image import decode_image, rotate_upright, to_eight_bits

if TYPE_CHECKING:
    from PIL.Image import Image

ORIGINAL, THUMBNAIL = WHOLE_FILE, "thumbnail"
THUMBNAIL_EDGE_PIXELS = 150
MAX_WEBP_EDGE_PIXELS = 16_383
_THUMBNAIL_QUALITY = 70
VARIANT_WIDTHS = {"small": 640, "medium": 1024, "large": 1920}
_VARIANT_QUALITIES = {"small": 80, "medium": 85, "large": 90}
_ORIGINAL_QUALITY = 92
_FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/gif": "PNG", "image/webp": "WEBP", AVIF: "WEBP"}
"""In which format the pixels of each kind are written. Of a GIF, the first frame becomes a PNG. An AVIF becomes a WebP:
to write one takes 75 MB more than a function has that fetches images for an agent (decision 0574)."""


class RedrawnFile(NamedTuple):
    """One size of an image, as bytes. Width and height are 0 of what has no pixels."""

    name: str
    mime_type: str
    width: int
    height: int
    data: bytes


def redraw_image(raw: bytes) -> list[RedrawnFile]:
    """Return the image as it is, upright; then a square thumbnail, and each smaller width that it has.

    Args:
        raw: The file as somebody has uploaded it.

    Raises:
        InvalidImageError: The bytes are no accepted image, or damaged.
        ImageTooLargeError: It has more pixels than are decoded.
    """
    image, kind = open_upright_image(raw), _FORMATS[detect_media_type(raw)]
    return [write_image(ORIGINAL, image, kind, _ORIGINAL_QUALITY), *_write_variants(image)]


def open_upright_image(raw: bytes) -> Image:
    """Return the pixels of an image, upright, in RGB or RGBA.

    Raises:
        InvalidImageError: The bytes are no accepted image, or damaged.
        ImageTooLargeError: It has more pixels than are decoded.
    """
    header = check_avif_header(raw) if detect_media_type(raw) == AVIF else check_image_header(raw)
    image = decode_image(raw, header.mime_type)
    rotate_upright(image)
    return _to_plain_mode(image)


def _to_plain_mode(image: Image) -> Image:
    """Return the image in RGB, or in RGBA if parts of it are transparent, without anything but its pixels."""
    image = to_eight_bits(image)
    plain = image.convert("RGBA" if image.has_transparency_data else "RGB")
    plain.info = {}
    return plain


def _write_variants(image: Image) -> Iterator[RedrawnFile]:
    """Write the smaller sizes, from the largest to the smallest, each drawn from the one before."""
    smaller = source = image
    for name in reversed(VARIANT_WIDTHS):
        width = VARIANT_WIDTHS[name]
        if width >= image.width:
            continue
        smaller = smaller.resize((width, max(1, round(image.height * width / image.width))), reducing_gap=2.0)
        yield write_image(name, smaller, "WEBP", _VARIANT_QUALITIES[name])
        if min(smaller.size) >= THUMBNAIL_EDGE_PIXELS:
            source = smaller
    yield write_image(THUMBNAIL, _cut_square(source), "WEBP", _THUMBNAIL_QUALITY)


def _cut_square(image: Image) -> Image:
    """Return the middle of an image as a square of at most THUMBNAIL_EDGE_PIXELS."""
    edge = min(image.size)
    left, top = (image.width - edge) // 2, (image.height - edge) // 2
    target = min(edge, THUMBNAIL_EDGE_PIXELS)
    return image.resize((target, target), box=(left, top, left + edge, top + edge), reducing_gap=2.0)


def write_image(name: str, image: Image, kind: str, quality: int) -> RedrawnFile:
    """Write the pixels of an image as a file.

    Args:
        name: The size.
        image: The image.
        kind: JPEG, PNG or WEBP. What is too long for WEBP is written as one of the others.
        quality: From 1 to 100; PNG has none.
    """
    if kind == "WEBP" and max(image.size) > MAX_WEBP_EDGE_PIXELS:
        kind = "PNG" if image.mode == "RGBA" else "JPEG"
    target = io.BytesIO()
    if kind == "PNG":
        image.save(target, kind)
    elif kind == "JPEG":
        image.convert("RGB").save(target, kind, quality=quality)
    else:
        image.save(target, kind, quality=quality, method=2)
    return RedrawnFile(name, f"image/{kind.lower()}", *image.size, target.getvalue())
