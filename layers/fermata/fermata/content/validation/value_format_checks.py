"""Check what a type asks of a text or number beyond being one.

What defines the type is an error: a slug with blanks is no slug. What only estimates it is a warning, because real
values lie outside of every pattern: addresses, phone numbers, names of colours.
"""

import functools
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime

from fermata.content.fields import FieldType
from fermata.content.validation.content_problem import ContentProblem, ProblemKind
from fermata.content.validation.script_addresses import describe_script_address, runs_script

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_URL = re.compile(r"https?://.+|/.*", re.DOTALL)
_COLOR = re.compile(r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})|(?:rgb|hsl)a?\([^()]*\)|[a-zA-Z]+")
_PHONE = re.compile(r"\+?[0-9\s().-]+")
_FEWEST_PHONE_DIGITS = 4
_PERCENT = range(101)
_MEDIA_TYPES_BY_ENDING = {
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mov": "video/quicktime",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "json": "application/json",
    "csv": "text/csv",
    "txt": "text/plain",
}


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    try:
        return datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_email_address(text: str) -> bool:
    local, _, host = text.partition("@")
    labels = host.split(".")
    return bool(local) and len(labels) > 1 and all(labels) and "@" not in host and not any(map(str.isspace, text))


def _is_phone_number(text: str) -> bool:
    return _PHONE.fullmatch(text) is not None and sum(map(str.isdigit, text)) >= _FEWEST_PHONE_DIGITS


_TEXT_ERRORS: dict[FieldType, tuple[ProblemKind, Callable[[str], object], str]] = {
    FieldType.SLUG: ("slug", _SLUG.fullmatch, "has to consist of a-z, 0-9 and single hyphens between them"),
    FieldType.DATE: ("date", _is_date, "has to be a date such as 2026-01-31"),
    FieldType.DATETIME: ("datetime", _is_datetime, "has to be a time such as 2026-01-31T09:30:00Z"),
}
_TEXT_WARNINGS: dict[FieldType, tuple[ProblemKind, Callable[[str], object], str]] = {
    FieldType.EMAIL: ("email", _is_email_address, "may not be an e-mail address"),
    FieldType.URL: ("url", _URL.fullmatch, "may not be an address: it begins neither with http(s):// nor with /"),
    FieldType.COLOR: ("color", _COLOR.fullmatch, "may not be a colour: #rrggbb, rgb(), hsl() or its name"),
    FieldType.PHONE: ("phone", _is_phone_number, "may not be a phone number"),
}


def check_text_of_type(text: str, field_type: FieldType, path: str) -> Iterator[ContentProblem]:
    """Yield what a text lacks to be of its type. An empty one lacks nothing."""
    if not text:
        return
    if field_type is FieldType.URL and runs_script(text):
        yield describe_script_address(path)
    elif field_type in _TEXT_ERRORS:
        kind, matches, words = _TEXT_ERRORS[field_type]
        if not matches(text):
            yield ContentProblem(field=path, kind=kind, message=f"{path} {words}.")
    elif field_type in _TEXT_WARNINGS:
        kind, matches, words = _TEXT_WARNINGS[field_type]
        if not matches(text):
            yield ContentProblem(field=path, severity="warning", kind=kind, message=f"{path} {words}.")


def check_number_of_type(number: float, field_type: FieldType, path: str) -> Iterator[ContentProblem]:
    """Yield what a number lacks to be of its type. A rating has no scale of its own: its field has `min` and `max`."""
    if field_type is FieldType.INTEGER and isinstance(number, float) and not number.is_integer():
        yield ContentProblem(field=path, kind="type", message=f"{path} has to be a whole number.")
    elif field_type is FieldType.PERCENT and not _PERCENT[0] <= number <= _PERCENT[-1]:
        yield ContentProblem(field=path, kind="percent", message=f"{path} has to be from 0 to 100.")


def check_accepted_file(address: str, accept: str, path: str) -> Iterator[ContentProblem]:
    """Warn if a file's ending is not among the accepted ones. Its bytes are checked when it is uploaded.

    An ending that says nothing about the media type is no reason to warn.
    """
    name = address.partition("?")[0].partition("#")[0].rpartition("/")[2]
    _, dot, ending = name.rpartition(".")
    accepted = _parse_accepted(accept)
    if not accepted or not dot or not ending:
        return
    ending = ending.lower()
    media_type = _MEDIA_TYPES_BY_ENDING.get(ending, "")
    group = media_type.partition("/")[0]
    if f".{ending}" in accepted or (media_type and (media_type in accepted or f"{group}/*" in accepted)):
        return
    if media_type or any(entry.startswith(".") for entry in accepted):
        message = (
            f"{path} ends with .{ending[:20]}, which {accept[:200]} does not name. The upload checks the file itself."
        )
        yield ContentProblem(field=path, severity="warning", kind="accept", message=message)


@functools.lru_cache(maxsize=64)
def _parse_accepted(accept: str) -> frozenset[str]:
    return frozenset(entry for part in accept.split(",") if (entry := part.strip().lower()))
