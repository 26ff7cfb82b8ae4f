"""Find the name that an object of JSON gives to two of its members."""

from collections.abc import Iterable


def find_repeated_name(names: Iterable[str]) -> str | None:
    """Return the first name that comes again, in time in proportion to their number; None if each is there once."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
