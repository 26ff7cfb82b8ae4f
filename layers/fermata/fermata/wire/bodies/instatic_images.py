"""What Instatic's browsers send as an image, and what its server has always refused (contract instatic.md §1.3)."""

from base64 import b64decode

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.image_header import MAX_IMAGE_EDGE_PIXELS, MAX_STORED_IMAGE_PIXELS, read_image_header
from fermata.wire.bodies.requests import ChatBody, ImagePart

_JPEG = "image/jpeg"
MAX_INSTATIC_IMAGE_BYTES = 1_500_000


def check_instatic_images(body: ChatBody) -> None:
    """Its browsers draw every picture anew before they send it, so whatever is refused here was sent by mistake."""
    for part in body.content or []:
        if isinstance(part, ImagePart):
            _check(part)


def _check(part: ImagePart) -> None:
    if part.mime_type != _JPEG:
        raise InvalidRequest(f"Send images as {_JPEG}.")
    raw = b64decode(part.data or "")
    picture = read_image_header(raw)
    if len(raw) > MAX_INSTATIC_IMAGE_BYTES:
        raise PayloadTooLarge(f"An image may have {MAX_INSTATIC_IMAGE_BYTES:,} bytes at most. Send a smaller one.")
    if picture and (picture.longest_edge > MAX_IMAGE_EDGE_PIXELS or picture.pixel_count > MAX_STORED_IMAGE_PIXELS):
        raise PayloadTooLarge(
            f"An image may have {MAX_IMAGE_EDGE_PIXELS:,} pixels along its longer edge and "
            f"{MAX_STORED_IMAGE_PIXELS:,} in all; this one "
            f"is {picture.width:,} by {picture.height:,}. Send a smaller one."
        )
