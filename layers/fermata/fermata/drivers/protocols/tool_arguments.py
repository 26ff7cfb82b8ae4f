"""Read the arguments that a model writes for a tool call, as storable values (decisions 0081 and 0197)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.lenient_json import UnreadableJson, quote_shortened, read_plain_json, read_strict_json
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json

_ARGUMENT_MEMBERS = ("arguments", "parameters", "input", "args")
"""The member of the protocols, and those that servers put in its place."""
MAX_ARGUMENT_DEPTH = 100
"""Levels of nesting that are read; no tool takes a tenth of them, and a deeper value cannot be stored."""


def find_arguments(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call as the provider sent them, text or value; None for none."""
    found = (call[name] for name in _ARGUMENT_MEMBERS if call.get(name))
    return join_pieces(next(found, None))


def join_pieces(arguments: Any) -> Any:
    """Return arguments that are listed in pieces as one text; anything else as it is."""
    is_in_pieces = isinstance(arguments, list) and all(isinstance(piece, str) for piece in arguments)
    return "".join(arguments) if is_in_pieces else arguments


def to_argument_text(arguments: Any) -> str:
    """Return the text of arguments, also of a value: nothing that a model has written becomes an empty object."""
    joined = join_pieces(arguments)
    if isinstance(joined, str):
        return joined
    return "" if joined is None else json.dumps(joined)


def build_tool_call(call_id: str, tool_name: str, arguments: Any, *, is_cut_off: bool = False) -> ToolCallBlock:
    """Build the block of a call.

    Args:
        call_id: The id that the provider gave; may be empty.
        tool_name: The name that the model wrote.
        arguments: The arguments as text, or as a value if the provider has read them already; None for none.
        is_cut_off: Whether the call may be incomplete even if it is readable.
    """
    value: Any = {}
    problem: str | None = None
    if isinstance(arguments, str):
        try:
            value = parse_tool_arguments(arguments)
        except UnreadableJson as error:
            problem = str(error)
    elif arguments is not None:
        value = to_storable_json(arguments)
    return ToolCallBlock(
        tool_call_id=call_id,
        tool_name=tool_name,
        input=value,
        malformed=is_cut_off or problem is not None or None,
        problem=problem,
    )


def build_call_from_fragments(
    call_id: str, tool_name: str, fragments: Sequence[str], *, is_cut_off: bool = False
) -> ToolCallBlock:
    """Build the block of a call whose arguments came in pieces. The last may repeat what those before it have begun."""
    text = "".join(fragments)
    block = build_tool_call(call_id, tool_name, text, is_cut_off=is_cut_off)
    if block.problem and len(fragments) > 1 and len(last := fragments[-1]) * 2 >= len(text):
        begun = text[: len(text) - len(last)]
        if last.startswith(begun) and read_argument_object(last):
            return build_tool_call(call_id, tool_name, last, is_cut_off=is_cut_off)
    return block


def read_argument_object(text: str) -> dict[str, Any] | None:
    """Return the object that the text plainly is; None for a part of one."""
    try:
        value = read_plain_json(text)
    except UnreadableJson:
        return None
    return value if isinstance(value, dict) and text.strip() else None


def parse_tool_arguments(text: str) -> Any:
    """Return the value of a call's argument text; an empty text means no arguments.

    Raises:
        UnreadableJson: The text has no plain meaning, or is nested too deeply to be stored.
    """
    joined = replace_lone_surrogates(text)  # the halves of a character may come in two fragments
    value = read_plain_json(joined)
    if is_nested_too_deeply(joined, value):
        raise UnreadableJson(f"They are nested too deeply. {quote_shortened(joined)}")
    return value


def parse_strict_json(text: str) -> Any:
    """Return the value of a JSON text, storable.

    Raises:
        UnreadableJson: It is no JSON, or is nested too deeply to be stored.
    """
    value = read_strict_json(text)
    if is_nested_too_deeply(text, value):
        raise UnreadableJson("It is nested too deeply.")
    return to_storable_json(value)


def is_nested_too_deeply(text: str, value: Any) -> bool:
    """Return whether a value is nested too deeply; its JSON text rules that out cheaply for nearly all values."""
    return text.count("{") + text.count("[") > MAX_ARGUMENT_DEPTH and _is_deeper_than(value, MAX_ARGUMENT_DEPTH)


def _is_deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper_than(child, levels - 1) for child in children)
