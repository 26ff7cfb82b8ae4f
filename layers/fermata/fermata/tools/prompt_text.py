"""What a user typed, as a short piece of one line of a prompt."""

from collections.abc import Sequence

MAX_LINE_CHARS = 200


def to_single_line(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    one = " ".join(text.split())
    return one if len(one) <= max_chars else f"{one[:max_chars]}…"


def join_first_items(items: Sequence[str], max_items: int) -> str:
    """The first of them, how many more there are, or that there are none."""
    shown = [*items[:max_items], f"+{len(items) - max_items} more"] if len(items) > max_items else list(items)
    return ", ".join(shown) or "(none)"
