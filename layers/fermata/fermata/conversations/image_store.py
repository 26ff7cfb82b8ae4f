"""Store images of a conversation in S3 as bytes; their blocks keep kind, size in pixels and size in bytes."""

import base64
import binascii

from fermata.aws.resources import Resources
from fermata.domain.blocks import ImageBlock
from fermata.domain.image_header import read_image_header


def store_image(resources: Resources, folder: str, image: ImageBlock) -> ImageBlock | None:
    """Store an image's bytes in S3.

    Returns:
        The block with the key of the blob; None when its data is no image of a known kind, so that it is never sent
        to a provider.
    """
    measured = measure_image_block(image)
    if measured is None or image.data is None:
        return measured
    raw = base64.b64decode(image.data)
    key = resources.blobs.put_bytes(folder, raw, measured.mime_type)
    return measured.model_copy(update={"data": None, "blob": key, "size": len(raw)})


def measure_image_block(image: ImageBlock) -> ImageBlock | None:
    """Return the block with the kind and size that its data has; None when the data is no image of a known kind.

    A block whose data is in S3 is returned unchanged.
    """
    if image.data is None:
        return image if image.blob else None
    try:
        raw = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    header = read_image_header(raw)
    if header is None:
        return None
    update = {"mime_type": header.mime_type, "width": header.width, "height": header.height, "size": len(raw)}
    return image.model_copy(update=update)
