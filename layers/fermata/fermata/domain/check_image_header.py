"""Refuse what is no image, or one that costs too much to decode, by its header alone (decision 0111)."""

from fermata.domain.image_header import (
    IMAGE_MIME_TYPES,
    MAX_IMAGE_PARTS,
    MAX_INPUT_IMAGE_PIXELS,
    MAX_JPEG_SCANS,
    ImageHeader,
    has_too_many_parts,
    has_too_many_scans,
    read_image_header,
)

_JPEG_MIME_TYPE = "image/jpeg"


class InvalidImageError(Exception):
    """The bytes are no image that is accepted. The error message is the predicate of a sentence about the image."""


class ImageTooLargeError(InvalidImageError):
    """The image has more pixels than are decoded."""


def check_image_header(raw: bytes) -> ImageHeader:
    """Return what the first bytes of an image state. The image is not decoded, so it may still be damaged.

    Raises:
        InvalidImageError: The bytes are of no accepted kind.
        ImageTooLargeError: The header states more pixels than are decoded of that kind.
    """
    header = read_image_header(raw)
    if header is None:
        raise InvalidImageError(f"is none of {', '.join(IMAGE_MIME_TYPES)}")
    max_pixels = MAX_INPUT_IMAGE_PIXELS[header.mime_type]
    if header.pixel_count > max_pixels:
        size = f"{header.width:,} by {header.height:,} pixels"
        raise ImageTooLargeError(f"has {size}, and of {header.mime_type} at most {max_pixels:,} in all are taken")
    if header.mime_type in (_JPEG_MIME_TYPE, "image/png") and has_too_many_parts(raw):
        raise InvalidImageError(f"has more than {MAX_IMAGE_PARTS:,} parts; save it anew")
    if header.mime_type == _JPEG_MIME_TYPE and has_too_many_scans(raw):
        raise InvalidImageError(f"is a JPEG of more than {MAX_JPEG_SCANS} scans; save it with fewer, or as a PNG")
    return header
