"""Pictures of a conversation: they lie in the bucket as the bytes they are, and their rows know how large they are."""

import base64
import binascii

from fermata.aws.resources import Resources
from fermata.domain.blocks import ImageBlock
from fermata.domain.image_header import read_image_header

FetchedBlobs = dict[str, bytes]
"""What was fetched from the bucket, by key."""


def store_image(resources: Resources, folder: str, image: ImageBlock) -> ImageBlock | None:
    """The image with its bytes in the bucket; None when they are no picture, so that nobody ever sends them on."""
    measured = measure_image_block(image)
    if measured is None or image.data is None:
        return measured
    raw = base64.b64decode(image.data)
    return measured.model_copy(
        update={"data": None, "blob": resources.blobs.put_bytes(folder, raw, measured.mime_type), "size": len(raw)}
    )


def measure_image_block(image: ImageBlock) -> ImageBlock | None:
    """The image with its true kind and size; None when it holds no picture that anybody knows."""
    if image.data is None:
        return image if image.blob else None
    try:
        raw = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    picture = read_image_header(raw)
    if picture is None:
        return None
    known = {"mime_type": picture.mime_type, "width": picture.width, "height": picture.height, "size": len(raw)}
    return image.model_copy(update=known)


def load_image_data(image: ImageBlock, fetched: FetchedBlobs) -> ImageBlock:
    if image.blob is None or image.data is not None:
        return image
    return image.model_copy(update={"data": base64.b64encode(fetched[image.blob]).decode()})
