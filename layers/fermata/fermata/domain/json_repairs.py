"""Rewrite text that is nearly JSON as JSON, where it can only mean one thing (decisions 0197 and 0207).

Every pattern here reads each character a bounded number of times: the texts come from models and may be long.
"""

import json
import re

_STRING = r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))'
"""Matches a string; one that is cut off reaches to the end, so that no other match begins in it."""
_MISPLACED = re.compile(
    rf"{_STRING}|(?P<blank>(?:\\[nrt])+|[^\S \t\r\n]+|[\u200b-\u200d\ufeff]+|,(?=(?:\s|\\[nrt])*+[}}\]]))", re.S
)
_NOTATION = re.compile(
    rf"{_STRING}|(?P<single>'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|"
    r"(?P<name>(?<![\w$])[A-Za-z_$][\w$]*+(?=\s*+:))|(?P<constant>\b(?:True|False|None)\b)",
    re.S,
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ESCAPE_OR_QUOTE = re.compile(r'\\.|"', re.S)
_FENCE = re.compile(r"```[a-z0-9]*\s*", re.I)


def strip_fence(text: str) -> str:
    """Take off a Markdown fence that is around the whole text."""
    plain = text.strip()
    opening = _FENCE.match(plain)
    return plain[opening.end() :].removesuffix("```") if opening else text


def blank_misplaced_characters(text: str) -> str:
    """Blank out, between members, escaped line ends, unusual blanks and commas before a closing bracket.

    The length stays, so that places in the text stay the same.
    """
    return _MISPLACED.sub(lambda match: " " * len(match[0]) if match["blank"] else match[0], text)


def translate_notation(text: str) -> str:
    """Rewrite what Python and JavaScript write differently: quotation marks, constants, bare names and comments."""
    return blank_misplaced_characters(_NOTATION.sub(_translate, text))


def unescape(text: str) -> str | None:
    """Return a text whose quotation marks are all escaped without that; None if it is no such text."""
    try:
        value = json.JSONDecoder(strict=False).decode(f'"{text}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _translate(match: re.Match[str]) -> str:
    word = match[0]
    match match.lastgroup:
        case "single" if len(word) > 1 and word.endswith("'"):
            return f'"{_ESCAPE_OR_QUOTE.sub(_requote, word[1:-1])}"'
        case "string":
            return _ESCAPE_OR_QUOTE.sub(_unquote, word) if "\\" in word else word
        case "comment":
            return " "
        case "name":
            return f'"{word}"'
        case "constant":
            return _CONSTANTS[word]
    return word


def _requote(match: re.Match[str]) -> str:
    """Escape a quotation mark for double quotation marks, and an apostrophe no more."""
    return {'"': '\\"', "\\'": "'"}.get(match[0], match[0])


def _unquote(match: re.Match[str]) -> str:
    """JSON knows no escaped apostrophes and backticks, and they mean only one thing."""
    return match[0][1] if match[0] in ("\\'", "\\`") else match[0]
