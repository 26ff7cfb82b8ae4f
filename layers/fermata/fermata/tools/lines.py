"""What a user typed, as a short piece of one line of a prompt."""

from collections.abc import Sequence

LONGEST = 200


def one_line(text: str, longest: int = LONGEST) -> str:
    one = " ".join(text.split())
    return one if len(one) <= longest else f"{one[:longest]}…"


def few(items: Sequence[str], most: int) -> str:
    """The first of them, how many more there are, or that there are none."""
    shown = [*items[:most], f"+{len(items) - most} more"] if len(items) > most else list(items)
    return ", ".join(shown) or "(none)"
