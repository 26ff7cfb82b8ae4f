"""Read choices, usage and thinking that servers write otherwise than the standard (decisions 0195 and 0416)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_text
from fermata.drivers.protocols.token_usage import to_token_count

_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens")


def list_choices(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a chunk, also if they are one object in place of a list."""
    choices = event.get("choices")
    return as_dict_list([choices] if isinstance(choices, dict) else choices)


def read_message(value: Any) -> dict[str, Any]:
    """Return a delta or a message; one that is a text is its content."""
    return {"content": value} if isinstance(value, str) else as_dict(value)


def iter_usages(event: Mapping[str, Any], choices: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the usage of the event, of a vendor's member in it, or of a choice. One that counts nothing is none."""
    vendor = event.get("x_groq")
    for holder in (event, as_dict(vendor), *choices) if vendor else (event, *choices):
        usage = holder.get("usage")
        if not usage or not isinstance(usage, dict):
            continue
        if any(to_token_count(usage.get(name)) for name in _COUNTS) or usage.keys().isdisjoint(_COUNTS):
            yield usage


def read_thinking_part(part: Any) -> str:
    """Return the thinking in a part of a content or in a reasoning detail; empty for any other part."""
    if not isinstance(part, dict):
        return ""
    kind, thinking = as_text(part.get("type")), part.get("thinking")
    if isinstance(thinking, list):  # Mistral sends a list of texts
        return "".join(as_text(member.get("text")) for member in as_dict_list(thinking))
    if kind in ("reasoning.text", "reasoning.summary", "reasoning", "thinking"):
        members = (thinking, part.get("reasoning"), part.get("text"), part.get("summary"))
        return next((text for text in map(as_text, members) if text), "")
    return ""
