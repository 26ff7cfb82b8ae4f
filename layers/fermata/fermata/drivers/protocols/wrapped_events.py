"""Take events out of what gateways wrap them in: `{"code": 200, "data": {…}}`, also as a JSON text (decision 0416)."""

import json
from collections.abc import Mapping
from typing import Any

from fermata.domain.lenient_json import has_too_many_members
from fermata.drivers.protocols.tool_arguments import is_nested_too_deeply

_WRAPPING_MEMBERS = ("data", "result")
_EVENT_MEMBERS = ("choices", "candidates", "delta", "error")
"""One of them tells an event of a provider from other data. So does a message that is an object, as Ollama sends it."""


def unwrap_event(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events that an object wraps; a list of the object itself if it is an event, or wraps none."""
    if event.keys().isdisjoint(_WRAPPING_MEMBERS) or _has_event_member(event):  # nearly always
        return [event]
    for name in _WRAPPING_MEMBERS:
        wrapped = _read_objects(event.get(name))
        if wrapped and all(_has_event_member(value) or isinstance(value.get("type"), str) for value in wrapped):
            return wrapped
    return [event]


def _has_event_member(value: Mapping[str, Any]) -> bool:
    return any(map(value.get, _EVENT_MEMBERS)) or isinstance(value.get("message"), dict)


def _read_objects(value: Any) -> list[dict[str, Any]]:
    """Return the object, those of a list, or that of a JSON text; nothing for anything else."""
    if isinstance(value, str):
        value = _read_json_object(value)
    members = value if isinstance(value, list) else [value]
    return members if all(isinstance(member, dict) for member in members) else []


def _read_json_object(text: str) -> Any:
    if not text.startswith("{") or has_too_many_members(text):
        return None
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return None if is_nested_too_deeply(text, value) else value
