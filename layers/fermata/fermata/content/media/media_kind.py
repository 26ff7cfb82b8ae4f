"""Tell by its bytes what kind of media a file is, and how large one of that kind may be (decision 0574)."""

from collections.abc import Iterator
from typing import NamedTuple

from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError
from fermata.domain.image_header import IMAGE_MIME_TYPES, read_image_header

AVIF, SVG, PDF = "image/avif", "image/svg+xml", "application/pdf"
MP4, WEBM = "video/mp4", "video/webm"
PIXEL_TYPES = (*IMAGE_MIME_TYPES, AVIF)
"""Images that are drawn anew."""
VIDEO_TYPES = (MP4, WEBM)
STORED_MEDIA_TYPES = (*PIXEL_TYPES, SVG, PDF, *VIDEO_TYPES)
MAX_MEDIA_BYTES = {
    **dict.fromkeys(PIXEL_TYPES, 15 * 1024 * 1024),
    SVG: 1024 * 1024,
    PDF: 50_000_000,
    **dict.fromkeys(VIDEO_TYPES, 100_000_000),
}
_MP4_BRANDS = frozenset({
    b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"iso7", b"iso8", b"iso9", b"mp41", b"mp42", b"avc1",
    b"M4V ", b"M4VH", b"M4VP", b"mmp4", b"dash", b"msdh", b"cmfc", b"MSNV", b"XAVC",
})  # fmt: skip
_MAX_BRAND_BYTES = 256
_MAX_BOXES = 10_000
_EBML = b"\x1a\x45\xdf\xa3"
_WEBM_DOCTYPE = b"\x42\x82\x84webm"
_EBML_HEADER_BYTES = 64
_PDF_START, _PDF_END, _PDF_END_BYTES = b"%PDF-", b"%%EOF", 2048
_XML_STARTS = (b"<svg", b"<?xml", b"<!--", b"<!DOCTYPE svg")
_SVG_NAME = b"<svg"
_START_BYTES = 4096


class Box(NamedTuple):
    """A box of a file of the family of MP4: its type, and where its content begins and ends."""

    kind: bytes
    start: int
    end: int


def detect_media_type(raw: bytes) -> str:
    """Return which of STORED_MEDIA_TYPES a file is.

    Raises:
        InvalidImageError: It is none, or it is cut off.
        ImageTooLargeError: It has more bytes than one of its kind may have.
    """
    found = _find_type(raw)
    if not found:
        raise InvalidImageError(f"is none of {', '.join(STORED_MEDIA_TYPES)}")
    if len(raw) > MAX_MEDIA_BYTES[found]:
        raise ImageTooLargeError(f"has {len(raw):,} bytes, and of {found} at most {MAX_MEDIA_BYTES[found]:,} are taken")
    if found == MP4 and not any(box.kind == b"moov" for box in iter_boxes(raw, 0, len(raw))):
        raise InvalidImageError("is a video that is cut off, or damaged")
    if found == PDF and _PDF_END not in raw[-_PDF_END_BYTES:]:
        raise InvalidImageError("is a PDF that is cut off, or damaged")
    return found


def _find_type(raw: bytes) -> str:
    if header := read_image_header(raw):
        return header.mime_type
    if raw[4:8] == b"ftyp":
        return _find_type_of_brands(raw)
    if raw.startswith(_EBML):
        return WEBM if _WEBM_DOCTYPE in raw[:_EBML_HEADER_BYTES] else ""
    start = raw[:_START_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()  # servers write such before a PDF, too
    if start.startswith(_PDF_START):
        return PDF
    return SVG if start.startswith(_XML_STARTS) and _SVG_NAME in start else ""


def _find_type_of_brands(raw: bytes) -> str:
    length = min(int.from_bytes(raw[:4], "big"), _MAX_BRAND_BYTES)
    brands = {raw[8:12], *(raw[at : at + 4] for at in range(16, length, 4))}
    if brands & {b"avif", b"avis"}:
        return AVIF
    return MP4 if raw[8:12] in _MP4_BRANDS else ""


def iter_boxes(raw: bytes, start: int, end: int) -> Iterator[Box]:
    """Iterate over the boxes in a part of a file, up to one that does not fit into it.

    Raises:
        InvalidImageError: There are too many.
    """
    count = 0
    while start + 8 <= end:
        count += 1
        if count > _MAX_BOXES:
            raise InvalidImageError(f"has more than {_MAX_BOXES:,} parts; save it anew")
        size, kind, content = int.from_bytes(raw[start : start + 4], "big"), raw[start + 4 : start + 8], start + 8
        if size == 1:
            size, content = int.from_bytes(raw[content : content + 8], "big"), content + 8
        stop = end if size == 0 else start + size
        if stop > end or stop < content:
            return
        yield Box(kind, content, stop)
        start = stop
