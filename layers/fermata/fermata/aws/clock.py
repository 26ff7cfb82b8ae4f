"""Provide time and ids. Nothing else reads the system clock or generates ids, so that tests can control both."""

import re
import secrets
import string
import time
from datetime import UTC, datetime

_ALPHANUMERICS = string.ascii_letters + string.digits
_ID_CHARACTERS = _ALPHANUMERICS + "_-"
_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def iso_from_epoch(seconds: float) -> str:
    """Convert epoch seconds to an ISO 8601 instant in UTC with milliseconds, the form the API uses."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(size: int = 21) -> str:
    """Return a random id of `size` characters from `A-Za-z0-9_-`; 21 of them hold nearly 126 random bits.

    The first character is a letter or a digit, so that no command line mistakes an id for an option.
    """
    return secrets.choice(_ALPHANUMERICS) + "".join(secrets.choice(_ID_CHARACTERS) for _ in range(size - 1))


def is_valid_id(text: str) -> bool:
    """Return whether `text` has the form of an id. Anything else needs no lookup, and could exceed DynamoDB's keys."""
    return _ID_PATTERN.fullmatch(text) is not None


class Clock:
    """The clock and the sleep of one process. Tests replace it."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def now_iso(self, offset_seconds: float = 0) -> str:
        """Return the current time, shifted by `offset_seconds`, as an ISO instant."""
        return iso_from_epoch(self.time() + offset_seconds)
