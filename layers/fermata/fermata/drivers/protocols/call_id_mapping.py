"""Map call ids to ids that a provider accepts and that are unique in its request."""

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Self

from fermata.drivers.adjustments import NINE_CHARACTER_CALL_IDS, AppliedAdjustments

_NOT_IN_PLAIN_ID = re.compile(r"[^A-Za-z0-9_-]")
_NINE_CHARACTERS = re.compile(r"[A-Za-z0-9]{9}")

CallIdFormatter = Callable[[str, int], str]
"""Turns a call id into one the provider accepts; a higher number (the first is 1) gives another one."""


class CallIdMapper:
    """Map call ids to ids that a provider accepts and that are unique in the request; always to the same ones."""

    def __init__(self, format_call_id: CallIdFormatter) -> None:
        self._format_call_id = format_call_id
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def copy(self) -> Self:
        """Return a mapper that continues from the same ids."""
        copied = type(self)(self._format_call_id)
        copied._used = self._used.copy()
        copied._counts = self._counts.copy()
        copied._latest = self._latest.copy()
        return copied

    def map_call_id(self, call_id: str) -> str:
        count = self._counts.get(call_id, 0) + 1
        while (wire_id := self._format_call_id(call_id, count)) in self._used:
            count += 1
        self._used.add(wire_id)
        self._counts[call_id] = count
        self._latest[call_id] = wire_id
        return wire_id

    def map_result_id(self, call_id: str) -> str:
        """Return the id of the newest call with that id."""
        return self._latest.get(call_id) or self._format_call_id(call_id, 1)


def plain_id_formatter(max_chars: int) -> CallIdFormatter:
    """Make a formatter for ids of letters, digits, `_` and `-`."""

    def format_call_id(call_id: str, number: int) -> str:
        suffix = "" if number == 1 else f"_{number}"
        return (_to_plain_id(call_id)[: max_chars - len(suffix)] or "_") + suffix

    return format_call_id


@lru_cache(4096)
def _to_plain_id(text: str) -> str:
    return _NOT_IN_PLAIN_ID.sub("_", text)


def choose_call_id_formatter(applied: AppliedAdjustments, default: CallIdFormatter) -> CallIdFormatter:
    """Return the formatter that the server behind this request asks for."""
    return format_nine_character_id if NINE_CHARACTER_CALL_IDS.name in applied else default


def format_nine_character_id(call_id: str, number: int) -> str:
    """Format an id for Mistral, which accepts exactly nine letters or digits."""
    if number == 1 and _NINE_CHARACTERS.fullmatch(call_id):
        return call_id
    return hashlib.sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]
