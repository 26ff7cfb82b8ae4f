"""What comes in from outside is made fit before anything of it is stored: a prompt's images, and those of results.

A prompt with an image that cannot be drawn is refused; its user can send another. A result with one goes on without
it, and says so to the model.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.conversations import image_reencoding
from fermata.domain.blocks import Block, ImageBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.tools import ToolImage, ToolOutput

MAX_PROMPT_IMAGE_BYTES = 30_000_000
"""Bytes of a prompt's images before they are drawn."""
MAX_RESULT_IMAGES = 4
"""Of one result; a screenshot is one."""
OMITTED_IMAGES_KEY = "imagesLeftOut"


def normalize_prompt_images(
    resources: Resources, caller: Caller, content: Sequence[Block], image_paths: Sequence[str]
) -> tuple[Block, ...]:
    """The prompt with its images as JPEGs of ours. `places` says where each stands in the request."""
    images = [block for block in content if block.kind == "image"]
    if sum(map(_size, images)) > MAX_PROMPT_IMAGE_BYTES:
        raise PayloadTooLarge(
            f"A prompt's images may have {MAX_PROMPT_IMAGE_BYTES:,} bytes together. Send fewer, or smaller ones."
        )
    named = iter([*image_paths, *[f"image {number + 1}" for number in range(len(image_paths), len(images))]])
    return tuple(_drawn(resources, caller, block, next(named)) if block.kind == "image" else block for block in content)


def _size(image: ImageBlock) -> int:
    return uploads.parse_upload_ref(image.blob, "image").size if image.blob else len(image.data or "") * 3 // 4


def _drawn(resources: Resources, caller: Caller, image: ImageBlock, place: str) -> ImageBlock:
    try:
        raw = _raw(resources, caller, image)
        if image_reencoding.check_image_header(raw).mime_type != image.mime_type:
            raise InvalidRequest(
                f"Invalid request body. '{place}' does not hold the {image.mime_type} it says it does."
            )
        data, picture = image_reencoding.reencode_as_jpeg(raw)
    except image_reencoding.ImageTooLargeError as error:
        raise PayloadTooLarge(f"Invalid request body. '{place}' {error}. Send a smaller one.") from error
    except image_reencoding.InvalidImageError as error:
        raise InvalidRequest(f"Invalid request body. '{place}' {error}. Send another image.") from error
    return ImageBlock(mime_type=picture.mime_type, data=base64.b64encode(data).decode())


def _raw(resources: Resources, caller: Caller, image: ImageBlock) -> bytes:
    if image.blob:
        return uploads.fetch_upload(resources, caller, uploads.parse_upload_ref(image.blob, "image"))
    return base64.b64decode(image.data or "")


def normalize_result_images(output: ToolOutput) -> ToolOutput:
    """The output with images that every provider takes; the model is told how many there were besides."""
    if not output.images:
        return output
    fit = [image for image in map(_fit, output.images[:MAX_RESULT_IMAGES]) if image]
    lost = len(output.images) - len(fit)
    data = _told(output.data, lost) if lost else output.data
    return output.model_copy(update={"images": tuple(fit) or None, "data": data})


def _fit(image: ToolImage) -> ToolImage | None:
    """As it is when it can be decoded and is small enough, else drawn anew; None when it is no picture."""
    try:
        raw = base64.b64decode(image.data, validate=True)
        if picture := image_reencoding.accept_unchanged(raw):
            return image.model_copy(update={"mime_type": picture.mime_type})
        data, picture = image_reencoding.reencode_as_jpeg(raw)
    except (binascii.Error, ValueError, image_reencoding.InvalidImageError):
        return None
    return ToolImage(mime_type=picture.mime_type, data=base64.b64encode(data).decode())


def _told(data: Any, lost: int) -> dict[str, Any]:
    said = f"{lost} image(s): damaged, of an unknown kind, too large to open, or more than {MAX_RESULT_IMAGES}."
    return (data if isinstance(data, dict) else {"data": data}) | {OMITTED_IMAGES_KEY: said}
