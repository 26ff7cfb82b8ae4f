"""Read the JSON that models write for tool calls, as far as its meaning is plain (decisions 0197 and 0207).

Nothing is guessed: text that was cut off, or that means two things, is refused with the place of the error.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from fermata.domain.surrogates_and_infinities import to_storable_json

MAX_QUOTED_CHARS = 500
"""Characters of unreadable text that a model is shown; of longer text, its beginning and its end."""
MAX_JSON_MEMBERS = 250_000
"""A value with more takes many times the memory of its text. No tool and no provider sends a hundredth of them."""
_MAX_UNWRAPPINGS = 3
_SURPLUS = re.compile(r"[\s}\]]*")
_NUMBER = re.compile(r"[\[:,]\s*+(?P<number>NaN|-?Infinity|-?[\d.]++e\+?\d{3})", re.I)
"""Matches the place of a number that JSON cannot hold, nearly always."""
_WORDS_BEFORE = re.compile(r"\s*+(?:\[[A-Z_]{2,20}\]\s*+|[A-Za-z<][^\"{}\[\]\\]*+)++(?=\{)")
_WORDS_BEHIND = re.compile(r"[\s}\]]*[A-Za-z<`);][^\"{}\[\]\\]*\Z")
"""Words and marks of a template around an object. Text with quotation marks or brackets may be a part of it."""


class UnreadableJson(ValueError):
    """The text has no plain meaning. The message says where, and quotes the text with its end."""


def read_plain_json(text: str) -> Any:
    """Return the storable value that the text plainly means; an empty text, or one that is encoded, is an empty object.

    Beyond JSON, these are read: raw line ends and tabs in strings, line ends written as two characters between members,
    a comma before a closing bracket, surplus closing brackets, a Markdown fence, words before or behind an object, the
    same value several times, empty objects beside another value, a value that is encoded as text once more, and the
    quotation marks, constants, bare names and comments of Python and JavaScript.

    Raises:
        UnreadableJson: The text is incomplete, contradicts itself, is no JSON or has too many members.
    """
    value = _read(text, 0)
    if isinstance(value, str) and not value.strip():
        return {}
    return to_storable_json(value) if "\\ud" in text.lower() else value


def read_strict_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        UnreadableJson: It is no JSON, or has too many members.
    """
    try:
        _check_members(text)
        return _STRICT.decode(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableJson(_describe_problem(text, error)) from error


def read_bounded_json(text: str) -> Any:
    """Return the value of a JSON text as Python reads it, with numbers that JSON does not have.

    Raises:
        UnreadableJson: It is no JSON, is nested too deeply, or has too many members.
    """
    try:
        _check_members(text)
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableJson(_describe_problem(text, error)) from error


def has_too_many_members(text: str) -> bool:
    """Return whether a JSON text holds more members than any value that is meant; cheap for all usual texts."""
    return len(text) > MAX_JSON_MEMBERS and sum(map(text.count, ",{[")) > MAX_JSON_MEMBERS


def _check_members(text: str) -> None:
    if has_too_many_members(text):
        raise ValueError("It has too many members")


def _read(text: str, depth: int) -> Any:
    text = text.strip().removeprefix("\ufeff")
    if not text:
        return {}
    try:
        _check_members(text)
    except ValueError as error:
        raise UnreadableJson(_describe_problem(text, error)) from error
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
    from fermata.domain import json_repairs  # its patterns are for text that is no JSON

    plain = json_repairs.strip_doubled_braces(json_repairs.strip_fence(text))
    try:
        return _read_values(json_repairs.blank_misplaced_characters(plain), depth)
    except (ValueError, RecursionError) as error:
        try:
            return _read_differently(plain, depth)
        except (ValueError, RecursionError):
            raise UnreadableJson(_describe_problem(plain, error)) from error


def _read_differently(text: str, depth: int) -> Any:
    """Read a text whose quotation marks are all escaped, or in the notation of another language.

    Raises:
        ValueError: It is neither.
    """
    from fermata.domain.json_repairs import translate_notation, unescape  # its patterns are for text that is no JSON

    if '\\"' in text and depth < _MAX_UNWRAPPINGS and (unescaped := unescape(text)) is not None:
        return _read(unescaped, depth + 1)
    return _read_values(translate_notation(text), depth)


def _read_values(text: str, depth: int) -> Any:
    """Return the only value of the text that is not empty, however often it comes."""
    chosen: Any = {}
    for start, raw in _iter_values(text):
        value = _unwrap(raw, depth)
        if chosen == {}:
            chosen = value
        elif value not in ({}, chosen):
            raise json.JSONDecodeError("Another value follows", text, start)
    return chosen


def _iter_values(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the values that follow each other in the text, each with its place."""
    words = _WORDS_BEFORE.match(text)
    start = words.end() if words else len(text) - len(text.lstrip())
    while start < len(text):
        value, end = _LENIENT.raw_decode(text, start)
        yield start, value
        surplus = _SURPLUS.match(text, end)
        start = surplus.end() if surplus else end
        if start == len(text) or (isinstance(value, dict) and _WORDS_BEHIND.match(text, end)):
            return
        if text[end:start].strip():  # a bracket too many, and then something else
            raise json.JSONDecodeError("Extra data", text, end)


def _describe_problem(text: str, error: Exception) -> str:
    if isinstance(error, _RefusedNumber) and (number := _NUMBER.search(text)):
        error = json.JSONDecodeError(str(error), text, number.start("number"))
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


class _RefusedNumber(ValueError):
    """A number that JSON cannot hold."""


def _refuse_constant(constant: str) -> NoReturn:
    raise _RefusedNumber(f"{constant} is not JSON")


def _parse_finite_float(text: str) -> float:
    """Refuse a number that is too large for a float: it would be written as `Infinity`, which is not JSON."""
    number = float(text)
    if math.isfinite(number):
        return number
    raise _RefusedNumber("A number is too large")


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite_float)
_LENIENT = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite_float, strict=False)
