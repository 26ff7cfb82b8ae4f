"""Write where a page of a list ends as an opaque text, and read it when the next page is asked for."""

import base64
import binascii
import re

from fermata.domain.errors import InvalidRequest


def encode_page_cursor(*parts: str) -> str:
    """Return the cursor behind an item. None of the parts may contain a space."""
    return base64.urlsafe_b64encode(" ".join(parts).encode()).decode().rstrip("=")


def decode_page_cursor(cursor: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return the parts of a cursor.

    Args:
        cursor: What the caller sent.
        pattern: Matches the parts with a space between them, each in a group.

    Raises:
        InvalidRequest: It is no cursor of this list.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except (binascii.Error, ValueError):
        text = ""
    return match_page_cursor(text, pattern).groups()


def match_page_cursor(text: str, pattern: re.Pattern[str]) -> re.Match[str]:
    """Return the match of a cursor.

    Raises:
        InvalidRequest: It is no cursor of this list.
    """
    match = pattern.fullmatch(text)
    if match is None:
        raise InvalidRequest("'cursor' must be the nextCursor of the page before.")
    return match
