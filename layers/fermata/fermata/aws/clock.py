"""Time and ids come from here, so that a test can hold them still."""

import re
import secrets
import string
import time
from datetime import UTC, datetime

PLAIN = string.ascii_letters + string.digits
ALPHABET = PLAIN + "_-"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def instant(seconds: float) -> str:
    """Epoch seconds as the ISO instant the wire speaks: UTC, milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(size: int = 21) -> str:
    """An id in the contract's form (instatic.md §1.1): 21 characters of `A-Za-z0-9_-`, nearly 126 random bits.

    It begins with a letter or a digit: no command line takes it for an option.
    """
    return secrets.choice(PLAIN) + "".join(secrets.choice(ALPHABET) for _ in range(size - 1))


def may_be_id(text: str) -> bool:
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

    def instant(self, ahead: float = 0) -> str:
        """Now, or `ahead` seconds from now, as an ISO instant."""
        return instant(self.time() + ahead)
