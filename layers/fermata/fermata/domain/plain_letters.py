"""Remove the marks of letters: accents, dots, and whatever else Unicode combines with a letter."""

import functools
import unicodedata

_KEPT_CHARACTERS = 16_384


def remove_marks(text: str) -> str:
    """Return a text in compatible letters without marks (NFKD without combining characters).

    Each character is taken apart by itself: Unicode sorts the marks of a letter, which takes the square of their
    number, and nothing bounds it.
    """
    return text if text.isascii() else "".join(map(_remove_marks_of, text))


@functools.lru_cache(maxsize=_KEPT_CHARACTERS)
def _remove_marks_of(character: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", character) if not unicodedata.combining(part))
