"""Build the content of a prompt that has images."""

from collections.abc import Sequence
from pathlib import Path

from fermata_client.commands.common.errors import CommandError
from fermata_client.service.client import FermataClient
from fermata_client.service.json_types import JsonObject

MIME_TYPE_BY_SIGNATURE = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"RIFF": "image/webp",
}
"""MIME types by the first bytes of a file."""


def prompt_content(client: FermataClient, prompt: str, images: Sequence[Path]) -> list[JsonObject]:
    """Return the parts of a prompt with images. Large images are uploaded.

    Raises:
        CommandError: a file is not an image of a supported type.
    """
    return [{"kind": "text", "text": prompt}, *(_image_part(client, path) for path in images)]


def _image_part(client: FermataClient, path: Path) -> JsonObject:
    raw = path.read_bytes()
    mime_types = (mime for signature, mime in MIME_TYPE_BY_SIGNATURE.items() if raw.startswith(signature))
    mime_type = next(mime_types, None)
    if mime_type is None:
        raise CommandError(f"{path} is not an image that can be sent. Use a JPEG, PNG, WebP or GIF.")
    return client.image_part(raw, mime_type)
