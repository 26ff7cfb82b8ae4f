"""Read the type and the size of an image from its first bytes, as far as the checks need them."""

import base64

_PNG = b"\x89PNG\r\n\x1a\n"
_BEGINNINGS = {_PNG: "image/png", b"GIF8": "image/gif", b"\xff\xd8": "image/jpeg"}
_FRAME_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def find_media_type(data: str) -> str:
    """Return the type of a base64 image; empty if its first bytes are not of a PNG, GIF or JPEG."""
    content = base64.b64decode(data)
    return next((kind for beginning, kind in _BEGINNINGS.items() if content.startswith(beginning)), "")


def measure_longest_side(data: str) -> int:
    """Return the pixels of the longer side of a base64 image; 0 if it is not a PNG, GIF or JPEG with a header."""
    content = base64.b64decode(data)
    if content.startswith(_PNG):
        return max(int.from_bytes(content[16:20]), int.from_bytes(content[20:24]))
    if content.startswith(b"GIF8"):
        return max(int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little"))
    return _measure_jpeg(content) if content.startswith(b"\xff\xd8") else 0


def _measure_jpeg(content: bytes) -> int:
    """Go from segment to segment until one describes a frame."""
    place = 2
    while content[place : place + 1] == b"\xff":
        if content[place + 1] in _FRAME_MARKERS:
            return max(int.from_bytes(content[place + 5 : place + 7]), int.from_bytes(content[place + 7 : place + 9]))
        place += 2 + int.from_bytes(content[place + 2 : place + 4])
    return 0
