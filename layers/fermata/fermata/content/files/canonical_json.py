"""Write JSON with one text for each value, and read it without guessing.

Keys are in the order of their UTF-16 units, two spaces indent, nulls of objects are left out, and the text ends with a
newline. Numbers have the texts that JavaScript gives them, so that programs of both languages write the same bytes.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from math import isfinite
from typing import Any

from fermata.domain.errors import InvalidRequest
from fermata.domain.repeated_names import find_repeated_name

MAX_NESTED_VALUES = 64
_EXPONENT = re.compile(r"e([+-])0?([0-9]+)$")
_LONGEST_PLAIN_NUMBER = 1e21
_SMALLEST_PLAIN_NUMBER = 1e-6
_MAYBE_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_LARGE_FILE_POINTER = "version https://git-lfs.github.com/spec/"


class UnreadableFile(InvalidRequest):
    """A file that cannot be read. `details` names it."""

    code = "unreadableFile"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} cannot be read: {problem}")
        self.details = {"path": path}


def format_canonical_json(value: Any) -> str:
    """Return the text of a value."""
    return "".join(_format_value(value, "\n")) + "\n"


def _format_value(value: Any, newline: str) -> Iterator[str]:
    """Yield the parts of a text. `newline` begins each line of the value's own depth."""
    if isinstance(value, dict):
        members = [(name, member) for name, member in value.items() if member is not None]
        members.sort(key=lambda one: sort_by_utf16(one[0]))
        inner = newline + "  "
        for place, (name, member) in enumerate(members):
            yield f"{',' if place else '{'}{inner}{_format_text(name)}: "
            yield from _format_value(member, inner)
        yield f"{newline}}}" if members else "{}"
    elif isinstance(value, list | tuple):
        inner = newline + "  "
        for place, member in enumerate(value):
            yield f"{',' if place else '['}{inner}"
            yield from _format_value(member, inner)
        yield f"{newline}]" if value else "[]"
    else:
        yield format_scalar(value)


def sort_by_utf16(name: str) -> bytes:
    """Return the key by which names are sorted as JavaScript sorts them."""
    return name.encode("utf-16-be", "surrogatepass")


def format_scalar(value: Any) -> str:
    """Return the text of a value that has no members."""
    if isinstance(value, str):
        return _format_text(value)
    if isinstance(value, float):
        return _format_float(value)
    return json.dumps(value)


def _format_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _format_float(number: float) -> str:
    size = abs(number)
    if number.is_integer() and size < _LONGEST_PLAIN_NUMBER:
        return str(int(number))
    text = repr(number)
    if "e" in text and _SMALLEST_PLAIN_NUMBER <= size < 1:
        return format(Decimal(text), "f")
    return _EXPONENT.sub(r"e\1\2", text)


def strip_file_text(text: str, path: str) -> str:
    """Return the text of a file without the mark of its byte order.

    Args:
        text: The text.
        path: The file, for messages.

    Raises:
        UnreadableFile: It is only the name of a file that is elsewhere.
    """
    if text.startswith(_LARGE_FILE_POINTER):
        raise UnreadableFile(path, "it is in Git LFS. Keep content in the repository itself.")
    return text.removeprefix("\ufeff")


def parse_canonical_json(text: str, path: str) -> Any:
    """Parse the text of a file.

    Args:
        text: The text.
        path: The file, for messages.

    Raises:
        UnreadableFile: It is no JSON, names a member twice, is nested too deeply, or says what cannot be stored.
    """
    text = strip_file_text(text, path)
    try:
        value = json.loads(
            text, object_pairs_hook=_read_members, parse_constant=_refuse_constant, parse_float=_read_float
        )
        _check_depth(value, MAX_NESTED_VALUES)
        if _MAYBE_HALF_CHARACTER.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise UnreadableFile(path, "it is nested too deeply.") from None
    except UnicodeEncodeError:
        raise UnreadableFile(path, r"it has half of a character, such as \ud800 alone.") from None
    except ValueError as error:
        raise UnreadableFile(path, f"it is no JSON: {error}.") from None
    return value


def parse_json_file(text: str, path: str) -> dict[str, Any]:
    """Parse the text of a file that holds an object.

    Args:
        text: The text.
        path: The file, for messages.

    Raises:
        UnreadableFile: It holds something else.
    """
    value = parse_canonical_json(text, path)
    if not isinstance(value, dict):
        raise UnreadableFile(path, "it has to hold an object.")
    return value


def _read_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(f"the member {find_repeated_name(name for name, _ in pairs)!r} is there twice")
    return members


def _read_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _check_depth(value: Any, depth: int) -> None:
    if depth < 0:
        raise RecursionError
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in members:
        if isinstance(member, dict | list):
            _check_depth(member, depth - 1)
