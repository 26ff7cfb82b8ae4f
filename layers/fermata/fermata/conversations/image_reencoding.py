"""Resize and re-encode images as plain JPEG, so that nothing but their pixels survives (decision 0111).

Metadata (such as where a photograph was taken), further frames, and pages or scripts appended to the file are gone
afterwards. Pillow is imported with the first image.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from fermata.domain.check_image_header import check_image_header
from fermata.domain.decode_image import JPEG_MIME_TYPE, decode_image, rotate_upright, to_eight_bits
from fermata.domain.image_header import (
    MAX_IMAGE_EDGE_PIXELS,
    MAX_STORED_IMAGE_PIXELS,
    ImageHeader,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_JPEG_BYTES = 1_500_000
_JPEG_QUALITIES = (85, 74, 64, 55)
"""Tried in this order until the image is small enough. At the last one even noise is."""
_STRIP_HEIGHT_PIXELS = 128
_ROUNDING_SLACK = 1e-6
_BACKGROUND_COLOUR = "white"
"""Shows through where an image is transparent."""


def reencode_as_jpeg(raw: bytes) -> tuple[bytes, ImageHeader]:
    """Return the first frame, upright, as a JPEG within MAX_IMAGE_EDGE_PIXELS, MAX_STORED_IMAGE_PIXELS, MAX_JPEG_BYTES.

    Raises:
        InvalidImageError: The bytes are no accepted image, or damaged.
    """
    image = decode_image(raw, check_image_header(raw).mime_type, _size_within_limits)
    image = _flatten(image)  # one name for all steps, so that no step's image is kept longer than it is needed
    image = _shrink(image)
    rotate_upright(image)
    data = _encode(image)
    return data, ImageHeader(JPEG_MIME_TYPE, *image.size)


def accept_unchanged(raw: bytes) -> ImageHeader | None:
    """Return the header of a PNG or JPEG that is intact and within the limits; None when it has to be re-encoded.

    Raises:
        InvalidImageError: The bytes are no accepted image, or damaged.
    """
    header = check_image_header(raw)
    is_small = (
        header.longest_edge <= MAX_IMAGE_EDGE_PIXELS
        and header.pixel_count <= MAX_STORED_IMAGE_PIXELS
        and len(raw) <= MAX_JPEG_BYTES
    )
    if not is_small or header.mime_type not in (JPEG_MIME_TYPE, "image/png"):
        return None
    return header if decode_image(raw, header.mime_type, _size_within_limits).size == header[1:] else None


def _flatten(image: Image) -> Image:
    """Return the image in RGB, without transparency."""
    from PIL import Image

    if image.mode == "RGB" and not image.has_transparency_data:
        return image
    image = to_eight_bits(image)
    if not image.has_transparency_data:
        flat = image.convert("RGB")
    else:
        layer = image if image.mode == "RGBA" else image.convert("RGBA")
        flat = Image.new("RGB", layer.size, _BACKGROUND_COLOUR)
        for top in range(0, layer.height, _STRIP_HEIGHT_PIXELS):  # strip by strip, because `paste` copies its source
            strip = layer.crop((0, top, layer.width, min(top + _STRIP_HEIGHT_PIXELS, layer.height)))
            flat.paste(strip, (0, top), mask=strip)
    flat.info = image.info
    return flat


def _shrink(image: Image) -> Image:
    size = _size_within_limits(image.size)
    if size == image.size:
        return image
    small = image.resize(size, reducing_gap=2.0)
    small.info = image.info
    return small


def _size_within_limits(size: tuple[int, int]) -> tuple[int, int]:
    """Return the largest size within the limits that has the same proportions."""
    width, height = size
    scale = min(1.0, MAX_IMAGE_EDGE_PIXELS / max(size), (MAX_STORED_IMAGE_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * scale + _ROUNDING_SLACK)), max(1, int(height * scale + _ROUNDING_SLACK))


def _encode(image: Image) -> bytes:
    """Return the image as JPEG, without metadata, at the best quality that is small enough."""
    image.info = {}
    for quality in _JPEG_QUALITIES:
        target = io.BytesIO()
        image.save(target, "JPEG", quality=quality)
        if target.tell() <= MAX_JPEG_BYTES:
            break
    return target.getvalue()
