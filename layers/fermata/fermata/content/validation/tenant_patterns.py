"""Match patterns that tenants write, in time in proportion to the text whatever the pattern is (decision 0404)."""

import functools

import re2  # type: ignore[import-untyped]

MAX_PATTERN_CHARS = 1_000
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class BadPatternError(ValueError):
    """A pattern that cannot be matched: its grammar is wrong, or it looks around or back."""


@functools.lru_cache(maxsize=512)
def _compile_pattern(pattern: str) -> "re2._Regexp | None":
    try:
        return re2.compile(pattern, options=_OPTIONS) if len(pattern) <= MAX_PATTERN_CHARS else None
    except re2.error:
        return None


def contains_match(pattern: str, text: str) -> bool:
    """Return whether a part of the text matches the pattern.

    Raises:
        BadPatternError: The pattern cannot be matched.
    """
    compiled = _compile_pattern(pattern)
    if compiled is None:
        raise BadPatternError(pattern)
    return compiled.search(text) is not None
