"""Create image headers of any size without image data, and real images with `make_image`."""

import base64
import io
from typing import Any

from PIL import Image


def make_jpeg_header(width: int = 40, height: int = 30, filler: int = 0) -> bytes:
    """Return a JPEG whose frame follows an application segment, as cameras write it."""
    frame = b"\xff\xc0" + (17).to_bytes(2, "big") + b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return (
        b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(9) + frame + bytes(10) + b"\xff\xda" + bytes(filler) + b"\xff\xd9"
    )


def make_png_header(width: int = 40, height: int = 30, filler: int = 0) -> bytes:
    header = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x06\x00\x00\x00" + bytes(4)
    return b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + header + bytes(filler)


def make_gif_header(width: int = 40, height: int = 30) -> bytes:
    return b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + bytes(8)


def make_webp_header(width: int = 40, height: int = 30) -> bytes:
    """Return the extended form, the only one that browsers write with metadata."""
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + bytes(4) + b"WEBPVP8X" + (10).to_bytes(4, "little") + bytes(4) + size + bytes(8)


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def make_image(width: int = 40, height: int = 30, kind: str = "JPEG", *, mode: str = "RGB", **options: Any) -> bytes:
    """Return an image that is red on the left and blue on the right. `options` are those of Pillow's `save`."""
    image = Image.new(mode, (width, height), "blue")
    image.paste("red", (0, 0, width // 2, height))
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


def open_image(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))
