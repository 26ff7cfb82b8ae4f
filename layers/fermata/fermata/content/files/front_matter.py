"""Read and write documents: fields in YAML between two lines of hyphens, and behind them a text in Markdown.

Fields are written in the order of their names. A text is plain where YAML reads it as the same, and else in quotes.
When fields are read, dates are texts, as in JSON, and aliases are refused, because few of them make a large value.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import yaml

from fermata.content.files.canonical_json import (
    MAX_NESTED_VALUES,
    UnreadableFile,
    format_scalar,
    sort_by_utf16,
    strip_file_text,
)

BODY_FIELD = "body"
"""The field of a document that holds its text."""
_FENCE = "---\n"
_PLAIN_TEXT = re.compile("[A-Za-z/\u00c0-\u024f][A-Za-z0-9 _./,;()!?%&+=@*<>\u2010-\u2019\u00a1-\u024f-]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_OTHER_MEANINGS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_NEVER_PRINTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_MAX_INTEGER_DIGITS = 4_000
"""Python reads no longer ones."""
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def format_document_file(fields: dict[str, Any]) -> str:
    """Return the text of a document. Its field `body`, if it is a text, stands behind the others."""
    body = fields.get(BODY_FIELD)
    others = {name: value for name, value in fields.items() if name != BODY_FIELD or not isinstance(value, str)}
    text = _FENCE + "".join(f"{line}\n" for line in _format_members(others, "")) + _FENCE
    return f"{text}\n{body}\n" if isinstance(body, str) else text


def _format_members(members: dict[str, Any], indent: str) -> Iterator[str]:
    for name in sorted(members, key=sort_by_utf16):
        value = members[name]
        if value is None:
            continue
        label = f"{indent}{name if _is_plain_name(name) else _quote(name)}:"
        if isinstance(value, dict) and _has_members(value):
            yield label
            yield from _format_members(value, indent + "  ")
        elif isinstance(value, list) and value:
            yield label
            for item in value:
                yield from _format_item(item, indent + "  ")
        else:
            yield f"{label} {_format_flow(value, plain=True)}"


def _format_item(item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, dict) and _has_members(item):
        first, *others = _format_members(item, indent + "  ")
        yield f"{indent}- {first.lstrip()}"
        yield from others
    else:
        yield f"{indent}- {_format_flow(item, plain=True)}"


def _has_members(value: dict[str, Any]) -> bool:
    return any(member is not None for member in value.values())


def _format_flow(value: Any, *, plain: bool = False) -> str:
    """Return a value in one line."""
    if isinstance(value, str):
        return value if plain and _is_plain_text(value) else _quote(value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda one: sort_by_utf16(one[0]))
        return "{" + ", ".join(f"{_quote(name)}: {_format_flow(one)}" for name, one in members if one is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_flow, value)) + "]"
    return format_scalar(value)


def _is_plain_name(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in _OTHER_MEANINGS


def _is_plain_text(text: str) -> bool:
    if _DATE.fullmatch(text):
        return True
    is_plain = _PLAIN_TEXT.fullmatch(text) is not None and not text.endswith(" ")
    return is_plain and text.lower() not in _OTHER_MEANINGS


def _quote(text: str) -> str:
    """Return a text in quotes, with escapes for what YAML does not allow as it is."""
    return _NEVER_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", format_scalar(text))


def parse_document_file(text: str, path: str) -> dict[str, Any]:
    """Return the fields of a document, with its text as `body` if it has one.

    Args:
        text: The text of the file.
        path: The file, for messages.

    Raises:
        UnreadableFile: Its fields are no YAML, or use more of YAML than JSON has.
    """
    text = strip_file_text(text, path)
    if text.startswith("---\r\n"):
        text = text.replace("\r\n", "\n")
    if not text.startswith(_FENCE):
        return {BODY_FIELD: text.removesuffix("\n")}
    end = 0 if text.startswith(_FENCE, len(_FENCE)) else text.find("\n" + _FENCE, len(_FENCE) - 1) + 1
    if end == 0 and not text.startswith(_FENCE, len(_FENCE)):
        if not text.endswith("\n---"):
            raise UnreadableFile(path, "its fields begin with --- and do not end with it.")
        text, end = text + "\n", len(text) - 3
    end = end or len(_FENCE)
    fields = _parse_fields(text[len(_FENCE) : end], path)
    rest = text[end + len(_FENCE) :]
    if not rest:
        return fields
    if BODY_FIELD in fields:
        raise UnreadableFile(path, f"it has a text and a field {BODY_FIELD}.")
    return fields | {BODY_FIELD: rest.removeprefix("\n").removesuffix("\n")}


def _parse_fields(text: str, path: str) -> dict[str, Any]:
    try:
        node = yaml.compose(text, Loader=_LOADER)
        fields = {} if node is None else _read_node(node, set(), MAX_NESTED_VALUES)
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error) or "it is nested too deeply"
        raise UnreadableFile(path, f"its fields are not understood: {problem}.") from None
    if not isinstance(fields, dict):
        raise UnreadableFile(path, "it has to begin with fields: names with values.")
    return fields


def _read_node(node: Any, seen: set[int], depth: int) -> Any:
    if id(node) in seen:
        raise yaml.YAMLError("aliases (*name) are not supported")
    if depth < 0:
        raise RecursionError
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        return _read_plain_value(node.value) if node.style in (None, "") else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_read_node(item, seen, depth - 1) for item in node.value]
    members: dict[str, Any] = {}
    for name_node, value in node.value:
        name = name_node.value
        if not isinstance(name, str):
            raise yaml.YAMLError("the name of a field has to be a text")
        if name in members:
            raise yaml.YAMLError(f"the field {name} is there twice")
        members[name] = _read_node(value, seen, depth - 1)
    return members


def _read_plain_value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and len(text) < _MAX_INTEGER_DIGITS:
        return int(text)
    is_number = _NUMBER.fullmatch(text) is not None and isfinite(float(text))
    return float(text) if is_number else text
