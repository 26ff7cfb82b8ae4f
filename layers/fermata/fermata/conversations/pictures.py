"""Pictures of a conversation: they lie in the bucket as the bytes they are, and their rows know how large they are."""

import base64
import binascii

from fermata.aws.desk import Desk
from fermata.words.blocks import ImageBlock
from fermata.words.pictures import measure

Fetched = dict[str, bytes]
"""What was fetched from the bucket, by key."""


def stow(desk: Desk, folder: str, image: ImageBlock) -> ImageBlock | None:
    """The image with its bytes in the bucket; None when they are no picture, so that nobody ever sends them on."""
    measured = measured_image(image)
    if measured is None or image.data is None:
        return measured
    raw = base64.b64decode(image.data)
    return measured.model_copy(
        update={"data": None, "blob": desk.blobs.put_bytes(folder, raw, measured.mime_type), "size": len(raw)}
    )


def measured_image(image: ImageBlock) -> ImageBlock | None:
    """The image with its true kind and size; None when it holds no picture that anybody knows."""
    if image.data is None:
        return image if image.blob else None
    try:
        raw = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    picture = measure(raw)
    if picture is None:
        return None
    known = {"mime_type": picture.mime_type, "width": picture.width, "height": picture.height, "size": len(raw)}
    return image.model_copy(update=known)


def with_data(image: ImageBlock, fetched: Fetched) -> ImageBlock:
    if image.blob is None or image.data is not None:
        return image
    return image.model_copy(update={"data": base64.b64encode(fetched[image.blob]).decode()})
