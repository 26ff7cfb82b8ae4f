"""Pictures that go along with a prompt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fermata_client.commands.common import CommandError
from fermata_client.service.client import FermataClient

MIME_TYPE_BY_SIGNATURE = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"RIFF": "image/webp",
}
"""What the files of each kind begin with."""


def prompt_content(client: FermataClient, prompt: str, pictures: Sequence[Path]) -> list[dict[str, Any]]:
    """A prompt with its pictures; large ones are uploaded."""
    return [{"kind": "text", "text": prompt}, *(_part(client, path) for path in pictures)]


def _part(client: FermataClient, path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    kind = next((kind for beginning, kind in MIME_TYPE_BY_SIGNATURE.items() if raw.startswith(beginning)), None)
    if kind is None:
        raise CommandError(f"{path} is no picture that can be sent. Use a JPEG, PNG, WebP or GIF.")
    return client.image_part(raw, kind)
