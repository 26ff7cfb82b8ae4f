"""What Instatic's browsers send as an image, and what its server has always refused (contract instatic.md §1.3)."""

from base64 import b64decode

from fermata.wire.bodies import ChatBody, ImagePart
from fermata.words.errors import Invalid, TooLarge
from fermata.words.pictures import MOST_EDGE, MOST_PIXELS, measure

JPEG = "image/jpeg"
MOST_BYTES = 1_500_000


def check(body: ChatBody) -> None:
    """Its browsers draw every picture anew before they send it, so whatever is refused here was sent by mistake."""
    for part in body.content or []:
        if isinstance(part, ImagePart):
            _check(part)


def _check(part: ImagePart) -> None:
    if part.mime_type != JPEG:
        raise Invalid(f"Send images as {JPEG}.")
    raw = b64decode(part.data or "")
    picture = measure(raw)
    if len(raw) > MOST_BYTES:
        raise TooLarge(f"An image may have {MOST_BYTES:,} bytes at most. Send a smaller one.")
    if picture and (picture.edge > MOST_EDGE or picture.pixels > MOST_PIXELS):
        raise TooLarge(
            f"An image may have {MOST_EDGE:,} pixels along its longer edge and {MOST_PIXELS:,} in all; this one is "
            f"{picture.width:,} by {picture.height:,}. Send a smaller one."
        )
