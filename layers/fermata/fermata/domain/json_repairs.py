"""Rewrite text that is nearly JSON as JSON, where it can only mean one thing (decisions 0197 and 0207).

Every pattern here reads each character a bounded number of times: the texts come from models and may be long.
"""

import json
import re
from collections.abc import Callable

_STRING = r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))'
"""Matches a string; one that is cut off reaches to the end, so that no other match begins in it."""
_MISPLACED = re.compile(
    rf"{_STRING}|(?P<blank>(?:\\[nrt])+|[^\S \t\r\n]+|[\u200b-\u200d\ufeff]+|,(?=(?:\s|\\[nrt])*+[}}\]]))", re.S
)
_NOTATION = re.compile(
    r'(?P<triple>"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\\?\Z))|'
    r"(?P<template>`[^`\\]*+(?:\\.[^`\\]*+)*+(?:`|\\?\Z))|"
    r"(?P<curly>[“”][^“”\\]*+(?:\\.[^“”\\]*+)*+(?:[“”]|\\?\Z))|"
    rf"{_STRING}|(?P<single>'[^'\\]*(?:\\.[^'\\]*)*(?:'|\\?\Z))|(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|"
    r"(?P<name>(?<![\w$])[A-Za-z_$][\w$]*+(?=\s*+:))|(?P<constant>\b(?:True|False|None|undefined)\b)",
    re.S,
)
_CONSTANTS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_ESCAPE_OR_QUOTE = re.compile(r'\\u[0-9a-f]{4}|\\.|"', re.S | re.I)
_NO_ESCAPE = re.compile(r"\\[^\"\\/bfnrtuxUN'`\r\n]", re.I)
"""A backslash before what no language escapes, as in regular expressions and in `content: "\\2014"` of CSS."""
_UNSURE_ESCAPES = ("\\b", "\\f", "\\n", "\\r", "\\t")
_FENCE = re.compile(r"```[a-z0-9]*\s*", re.I)


def strip_fence(text: str) -> str:
    """Take off a Markdown fence that is around the whole text."""
    plain = text.strip()
    opening = _FENCE.match(plain)
    return plain[opening.end() :].removesuffix("```") if opening else text


def strip_doubled_braces(text: str) -> str:
    """Take off the second pair of braces that models copy from templates."""
    plain = text.strip()
    return plain[1:-1] if plain.startswith("{{") and plain.endswith("}}") else text


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
        case "triple" if len(word) > 5 and word.endswith('"""'):
            return f'"{_translate_escapes(_requote, word[3:-3])}"'
        case "curly" if len(word) > 1 and word.endswith(("“", "”")):
            return f'"{_translate_escapes(_requote, word[1:-1])}"'
        case "template" if len(word) > 1 and word.endswith("`") and "${" not in word:
            return f'"{_translate_escapes(_requote, word[1:-1])}"'
        case "single" if len(word) > 1 and word.endswith("'"):
            return f'"{_translate_escapes(_requote, word[1:-1])}"'
        case "string":
            return _translate_escapes(_unquote, word) if "\\" in word else word
        case "comment":
            return " "
        case "name":
            return f'"{word}"'
        case "constant":
            return _CONSTANTS[word]
    return word


def _translate_escapes(translate: Callable[[re.Match[str]], str], text: str) -> str:
    r"""Translate the escapes of a string. Where a bare `\d` shows that backslashes are single, `\n` may mean either."""
    escapes = set(_ESCAPE_OR_QUOTE.findall(text))
    bare = {escape for escape in escapes if _NO_ESCAPE.fullmatch(escape)}
    is_css = all(escape[1].isdigit() for escape in bare)
    if bare and not escapes.isdisjoint(_UNSURE_ESCAPES[:2] if is_css else _UNSURE_ESCAPES):
        return text
    return _ESCAPE_OR_QUOTE.sub(translate, text)


def _requote(match: re.Match[str]) -> str:
    """Escape a quotation mark for double quotation marks, and an apostrophe no more."""
    return '\\"' if match[0] == '"' else _unquote(match)


def _unquote(match: re.Match[str]) -> str:
    """JSON knows no escaped apostrophes and backticks, and they mean only one thing, as do single backslashes."""
    if match[0] in ("\\'", "\\`"):
        return match[0][1]
    return f"\\{match[0]}" if _NO_ESCAPE.fullmatch(match[0]) else match[0]
