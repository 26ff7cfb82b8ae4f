"""Format text from users and snapshots as short parts of one prompt line."""

from collections.abc import Sequence

MAX_LINE_CHARS = 200


def to_single_line(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Collapse white space into single spaces and cut the text at `max_chars`."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[:max_chars]}…"


def join_first_items(items: Sequence[str], max_items: int) -> str:
    """Join the first items with commas and count the rest (`a, b, +3 more`); an empty list is `(none)`."""
    shown = [*items[:max_items], f"+{len(items) - max_items} more"] if len(items) > max_items else list(items)
    return ", ".join(shown) or "(none)"
