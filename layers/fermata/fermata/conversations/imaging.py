"""Draws pictures anew: what goes on is a plain JPEG that we made, whatever came.

So nothing but pixels survives: no metadata (where a photograph was taken), no second frame, no page or script that
hides behind a picture. The only file that names the imaging library; it is loaded with the first picture.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from fermata.words.pictures import MIME_TYPES, MOST_EDGE, MOST_PIXELS, MOST_PIXELS_TAKEN, Picture, measure

if TYPE_CHECKING:
    from PIL.Image import Image

JPEG = "image/jpeg"
MOST_BYTES = 1_500_000
"""Of a drawn picture."""
QUALITIES = (85, 74, 64, 55)
"""The first one with which it is small enough. With the last one even noise is."""
STRIP, ROUNDING = 128, 1e-6
PAPER = "white"
"""What shows through where a picture is transparent."""


class NoPictureError(Exception):
    """`str` is what is wrong with it, as the end of a sentence about it."""


class HugePictureError(NoPictureError):
    """It is a picture, and larger than we open."""


def checked(raw: bytes) -> Picture:
    """What it says it is, by its first bytes. Whatever passes may be drawn; whether it can be is not known yet."""
    picture = measure(raw)
    if picture is None:
        raise NoPictureError(f"is none of {', '.join(MIME_TYPES)}")
    if picture.pixels > (most := MOST_PIXELS_TAKEN[picture.mime_type]):
        size = f"{picture.width:,} by {picture.height:,}"
        raise HugePictureError(f"has {size} pixels, and of {picture.mime_type} at most {most:,} in all are taken")
    return picture


def drawn(raw: bytes) -> tuple[bytes, Picture]:
    """The picture as a JPEG of at most MOST_EDGE, MOST_PIXELS and MOST_BYTES, upright, its first frame only."""
    image = _opened(raw, checked(raw).mime_type)
    image = _on_paper(image)  # one step after the other, so that none is kept longer than it is needed
    image = _shrunk(image)
    _set_upright(image)
    data = _encoded(image)
    return data, Picture(JPEG, *image.size)


def as_it_is(raw: bytes) -> Picture | None:
    """The picture when it may go on as it came: a sound PNG or JPEG within the limits. Raises NoPictureError."""
    picture = checked(raw)
    is_small = picture.edge <= MOST_EDGE and picture.pixels <= MOST_PIXELS and len(raw) <= MOST_BYTES
    if not is_small or picture.mime_type not in (JPEG, "image/png"):
        return None
    return picture if _opened(raw, picture.mime_type).size == picture[1:] else None


def _opened(raw: bytes, mime_type: str) -> Image:
    """Decoded whole, or refused. Only the kind that was seen is tried, and nothing the library knows besides."""
    from PIL import Image

    try:
        image: Image.Image = Image.open(io.BytesIO(raw), formats=[mime_type.removeprefix("image/").upper()])
        if image.width * image.height > MOST_PIXELS_TAKEN[mime_type]:
            raise HugePictureError("is larger inside than it says")
        if mime_type == JPEG:  # it can be decoded at a half or a quarter of its size at once
            image.draft("RGB", _fitting(image.size))
        image.load()
    except NoPictureError:
        raise
    except Exception as error:  # decoders raise what they like about hostile bytes, and any of it means no
        raise NoPictureError("is damaged, or cut off") from error
    return image


def _on_paper(image: Image) -> Image:
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
        flat = Image.new("RGB", layer.size, PAPER)
        for top in range(0, layer.height, STRIP):  # in strips, because each is copied on its way
            strip = layer.crop((0, top, layer.width, min(top + STRIP, layer.height)))
            flat.paste(strip, (0, top), mask=strip)
    flat.info = image.info
    return flat


def _shrunk(image: Image) -> Image:
    size = _fitting(image.size)
    if size == image.size:
        return image
    small = image.resize(size, reducing_gap=2.0)
    small.info = image.info
    return small


def _fitting(size: tuple[int, int]) -> tuple[int, int]:
    """The size within our limits, in the same proportions."""
    width, height = size
    scale = min(1.0, MOST_EDGE / max(size), (MOST_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * scale + ROUNDING)), max(1, int(height * scale + ROUNDING))


def _set_upright(image: Image) -> None:
    """As the camera was held. A note about that which cannot be read is as good as none."""
    from PIL import ImageOps

    with contextlib.suppress(Exception):  # metadata is anybody's bytes; the pixels are all right
        ImageOps.exif_transpose(image, in_place=True)


def _encoded(image: Image) -> bytes:
    """Nothing that it knew besides its pixels goes along."""
    image.info = {}
    for quality in QUALITIES:
        target = io.BytesIO()
        image.save(target, "JPEG", quality=quality)
        if target.tell() <= MOST_BYTES:
            break
    return target.getvalue()
