"""Tell a stored number that counts from one that this package cannot have written."""

from typing import TypeGuard

_MAX_COUNT = 10**17
"""More than this package counts, and later than the microseconds of this millennium."""


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a stored value is a number that counts something. Any other is damaged, and counts as missing."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
