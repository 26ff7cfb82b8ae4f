"""Normalize the images of a prompt: decode and re-encode each one before anything is stored (decision 0111).

A prompt with an invalid image is refused, because its user can send another.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.conversations import image_reencoding
from fermata.domain.blocks import Block, ImageBlock
from fermata.domain.caller import Caller
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError, check_image_header
from fermata.domain.errors import InvalidRequest, PayloadTooLarge

MAX_PROMPT_IMAGE_BYTES = 30_000_000
"""Of all images of a prompt together, as they were sent."""


def compute_block_identity(block: Block) -> Any:
    """Return a JSON value that is equal for equal content: for the same file, inline or uploaded, at any time."""
    if block.kind != "image" and block.kind != "audio":
        return block.to_wire()
    if block.blob:
        digest = uploads.parse_upload_ref(block.blob, block.kind).sha256
    else:
        digest = hashlib.sha256(base64.b64decode(block.data or "")).hexdigest()
    return [block.kind, block.mime_type, digest]


def normalize_prompt_images(
    resources: Resources, caller: Caller, content: Sequence[Block], image_paths: Sequence[str]
) -> tuple[Block, ...]:
    """Return the content with each image, inline or uploaded, as an inline JPEG within the limits.

    Args:
        image_paths: Where each image is in the request, for error messages.

    Raises:
        PayloadTooLarge, InvalidRequest: Naming the image.
    """
    images = [block for block in content if block.kind == "image"]
    if sum(map(_get_size, images)) > MAX_PROMPT_IMAGE_BYTES:
        raise PayloadTooLarge(
            f"A prompt's images may have {MAX_PROMPT_IMAGE_BYTES:,} bytes together. Send fewer, or smaller ones."
        )
    unnamed_paths = [f"image {number + 1}" for number in range(len(image_paths), len(images))]
    paths = iter([*image_paths, *unnamed_paths])
    return tuple(
        _normalize_image(resources, caller, block, next(paths)) if block.kind == "image" else block for block in content
    )


def _get_size(image: ImageBlock) -> int:
    return uploads.parse_upload_ref(image.blob, "image").size if image.blob else len(image.data or "") * 3 // 4


def _normalize_image(resources: Resources, caller: Caller, image: ImageBlock, path: str) -> ImageBlock:
    try:
        raw = _fetch_bytes(resources, caller, image)
        if check_image_header(raw).mime_type != image.mime_type:
            raise InvalidRequest(f"Invalid request body. '{path}' does not hold the {image.mime_type} it says it does.")
        data, header = image_reencoding.reencode_as_jpeg(raw)
    except ImageTooLargeError as error:
        raise PayloadTooLarge(f"Invalid request body. '{path}' {error}. Send a smaller one.") from error
    except InvalidImageError as error:
        raise InvalidRequest(f"Invalid request body. '{path}' {error}. Send another image.") from error
    return ImageBlock(mime_type=header.mime_type, data=base64.b64encode(data).decode())


def _fetch_bytes(resources: Resources, caller: Caller, image: ImageBlock) -> bytes:
    if image.blob:
        return uploads.fetch_upload(resources, caller, uploads.parse_upload_ref(image.blob, "image"))
    return base64.b64decode(image.data or "")
