"""Decode images that others have made: by the decoder of their kind alone, within bounds, upright (decision 0111).

Pillow is imported with the first image.
"""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError
from fermata.domain.image_header import MAX_INPUT_IMAGE_PIXELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

JPEG_MIME_TYPE = "image/jpeg"


def decode_image(
    raw: bytes, mime_type: str, choose_jpeg_size: Callable[[tuple[int, int]], tuple[int, int]] | None = None
) -> Image:
    """Decode an image completely.

    Args:
        raw: The bytes, whose header was checked.
        mime_type: What the header says that they are.
        choose_jpeg_size: Returns the size that is needed of an image of a size. A JPEG can be decoded directly at a
            half or a quarter of its own.

    Raises:
        InvalidImageError: The bytes are damaged.
        ImageTooLargeError: The image has more pixels inside than its header says.
    """
    from PIL import Image

    try:
        image: Image.Image = Image.open(io.BytesIO(raw), formats=[mime_type.removeprefix("image/").upper()])
        if image.width * image.height > MAX_INPUT_IMAGE_PIXELS[mime_type]:
            raise ImageTooLargeError("is larger inside than it says")
        if choose_jpeg_size and mime_type == JPEG_MIME_TYPE:
            image.draft("RGB", choose_jpeg_size(image.size))
        image.load()
    except InvalidImageError:
        raise
    except Exception as error:  # decoders raise any exception for malformed bytes
        raise InvalidImageError("is damaged, or cut off") from error
    return image


def to_eight_bits(image: Image) -> Image:
    """Return the image with eight bits a channel. Of 16 bits of grey, the upper eight are visible."""
    if not image.mode.startswith("I"):
        return image
    return image.convert("I").point(lambda grey: grey * (1 / 256)).convert("L")


def rotate_upright(image: Image) -> None:
    """Apply the EXIF orientation in place; malformed EXIF data counts as none."""
    from PIL import ImageOps

    with contextlib.suppress(Exception):  # metadata may be malformed in any way while the pixels are intact
        ImageOps.exif_transpose(image, in_place=True)
