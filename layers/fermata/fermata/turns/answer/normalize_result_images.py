"""Normalize the images of tool results, so that every provider accepts them (decision 0111).

An image that is too large for the request was uploaded before, and the posted result has its reference (decision 0305).
"""

import base64
import binascii
from typing import Any

from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.conversations import image_reencoding
from fermata.domain.caller import Caller
from fermata.domain.check_image_header import InvalidImageError
from fermata.domain.tools import ToolImage, ToolOutput

MAX_RESULT_IMAGES = 4
OMITTED_IMAGES_KEY = "imagesLeftOut"


def identify_uploaded_images(posted: Any) -> Any:
    """Return the posted result with the digest of each uploaded image in place of its reference.

    The result is the same when its images were uploaded again.

    Raises:
        InvalidRequest: A reference is none.
    """
    images = posted.get("images") if isinstance(posted, dict) else None
    if not isinstance(images, list) or not any(map(_get_upload_ref, images)):
        return posted
    return posted | {"images": [_identify_image(image) for image in images]}


def _identify_image(image: Any) -> Any:
    ref = _get_upload_ref(image)
    return image | {"uploadRef": uploads.parse_upload_ref(ref, "image").sha256} if ref else image


def fetch_uploaded_images(resources: Resources, caller: Caller, posted: Any) -> Any:
    """Return the posted result with the data of each uploaded image in place of its reference.

    Only as many as a result may have are fetched.

    Raises:
        ApiError: An upload cannot be fetched.
    """
    images = posted.get("images") if isinstance(posted, dict) else None
    if not isinstance(images, list) or not any(map(_get_upload_ref, images)):
        return posted
    fetched = [
        _fetch_image(resources, caller, image) if place < MAX_RESULT_IMAGES else image | {"data": ""}
        for place, image in enumerate(images)
    ]
    return posted | {"images": [{name: image[name] for name in ("mimeType", "data")} for image in fetched]}


def _fetch_image(resources: Resources, caller: Caller, image: dict[str, Any]) -> dict[str, Any]:
    ref = _get_upload_ref(image)
    if not ref:
        return image
    raw = uploads.fetch_upload(resources, caller, uploads.parse_upload_ref(ref, "image"))
    return image | {"data": base64.b64encode(raw).decode()}


def _get_upload_ref(image: Any) -> str:
    return (image.get("uploadRef") or "") if isinstance(image, dict) else ""


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
    except (binascii.Error, ValueError, InvalidImageError):
        return None
    return ToolImage(mime_type=header.mime_type, data=base64.b64encode(data).decode())


def _add_omitted_note(data: Any, omitted_count: int) -> dict[str, Any]:
    note = (
        f"{omitted_count} image(s): damaged, of an unknown kind, too large to open, or more than {MAX_RESULT_IMAGES}."
    )
    return (data if isinstance(data, dict) else {"data": data}) | {OMITTED_IMAGES_KEY: note}
