"""Read in the words of a refusal that a request is too long for its model, and how long it may be (decision 0203)."""

import re

_TOO_LARGE = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|"
    r"(?:prompt|input|request)(?!\[\d+\]\.\w*(?:id|name)\b)\W{1,9}(?:\w{1,40}\W{1,9}){0,3}too (?:long|large)|"
    r"maximum prompt length|maximum number of tokens|too[ _]many[ _](?:input[ _])?tokens|reduce the length|"
    r"exceed\w{0,3} (?:the )?(?:model |model's )?(?:input )?token (?:limit|count)|max_model_len|range of input length|"
    r"(?:prompt|input|request|message)s?\W{0,3} (?:token |tokens |length )?(?:count |length )?(?:of )?"
    r"\(?[\d,]{0,12}\)? ?(?:tokens? )?exceeds? (?:the )?(?:\w{1,20} ){0,2}(?:limit|maximum)|token count exceeds|"
    r"message size \d{1,12} exceeds|"
    r"inputs?\W{0,3} tokens\b.{0,40}(?:<=|less than)|requested \d[\d,]{3,9} tokens, but",
    re.I | re.S,
)
_STATED_WINDOW = re.compile(
    r"(?:context|prompt) (?:length|size|window)(?: is| of)?(?: only)?\W{1,3}(\d[\d,]{3,9})\b(?! exceed)|"
    r"(?:tokens|\+ \d+) > (\d[\d,]{3,9})\b|with (\d[\d,]{3,9}) maximum context|tokens allowed \((\d[\d,]{3,9})\b",
    re.I,
)
"""Matches how large a context window is."""
_STATED_LIMIT = re.compile(
    r"(?:limit(?: of| is|:)?|maximum(?: of)?|only supports|max_model_len|<=|cannot exceed|\[1,) ?\(?(\d[\d,]{3,9})\b"
    r"(?!\W{0,2}(?:bytes|char|image|output|pixel|[km]i?b\b))",
    re.I,
)
"""Matches a limit in a refusal that does not call it a window."""
_RATE = re.compile(r"\blimit\W{1,3}(\d[\d,]{0,11})\W{1,4}requested\W{1,3}(\d[\d,]{0,11})", re.I)


def says_too_large(words: str) -> bool:
    """Return whether a refusal is about more tokens than the model takes."""
    return _TOO_LARGE.search(words) is not None


def find_stated_window(words: str) -> int | None:
    """Return how many tokens a request may have, if the refusal says so."""
    stated = _STATED_WINDOW.search(words) or _STATED_LIMIT.search(words)
    return _to_int(next(filter(None, stated.groups()))) if stated else None


def exceeds_rate_by_itself(words: str) -> bool:
    """Return whether a request has more tokens than the account may send in a minute, so that waiting does not help."""
    rate = _RATE.search(words)
    return rate is not None and _to_int(rate[2]) > _to_int(rate[1])


def _to_int(digits: str) -> int:
    return int(digits.replace(",", ""))
