"""Read the files of messages, from data URLs or downloaded, as what a prompt has of them: texts, images, recordings.

Pictures and recordings are recognized by their first bytes, whatever they are said to be.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

from pydantic import ValidationError

from fermata.domain.audio_header import AUDIO_MIME_TYPES, normalize_audio_type, read_audio_type
from fermata.domain.blocks import AudioBlock, ImageBlock
from fermata.domain.errors import InvalidRequest
from fermata.domain.image_header import IMAGE_MIME_TYPES, read_image_header
from fermata.domain.run_settings import FileDownloadLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.file_download import DownloadedFile, FileDownloadError
from fermata.wire.bodies.prompt_parts import ImagePart

MAX_DOWNLOADED_BYTES = 10 * 1024 * 1024
"""Of all files of a message that are downloaded: the function has little memory."""
_WEB_ADDRESS = re.compile("https?:", re.IGNORECASE)
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w-]+=[^;,]*)*)(;base64)?,(.*)", re.DOTALL)
_TEXT_TYPES = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|x-yaml|javascript|sql|csv)|image/svg\+xml")

DownloadFile: TypeAlias = Callable[[str, FileDownloadLimits], DownloadedFile]
MessageContent: TypeAlias = str | ImageBlock | AudioBlock


@value_dataclass(frozen=True)
class MessageFile:
    """A file of a message, with the name and type that it is said to have."""

    name: str
    media_type: str
    content: bytes


class MessageFileReader:
    """Reads the files of one message: from data URLs, or downloaded through the address guard (decision 0366)."""

    def __init__(self, download: DownloadFile) -> None:
        """
        Args:
            download: Downloads a file that the message names by its address.
        """
        self._download = download
        self._bytes_left = MAX_DOWNLOADED_BYTES

    def read_ui_part(self, part: Mapping[str, Any]) -> MessageFile:
        """Return the file of a part of the AI SDK's messages.

        Raises:
            InvalidRequest: It cannot be read.
        """
        name, media_type = part.get("filename"), part.get("mediaType")
        shown = name if isinstance(name, str) and name else "a file"
        return self._read(shown[:200], media_type if isinstance(media_type, str) else "", part.get("url"))

    def read_agui_part(self, part: Mapping[str, Any]) -> MessageFile:
        """Return the file of a part of AG-UI's messages.

        Raises:
            InvalidRequest: It cannot be read.
        """
        kind = str(part.get("type"))[:40]
        source = part.get("source")
        if not isinstance(source, dict):
            raise InvalidRequest(f"The part {kind!r} of the message cannot be read: it has no 'source'.")
        media_type = str(source.get("mimeType") or source.get("mediaType") or "")
        value = source.get("value", source.get("data", source.get("url")))
        if source.get("type") == "data" and isinstance(value, str) and not value.startswith("data:"):
            value = f"data:{media_type or 'application/octet-stream'};base64,{value}"
        return self._read(str(part.get("filename") or kind)[:200], media_type, value)

    def _read(self, name: str, media_type: str, url: Any) -> MessageFile:
        if isinstance(url, str) and _WEB_ADDRESS.match(url):
            return self._fetch(name, media_type, url)
        matched = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
        if matched is None:
            raise InvalidRequest(f"The file {name!r} cannot be read: send its content as a data URL, or its address.")
        try:
            content = base64.b64decode(matched[4], validate=True) if matched[3] else unquote_to_bytes(matched[4])
        except (binascii.Error, ValueError):
            raise InvalidRequest(f"The file {name!r} cannot be read: its data URL is no base64.") from None
        return MessageFile(name, (matched[1] or media_type or "text/plain").lower(), content)

    def _fetch(self, name: str, media_type: str, url: str) -> MessageFile:
        try:
            file = self._download(url, FileDownloadLimits(max_bytes=max(1, self._bytes_left)))
        except FileDownloadError as error:
            raise InvalidRequest(f"The file {name!r} cannot be read ({error.code}): {error}") from None
        self._bytes_left -= len(file.data)
        return MessageFile(name, (file.media_type or media_type or "text/plain").lower(), file.data)


def open_message_file(file: MessageFile) -> MessageContent:
    """Return what a prompt has of a file: its text with its name, the image, or the recording.

    Raises:
        InvalidRequest: It is none of them, or not what it says it is.
    """
    if found := read_image_header(file.content):
        return _read_image(file, found.mime_type)
    sounds_like = read_audio_type(file.content)
    if sounds_like and not file.media_type.startswith("text/"):
        return AudioBlock(mime_type=sounds_like, data=base64.b64encode(file.content).decode())
    if file.media_type in IMAGE_MIME_TYPES or normalize_audio_type(file.media_type) in AUDIO_MIME_TYPES:
        raise InvalidRequest(f"The file {file.name!r} cannot be read: it is not the {file.media_type} it says it is.")
    if not _TEXT_TYPES.fullmatch(file.media_type):
        raise InvalidRequest(
            f"The file {file.name!r} cannot be read: it is of the type {file.media_type[:60]}. Send pictures "
            "(JPEG, PNG, GIF, WebP), recordings (MP3, WAV, M4A, WebM, Ogg) or text."
        )
    try:
        return f"Attached file: {file.name}\n\n{file.content.decode()}"
    except UnicodeDecodeError:
        raise InvalidRequest(f"The file {file.name!r} cannot be read: it is no text in UTF-8.") from None


def _read_image(file: MessageFile, mime_type: str) -> ImageBlock:
    data = base64.b64encode(file.content).decode()
    try:
        part = ImagePart.model_validate({"kind": "image", "mimeType": mime_type, "data": data})
    except ValidationError:
        raise InvalidRequest(f"The file {file.name!r} cannot be read: it is no whole {mime_type}.") from None
    return ImageBlock(mime_type=part.mime_type, data=part.data)
