"""List the images that the user of a turn has sent in its conversation, as tools of a content space know them."""

import base64
from collections.abc import Sequence
from functools import partial

from fermata.aws.resources import Resources
from fermata.content.sent_image import SentImage
from fermata.domain.blocks import ImageBlock
from fermata.domain.messages import Message

MAX_SENT_IMAGES = 50
_WORDS_CHARS = 200


def list_sent_images(resources: Resources, messages: Sequence[Message]) -> list[SentImage]:
    """Return the images of users' messages, the newest first.

    Args:
        resources: Of the process.
        messages: Of the conversation, in their order.
    """
    found = []
    for message in reversed(messages):
        if message.role == "user":
            words = " ".join(block.text for block in message.content if block.kind == "text")[:_WORDS_CHARS]
            images = [block for block in message.content if block.kind == "image"]
            found += [
                SentImage(
                    f"sent:{message.position}:{number}",
                    message.created_at,
                    words,
                    image.mime_type,
                    partial(_load_image, resources, image),
                )
                for number, image in enumerate(images)
            ]
    return found[:MAX_SENT_IMAGES]


def _load_image(resources: Resources, image: ImageBlock) -> bytes:
    return resources.blobs.get_bytes(image.blob) if image.blob else base64.b64decode(image.data or "")
