"""Prepare messages in the form of chat clients (`{role, parts}`) for validation and for a model (decision 0364)."""

from collections.abc import Mapping, Sequence
from typing import Any

INVALID_MESSAGE_TEXT = "A message failed validation."
"""All that a client reads of it: the details would repeat the whole conversation."""
ROLES = frozenset({"system", "user", "assistant"})


def prepare_ui_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without those that have no parts, and with the bare data of `data:` addresses.

    A turn that failed before its first part has left a message without parts, which would poison every later turn.
    """
    return [
        {**message, "parts": [_with_bare_data(part) for part in message["parts"]]}
        if isinstance(message.get("parts"), list)
        else dict(message)
        for message in messages
        if message.get("parts") not in (None, [])
    ]


def _with_bare_data(part: Any) -> Any:
    if not isinstance(part, Mapping) or part.get("type") != "file" or not isinstance(part.get("url"), str):
        return part
    return {**part, "url": strip_data_url(part["url"])}


def strip_data_url(url: str) -> str:
    """Return the base64 text of a `data:` address, and any other address as it is."""
    head, comma, data = url.partition(",")
    is_base64 = head[:5].lower() == "data:" and head.lower().endswith(";base64")
    return data if comma and is_base64 else url


def is_valid_ui_message(message: Any) -> bool:
    """Return whether a message has a role, and parts that have a type each."""
    if not isinstance(message, Mapping) or message.get("role") not in ROLES:
        return False
    parts = message.get("parts")
    return isinstance(parts, list) and all(map(_is_valid_part, parts))


def _is_valid_part(part: Any) -> bool:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return False
    match part["type"]:
        case "text" | "reasoning":
            return isinstance(part.get("text"), str)
        case "file":
            return isinstance(part.get("url"), str) and isinstance(part.get("mediaType"), str)
        case kind if kind.startswith("tool-") or kind == "dynamic-tool":
            return isinstance(part.get("toolCallId"), str) and isinstance(part.get("state"), str)
        case _:
            return True
