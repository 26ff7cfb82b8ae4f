"""Draws pictures anew: what goes on is a plain JPEG that we made, whatever came.

So nothing but pixels survives: no metadata (where a photograph was taken), no second frame, no page or script that
hides behind a picture. The only file that names the imaging library; it is loaded with the first picture.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from fermata.domain.image_header import (
    IMAGE_MIME_TYPES,
    MAX_IMAGE_EDGE_PIXELS,
    MAX_INPUT_IMAGE_PIXELS,
    MAX_STORED_IMAGE_PIXELS,
    ImageHeader,
    read_image_header,
)

if TYPE_CHECKING:
    from PIL.Image import Image

_JPEG_MIME_TYPE = "image/jpeg"
MAX_JPEG_BYTES = 1_500_000
"""Of a drawn picture."""
_JPEG_QUALITIES = (85, 74, 64, 55)
"""The first one with which it is small enough. With the last one even noise is."""
_STRIP_HEIGHT_PIXELS, _ROUNDING_SLACK = 128, 1e-6
_BACKGROUND_COLOUR = "white"
"""What shows through where a picture is transparent."""


class InvalidImageError(Exception):
    """`str` is what is wrong with it, as the end of a sentence about it."""


class ImageTooLargeError(InvalidImageError):
    """It is a picture, and larger than we open."""


def check_image_header(raw: bytes) -> ImageHeader:
    """What it says it is, by its first bytes. Whatever passes may be drawn; whether it can be is not known yet."""
    picture = read_image_header(raw)
    if picture is None:
        raise InvalidImageError(f"is none of {', '.join(IMAGE_MIME_TYPES)}")
    if picture.pixel_count > (most := MAX_INPUT_IMAGE_PIXELS[picture.mime_type]):
        size = f"{picture.width:,} by {picture.height:,}"
        raise ImageTooLargeError(f"has {size} pixels, and of {picture.mime_type} at most {most:,} in all are taken")
    return picture


def reencode_as_jpeg(raw: bytes) -> tuple[bytes, ImageHeader]:
    """The picture as a JPEG of at most MOST_EDGE, MOST_PIXELS and MOST_BYTES, upright, its first frame only."""
    image = _decode(raw, check_image_header(raw).mime_type)
    image = _flatten(image)  # one step after the other, so that none is kept longer than it is needed
    image = _shrink(image)
    _rotate_upright(image)
    data = _encode(image)
    return data, ImageHeader(_JPEG_MIME_TYPE, *image.size)


def accept_unchanged(raw: bytes) -> ImageHeader | None:
    """The picture when it may go on as it came: a sound PNG or JPEG within the limits. Raises NoPictureError."""
    picture = check_image_header(raw)
    is_small = (
        picture.longest_edge <= MAX_IMAGE_EDGE_PIXELS
        and picture.pixel_count <= MAX_STORED_IMAGE_PIXELS
        and len(raw) <= MAX_JPEG_BYTES
    )
    if not is_small or picture.mime_type not in (_JPEG_MIME_TYPE, "image/png"):
        return None
    return picture if _decode(raw, picture.mime_type).size == picture[1:] else None


def _decode(raw: bytes, mime_type: str) -> Image:
    """Decoded whole, or refused. Only the kind that was seen is tried, and nothing the library knows besides."""
    from PIL import Image

    try:
        image: Image.Image = Image.open(io.BytesIO(raw), formats=[mime_type.removeprefix("image/").upper()])
        if image.width * image.height > MAX_INPUT_IMAGE_PIXELS[mime_type]:
            raise ImageTooLargeError("is larger inside than it says")
        if mime_type == _JPEG_MIME_TYPE:  # it can be decoded at a half or a quarter of its size at once
            image.draft("RGB", _size_within_limits(image.size))
        image.load()
    except InvalidImageError:
        raise
    except Exception as error:  # decoders raise what they like about hostile bytes, and any of it means no
        raise InvalidImageError("is damaged, or cut off") from error
    return image


def _flatten(image: Image) -> Image:
    """In plain colours, without transparency."""
    from PIL import Image

    if image.mode == "RGB" and not image.has_transparency_data:
        return image
    if image.mode.startswith("I"):  # sixteen bits of grey, of which the upper eight can be seen
        image = image.convert("I").point(lambda grey: grey * (1 / 256)).convert("L")
    if not image.has_transparency_data:
        flat = image.convert("RGB")
    else:
        layer = image if image.mode == "RGBA" else image.convert("RGBA")
        flat = Image.new("RGB", layer.size, _BACKGROUND_COLOUR)
        for top in range(0, layer.height, _STRIP_HEIGHT_PIXELS):  # in strips, because each is copied on its way
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
    """The size within our limits, in the same proportions."""
    width, height = size
    scale = min(1.0, MAX_IMAGE_EDGE_PIXELS / max(size), (MAX_STORED_IMAGE_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * scale + _ROUNDING_SLACK)), max(1, int(height * scale + _ROUNDING_SLACK))


def _rotate_upright(image: Image) -> None:
    """As the camera was held. A note about that which cannot be read is as good as none."""
    from PIL import ImageOps

    with contextlib.suppress(Exception):  # metadata is anybody's bytes; the pixels are all right
        ImageOps.exif_transpose(image, in_place=True)


def _encode(image: Image) -> bytes:
    """Nothing that it knew besides its pixels goes along."""
    image.info = {}
    for quality in _JPEG_QUALITIES:
        target = io.BytesIO()
        image.save(target, "JPEG", quality=quality)
        if target.tell() <= MAX_JPEG_BYTES:
            break
    return target.getvalue()
