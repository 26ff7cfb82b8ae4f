"""Match patterns that tenants write, in time in proportion to the text, whatever they are (decisions 0404 and 0559)."""

import functools

import re2  # type: ignore[import-untyped]

MAX_PATTERN_CHARS = 1_000
MAX_PATTERN_STEPS = 300_000_000
"""About six seconds, which real patterns are far from: where a text is not made to be slow, a byte takes one step."""
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class BadPatternError(ValueError):
    """A pattern that cannot be matched: its grammar is wrong, or it looks around or back."""


class PatternTooCostly(BadPatternError):
    """The patterns of a document might take too long for all of its texts together."""


class PatternBudget:
    """Counts what the patterns of a document may take at most: the steps of each for each byte of its texts.

    A pattern of 1,000 characters may have 100,000 steps, all of which an adverse text takes for each of its bytes.
    """

    def __init__(self, steps: int = MAX_PATTERN_STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Take steps from what is left.

        Raises:
            PatternTooCostly: There are not so many left.
        """
        if steps > self._left:
            raise PatternTooCostly
        self._left -= steps


@functools.lru_cache(maxsize=512)
def _compile_pattern(pattern: str) -> "re2._Regexp | None":
    try:
        return re2.compile(pattern, options=_OPTIONS) if len(pattern) <= MAX_PATTERN_CHARS else None
    except re2.error:
        return None


def contains_match(pattern: str, text: str, budget: PatternBudget | None = None) -> bool:
    """Return whether a part of the text matches the pattern.

    Args:
        pattern: A regular expression.
        text: Where it is looked for.
        budget: That of the document; without it, that of this text.

    Raises:
        BadPatternError: The pattern cannot be matched.
        PatternTooCostly: It might take too long, and was not tried.
    """
    compiled = _compile_pattern(pattern)
    if compiled is None:
        raise BadPatternError(pattern)
    (budget or PatternBudget()).spend(compiled.programsize * len(text))
    return compiled.search(text) is not None
