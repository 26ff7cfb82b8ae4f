"""Fetch an image from a public address, so that it can become an asset."""

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from fermata.domain.errors import BadGateway, InvalidRequest, PayloadTooLarge
from fermata.domain.run_settings import FileDownloadLimits
from fermata.drivers.transport.file_download import FileDownloadCode, FileDownloadError, download_file

MAX_FETCHED_BYTES = 15 * 1024 * 1024
FETCH_MILLISECONDS = 15_000
_MAX_URL_CHARS = 2000
_MAX_FILENAME_CHARS = 120
_REFUSED_ADDRESSES = (FileDownloadCode.NOT_HTTPS, FileDownloadCode.NOT_PUBLIC)


def fetch_image(url: str) -> bytes:
    """Return the bytes of a file.

    Args:
        url: An https address on the public internet.

    Raises:
        InvalidRequest: The address is none that may be asked.
        PayloadTooLarge: The file is too large.
        BadGateway: Its server did not send it in time, or not at all.
    """
    if len(url) > _MAX_URL_CHARS:
        raise InvalidRequest(f"The address may have at most {_MAX_URL_CHARS:,} characters.")
    limits = FileDownloadLimits(max_bytes=MAX_FETCHED_BYTES, timeout=FETCH_MILLISECONDS)
    try:
        return download_file(url, limits).data
    except FileDownloadError as error:
        if error.code in _REFUSED_ADDRESSES:
            raise InvalidRequest(f"{error} Use a public https address.") from error
        if error.code is FileDownloadCode.TOO_LARGE:
            raise PayloadTooLarge(f"{error} Use a smaller file.") from error
        raise BadGateway(f"{error} Check the address, or try again.") from error


def name_file_of_url(url: str) -> str:
    """Return the name of the file that an address names, or `image`."""
    try:
        name = PurePosixPath(unquote(urlsplit(url).path)).name
    except ValueError:
        return "image"
    printable = "".join(letter for letter in name if letter.isprintable() and letter not in '<>"/\\')
    return printable[-_MAX_FILENAME_CHARS:] or "image"
