"""Read in the words of a refusal whether it is about images, and whether the model reads any (decision 0343).

The words need not say much: when images were sent, a refusal that mentions one is answered by sending fewer of them.
"""

import re
from enum import Enum

from fermata.domain.model_io import ModelRequest

_FORMAT = r"(?!\W{1,3}(?:format|type|mime|media|size|file|dimension|extension|encoding|url))"
_NO_IMAGES = re.compile(
    r"(?:not|n't) (?:support|accept|understand)\w{0,3}\W{1,3}(?:\w{1,20}\W{1,3}){0,2}"
    rf"(?:images?|vision|multi-?modal\w{{0,4}})\b{_FORMAT}|"
    r"image inputs? (?:is|are) not|images (?:inputs? )?are not (?:supported|enabled|allowed|available)|"
    r"no endpoints found that support image|image_url is only supported|"
    r"unknown variant\W{0,3}(?:image_url|input_image)|"
    r"image_url\W{1,4}supported values are|image_url\W{0,3}(?: is)? not supported|data required for image|\bmmproj\b|"
    r"at most 0 image|not a (?:multi-?modal|vision)|\btext-only\b|"
    r"content\b\W{0,3}(?:input )?(?:must|should) be a (?:valid )?string",
    re.I,
)
"""Matches what is said of a model without vision. A list as content is an image beside a text."""
_TOO_MANY = re.compile(
    r"too[ _]many[ _]images|many-image|at most \d{1,4} images?|"
    r"(?:number|count) of images.{0,40}\b(?:exceed|limit|at most|maximum)|"
    r"(?:exceed|limit|maximum)\w{0,9}\b.{0,40}\b(?:number of images|\d images)",
    re.I | re.S,
)
_IMAGE = re.compile(
    r"(?<![-/\w])(?:images?|pictures?|vision|multi-?modal)\b(?!-)|\bimage_url\b|\binput_image\b|\binline_?data\b|"
    r"\bimage/[a-z]{3}|\bmedia_type\b",
    re.I,
)
"""Matches a mention of an image, but no name of a model or a tool."""


class ImageRefusal(Enum):
    """What a refusal says of images."""

    UNREADABLE = 1
    TOO_MANY = 2
    MODEL_IS_BLIND = 3


def find_image_refusal(words: str) -> ImageRefusal | None:
    """Return what a refusal says of images; None if it mentions none."""
    if _NO_IMAGES.search(words):
        return ImageRefusal.MODEL_IS_BLIND
    if _TOO_MANY.search(words):
        return ImageRefusal.TOO_MANY
    return ImageRefusal.UNREADABLE if _IMAGE.search(words) else None


def carries_images(request: ModelRequest) -> bool:
    """Return whether a request has images, so that a refusal can be about one."""
    blocks = (block for message in request.messages for block in message.content)
    return any(block.kind == "image" or (block.kind == "toolResult" and bool(block.images)) for block in blocks)
