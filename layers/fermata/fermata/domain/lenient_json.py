"""Read the JSON that models write for tool calls, as far as its meaning is plain (decision 0197).

Nothing is guessed: text that was cut off, or that means two things, is refused with the place of the error.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_QUOTED_CHARS = 500
"""Characters of unreadable text that a model is shown; of longer text, its beginning and its end."""
_MAX_UNWRAPPINGS = 3
_FENCED = re.compile(r"\s*```[a-z]*\s*\n(?P<text>.*?)\n?\s*```\s*", re.I | re.S)
_BETWEEN_MEMBERS = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|(?P<dropped>(?:\\[nrt])+|,(?=(?:\s|\\[nrt])*[}\]]))', re.S)
"""Matches strings, so that they are skipped, and what is left out outside of them."""
_SURPLUS = re.compile(r"[\s}\]]*")


class UnreadableJson(ValueError):
    """The text has no plain meaning. The message says where, and quotes the text with its end."""


def read_plain_json(text: str) -> Any:
    """Return the value that the text plainly means; nothing for an empty text is an empty object.

    Beyond JSON, these are read: raw line ends and tabs in strings, line ends written as two characters between members,
    a comma before a closing bracket, surplus closing brackets, a Markdown fence, the same value several times, empty
    objects beside another value, and a value that is encoded as text once more.

    Raises:
        UnreadableJson: The text is incomplete, contradicts itself, or is no JSON.
    """
    return _read(text, 0)


def read_strict_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        UnreadableJson: It is no JSON.
    """
    try:
        return _STRICT.decode(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableJson(_describe_problem(text, error)) from error


def _read(text: str, depth: int) -> Any:
    if not text.strip():
        return {}
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError):
        value = _read_repaired(text, depth)
    return _unwrap(value, depth)


def _unwrap(value: Any, depth: int) -> Any:
    """Read an object that is encoded as text once more; other texts stay texts."""
    if isinstance(value, str) and depth < _MAX_UNWRAPPINGS and value.lstrip()[:1] in ("{", "[", '"'):
        try:
            return _read(value, depth + 1)
        except UnreadableJson:
            return value
    return value


def _read_repaired(text: str, depth: int) -> Any:
    fenced = _FENCED.fullmatch(text)
    plain = fenced["text"] if fenced else text
    repaired = _BETWEEN_MEMBERS.sub(_blank_out, plain)
    try:
        return _choose_value([_unwrap(value, depth) for value in _iter_values(repaired)])
    except (ValueError, RecursionError) as error:
        if '\\"' in plain and (unescaped := _unescape(plain)) is not None and depth < _MAX_UNWRAPPINGS:
            try:
                return _read(unescaped, depth + 1)
            except UnreadableJson:
                pass
        raise UnreadableJson(_describe_problem(plain, error)) from error


def _blank_out(match: re.Match[str]) -> str:
    """Keep the length, so that places in the text stay the same."""
    return " " * len(match[0]) if match["dropped"] else match[0]


def _iter_values(text: str) -> Iterator[Any]:
    """Yield the values that follow each other in the text."""
    start = len(text) - len(text.lstrip())
    while start < len(text):
        value, end = _LENIENT.raw_decode(text, start)
        yield value
        rest = text[end:]
        if _SURPLUS.fullmatch(rest):
            return
        start = end + len(rest) - len(rest.lstrip())


def _choose_value(values: list[Any]) -> Any:
    meant = [value for value in values if value != {}] or values[:1]
    if any(value != meant[0] for value in meant[1:]):
        raise ValueError(f"{len(meant)} different values follow each other")
    return meant[0]


def _unescape(text: str) -> str | None:
    try:
        value = _LENIENT.decode(f'"{text}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _describe_problem(text: str, error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        place = f" at line {error.lineno}, column {error.colno} (character {error.pos + 1} of {len(text)})"
        return f"{error.msg}{place}. {quote_shortened(text)}"
    reason = "It is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return f"{reason}. {quote_shortened(text)}"


def quote_shortened(text: str) -> str:
    """Quote a text, or its beginning and its end if it is long."""
    if len(text) <= MAX_QUOTED_CHARS:
        return f"They were: {text}"
    half = MAX_QUOTED_CHARS // 2
    return f"They began: {text[:half]} … and ended: {text[-half:]}"


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite_float(text: str) -> float:
    """Refuse a number that is too large for a float: it would be written as `Infinity`, which is not JSON."""
    number = float(text)
    if math.isfinite(number):
        return number
    raise ValueError("a number is too large")


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite_float)
_LENIENT = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite_float, strict=False)
