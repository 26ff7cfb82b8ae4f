"""What comes in from outside is made fit before anything of it is stored: a prompt's images, and those of results.

A prompt with an image that cannot be drawn is refused; its user can send another. A result with one goes on without
it, and says so to the model.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from fermata.aws import uploads
from fermata.aws.desk import Desk
from fermata.conversations import imaging
from fermata.words.blocks import Block, ImageBlock
from fermata.words.caller import Caller
from fermata.words.errors import Invalid, TooLarge
from fermata.words.tools import ToolImage, ToolOutput

MOST_TOGETHER = 30_000_000
"""Bytes of a prompt's images before they are drawn."""
MOST_RESULT_IMAGES = 4
"""Of one result; a screenshot is one."""
LEFT_OUT = "imagesLeftOut"


def drawn_content(desk: Desk, caller: Caller, content: Sequence[Block], places: Sequence[str]) -> tuple[Block, ...]:
    """The prompt with its images as JPEGs of ours. `places` says where each stands in the request."""
    images = [block for block in content if block.kind == "image"]
    if sum(map(_size, images)) > MOST_TOGETHER:
        raise TooLarge(f"A prompt's images may have {MOST_TOGETHER:,} bytes together. Send fewer, or smaller ones.")
    named = iter([*places, *[f"image {number + 1}" for number in range(len(places), len(images))]])
    return tuple(_drawn(desk, caller, block, next(named)) if block.kind == "image" else block for block in content)


def _size(image: ImageBlock) -> int:
    return uploads.read_ref(image.blob, "image").size if image.blob else len(image.data or "") * 3 // 4


def _drawn(desk: Desk, caller: Caller, image: ImageBlock, place: str) -> ImageBlock:
    try:
        raw = _raw(desk, caller, image)
        if imaging.checked(raw).mime_type != image.mime_type:
            raise Invalid(f"Invalid request body. '{place}' does not hold the {image.mime_type} it says it does.")
        data, picture = imaging.drawn(raw)
    except imaging.HugePictureError as error:
        raise TooLarge(f"Invalid request body. '{place}' {error}. Send a smaller one.") from error
    except imaging.NoPictureError as error:
        raise Invalid(f"Invalid request body. '{place}' {error}. Send another image.") from error
    return ImageBlock(mime_type=picture.mime_type, data=base64.b64encode(data).decode())


def _raw(desk: Desk, caller: Caller, image: ImageBlock) -> bytes:
    if image.blob:
        return uploads.fetch(desk, caller, uploads.read_ref(image.blob, "image"))
    return base64.b64decode(image.data or "")


def with_fit_images(output: ToolOutput) -> ToolOutput:
    """The output with images that every provider takes; the model is told how many there were besides."""
    if not output.images:
        return output
    fit = [image for image in map(_fit, output.images[:MOST_RESULT_IMAGES]) if image]
    lost = len(output.images) - len(fit)
    data = _told(output.data, lost) if lost else output.data
    return output.model_copy(update={"images": tuple(fit) or None, "data": data})


def _fit(image: ToolImage) -> ToolImage | None:
    """As it is when it can be decoded and is small enough, else drawn anew; None when it is no picture."""
    try:
        raw = base64.b64decode(image.data, validate=True)
        if picture := imaging.as_it_is(raw):
            return image.model_copy(update={"mime_type": picture.mime_type})
        data, picture = imaging.drawn(raw)
    except (binascii.Error, ValueError, imaging.NoPictureError):
        return None
    return ToolImage(mime_type=picture.mime_type, data=base64.b64encode(data).decode())


def _told(data: Any, lost: int) -> dict[str, Any]:
    said = f"{lost} image(s): damaged, of an unknown kind, too large to open, or more than {MOST_RESULT_IMAGES}."
    return (data if isinstance(data, dict) else {"data": data}) | {LEFT_OUT: said}
