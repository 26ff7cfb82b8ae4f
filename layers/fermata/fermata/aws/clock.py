"""Time and ids come from here, so that a test can hold them still."""

import re
import secrets
import string
import time
from datetime import UTC, datetime

ALPHANUMERICS = string.ascii_letters + string.digits
ID_CHARACTERS = ALPHANUMERICS + "_-"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def iso_from_epoch(seconds: float) -> str:
    """Epoch seconds as the ISO instant the wire speaks: UTC, milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(size: int = 21) -> str:
    """An id in the contract's form (instatic.md §1.1): 21 characters of `A-Za-z0-9_-`, nearly 126 random bits.

    It begins with a letter or a digit: no command line takes it for an option.
    """
    return secrets.choice(ALPHANUMERICS) + "".join(secrets.choice(ID_CHARACTERS) for _ in range(size - 1))


def is_valid_id(text: str) -> bool:
    """Whether it is worth looking for: anything else is nobody's, and DynamoDB refuses a key of any length."""
    return _ID.fullmatch(text) is not None


class Clock:
    """The wall clock, the stopwatch and the waiting of one process."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def now_iso(self, offset_seconds: float = 0) -> str:
        """Now, or `ahead` seconds from now, as an ISO instant."""
        return iso_from_epoch(self.time() + offset_seconds)
