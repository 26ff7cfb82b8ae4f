"""Normalize the images of tool results, so that every provider accepts them (decision 0111)."""

import base64
import binascii
from typing import Any

from fermata.conversations import image_reencoding
from fermata.domain.tools import ToolImage, ToolOutput

MAX_RESULT_IMAGES = 4
OMITTED_IMAGES_KEY = "imagesLeftOut"


def normalize_result_images(output: ToolOutput) -> ToolOutput:
    """Return the output with at most `MAX_RESULT_IMAGES` valid images, and a note about those that are left out."""
    if not output.images:
        return output
    images = [image for image in map(_normalize_image, output.images[:MAX_RESULT_IMAGES]) if image]
    omitted_count = len(output.images) - len(images)
    data = _add_omitted_note(output.data, omitted_count) if omitted_count else output.data
    return output.model_copy(update={"images": tuple(images) or None, "data": data})


def _normalize_image(image: ToolImage) -> ToolImage | None:
    """Return the image unchanged if it is valid and small enough, else re-encoded; None when it is no image."""
    try:
        raw = base64.b64decode(image.data, validate=True)
        if header := image_reencoding.accept_unchanged(raw):
            return image.model_copy(update={"mime_type": header.mime_type})
        data, header = image_reencoding.reencode_as_jpeg(raw)
    except (binascii.Error, ValueError, image_reencoding.InvalidImageError):
        return None
    return ToolImage(mime_type=header.mime_type, data=base64.b64encode(data).decode())


def _add_omitted_note(data: Any, omitted_count: int) -> dict[str, Any]:
    note = (
        f"{omitted_count} image(s): damaged, of an unknown kind, too large to open, or more than {MAX_RESULT_IMAGES}."
    )
    return (data if isinstance(data, dict) else {"data": data}) | {OMITTED_IMAGES_KEY: note}
