"""Read the JSON of a plan that a model has written into its text, broken as it may be (decision 0335).

What `read_plain_json` refuses because it is incomplete is read here in steps, because a plan is validated, shown and
undone as a whole: what a repair has left out is missing in sight. A tool call's arguments are never repaired like this.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Literal

from fermata.domain.lenient_json import UnreadableJson, read_plain_json
from fermata.domain.value_dataclass import value_dataclass

RepairStrategy = Literal["none", "basic_repair", "bare_minus", "close_brackets", "truncate_at_boundary"]
MAX_BOUNDARIES = 10
"""How many of the last commas are tried as the end of what is whole."""
MAX_REPAIRED_CHARS = 400_000

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_BULLET = re.compile(rf"(?P<string>{_STRING})|(?P<bullet>[-*•][ \t]++(?=\"|\{{|\[))", re.S)
_BARE_MINUS = re.compile(rf"(?P<string>{_STRING})|(?P<minus>-(?=\s*+(?:[,}}\]]|\Z)))", re.S)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<open>[{{\[])|(?P<close>[}}\]])|(?P<comma>,)", re.S)


@value_dataclass(frozen=True)
class RepairedJson:
    """A value, and which repair has read it."""

    value: Any
    strategy: RepairStrategy


def extract_json_object(text: str) -> str | None:
    """Return what is between the first opening and the last closing brace; None if there is no such part."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else None


def read_broken_json(text: str) -> RepairedJson | None:
    """Return the object that a text holds, with the mildest repair that reads it; None if none does.

    Args:
        text: The words of a model, with or without an object in them.
    """
    start = text.find("{")
    if start < 0 or len(text) > MAX_REPAIRED_CHARS:
        return None
    candidates = dict.fromkeys(part for part in (text.strip(), extract_json_object(text), text[start:]) if part)
    for strategy, repair in _LADDER.items():
        for candidate in candidates:
            value = repair(candidate)
            if isinstance(value, dict) and value:
                return RepairedJson(value, strategy)
    return None


def _read_strict(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _read_plain(text: str) -> Any:
    """Read also what has one plain meaning: control characters, commas too many, bullets before the parts of a list."""
    for candidate in (text, _without_bullets(text)):
        try:
            return read_plain_json(candidate)
        except UnreadableJson:
            continue
    return None


def _without_bullets(text: str) -> str:
    return _BULLET.sub(lambda match: match["string"] or "", _CONTROL.sub(" ", text))


def _read_without_minus(text: str) -> Any:
    return _read_plain(_fill_bare_minus(text))


def _fill_bare_minus(text: str) -> str:
    """Put null where a number has only its sign."""
    return _BARE_MINUS.sub(lambda match: match["string"] or "null", _without_bullets(text))


def _read_closed(text: str) -> Any:
    return _read_plain(_close_brackets(_fill_bare_minus(text)))


def _read_truncated(text: str) -> Any:
    text = _fill_bare_minus(text)
    commas = [match.start() for match in _TOKEN.finditer(text) if match["comma"]]
    for comma in reversed(commas[-MAX_BOUNDARIES:]):
        if isinstance(value := _read_plain(_close_brackets(text[:comma])), dict):
            return value
    return None


def _close_brackets(text: str) -> str:
    """End an unfinished string, and close what is open, the innermost first."""
    closers: list[str] = []
    is_open_string = False
    for match in _TOKEN.finditer(text):
        if match["open"]:
            closers.append("}" if match["open"] == "{" else "]")
        elif match["close"] and closers:
            closers.pop()
        if match["string"]:
            word = match["string"]
            is_open_string = match.end() == len(text) and (len(word) < 2 or not word.endswith('"'))
    return text.rstrip("\\" if is_open_string else " ,") + '"' * is_open_string + "".join(reversed(closers))


_LADDER: dict[RepairStrategy, Callable[[str], Any]] = {
    "none": _read_strict,
    "basic_repair": _read_plain,
    "bare_minus": _read_without_minus,
    "close_brackets": _read_closed,
    "truncate_at_boundary": _read_truncated,
}
