"""Check the images of Instatic's browsers as Instatic's own server does."""

from base64 import b64decode

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.domain.image_header import MAX_IMAGE_EDGE_PIXELS, MAX_STORED_IMAGE_PIXELS, read_image_header
from fermata.wire.bodies.prompt_parts import ImagePart
from fermata.wire.bodies.turn_requests import ChatBody

_JPEG = "image/jpeg"
MAX_INSTATIC_IMAGE_BYTES = 1_500_000


def check_instatic_images(body: ChatBody) -> None:
    """Check a prompt's images: JPEG, at most 1.5 MB, and not larger than images are stored.

    Instatic's browsers re-encode every image before they send it, so an image of theirs always passes.

    Raises:
        InvalidRequest: An image has another type.
        PayloadTooLarge: An image has more bytes or pixels.
    """
    for part in body.content or []:
        if isinstance(part, ImagePart):
            _check_image(part)


def _check_image(part: ImagePart) -> None:
    if part.mime_type != _JPEG:
        raise InvalidRequest(f"Send images as {_JPEG}.")
    raw = b64decode(part.data or "")
    header = read_image_header(raw)
    if len(raw) > MAX_INSTATIC_IMAGE_BYTES:
        raise PayloadTooLarge(
            f"A picture has {len(raw) / 1e6:.1f} MB, and may have {MAX_INSTATIC_IMAGE_BYTES / 1e6:.1f} MB. "
            "Send a smaller one."
        )
    if header and (header.longest_edge > MAX_IMAGE_EDGE_PIXELS or header.pixel_count > MAX_STORED_IMAGE_PIXELS):
        raise PayloadTooLarge(
            f"An image may have {MAX_IMAGE_EDGE_PIXELS:,} pixels along its longer edge and "
            f"{MAX_STORED_IMAGE_PIXELS:,} in all; this one "
            f"is {header.width:,} by {header.height:,}. Send a smaller one."
        )
