"""Estimate the memory that JSON takes while it is parsed, so that a function refuses what exceeds its own.

Python stores a text with one byte for each character, or four for all of them if one is an emoji. Small objects take
far more than their text: `{},` takes 72 bytes.
"""

import re
import sys

MAX_JSON_MEMORY_BYTES = 90_000_000
"""Memory for text and values together. The smallest functions that parse such JSON have 192 and 208 MB (0018)."""
SMALL_TEXT_CHARACTERS = 1_000_000
"""A text of so many characters cannot take more, whatever it holds."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""Matches a string; one that is cut off reaches to the end, so that no other match begins in it (decision 0234)."""
_STRING_OVERHEAD_BYTES = 60
_WIDE_STRING_OVERHEAD_BYTES = 80
_OBJECT_BYTES = 200
_SMALL_OBJECT_MEMBERS = 5
"""So many members of an object are contained in _OBJECT_BYTES."""
_MEMBER_BYTES = 150
_EMPTY_OBJECT_BYTES = 80
_ARRAY_BYTES = 104
_NUMBER_BYTES = 40
_WIDEST_CHARACTER_BYTES = 4


def fits_into_memory(text: str) -> bool:
    """Return whether a function can parse this JSON text."""
    return len(text) <= SMALL_TEXT_CHARACTERS or estimate_json_memory(text) <= MAX_JSON_MEMORY_BYTES


def estimate_json_memory(text: str) -> int:
    """Return about how many bytes the text and its values take. The text need not be JSON."""
    structure = _STRING.sub("", text)
    empty_objects = structure.count("{}")
    objects = structure.count("{") - empty_objects
    arrays = structure.count("[")
    strings = (text.count('"') - structure.count('"')) // 2
    separators = structure.count(",") + objects + empty_objects + arrays
    numbers = max(0, separators - strings - objects - empty_objects - arrays)
    return (
        sys.getsizeof(text)
        + _estimate_strings(text, len(text) - len(structure), strings)
        + objects * _OBJECT_BYTES
        + empty_objects * _EMPTY_OBJECT_BYTES
        + arrays * _ARRAY_BYTES
        + numbers * _NUMBER_BYTES
        + max(0, structure.count(":") - objects * _SMALL_OBJECT_MEMBERS) * _MEMBER_BYTES
    )


def _estimate_strings(text: str, characters: int, strings: int) -> int:
    if text.isascii() and "\\u" not in text:
        return characters + strings * _STRING_OVERHEAD_BYTES
    return sum(_estimate_string(match[0]) for match in _STRING.finditer(text))


def _estimate_string(string: str) -> int:
    if "\\u" in string:
        return len(string) * _WIDEST_CHARACTER_BYTES + _WIDE_STRING_OVERHEAD_BYTES
    return sys.getsizeof(string)
