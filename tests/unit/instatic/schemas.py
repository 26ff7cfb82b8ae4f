"""Schemas that Instatic's browsers validate events and responses with.

An optional member may be missing but never null. Members that a schema does not name are ignored.
"""

from collections.abc import Mapping
from typing import Any

Generation = str
GENERATIONS = ("0.0.6", "0.0.8", "0.0.11")
NEWEST = "0.0.11"

ANY = object
NUMBER = (int, float)
Shape = Mapping[str, Any]
"""Members and their types: a name that ends with `?` may be missing, a tuple is a choice of types."""

EVENTS: Mapping[str, Shape] = {
    "bridgeReady": {"bridgeId": str},
    "text": {"text": str},
    "toolCall": {"toolCallId": str, "toolName": str, "input": ANY, "status": "pending"},
    "toolRequest": {"requestId": str, "toolName": str, "input": ANY},
    "toolResult": {"toolCallId": str, "toolName": str, "ok": bool, "error?": str},
    "context": {"promptTokens": NUMBER, "contextTokens": NUMBER},
    "usage": {
        "promptTokens": NUMBER,
        "completionTokens": NUMBER,
        "costUsd?": NUMBER,
        "cacheReadTokens?": NUMBER,
        "cacheCreationTokens?": NUMBER,
    },
    "error": {"message": str},
    "done": {},
}
CONVERSATION: Shape = {
    **dict.fromkeys(("id", "scope", "title", "modelId", "createdAt", "updatedAt"), str),
    **dict.fromkeys(("promptTokensTotal", "completionTokensTotal", "costUsdTotal"), NUMBER),
    **dict.fromkeys(("cacheReadTokensTotal", "cacheCreationTokensTotal", "contextTokens"), NUMBER),
    "credentialId": (str, type(None)),
}
MESSAGE: Shape = {
    "id": str,
    "position": int,
    "role": ("user", "assistant", "tool"),
    "content": list,
    "toolCallId": (str, type(None)),
    "toolName": (str, type(None)),
    "createdAt": str,
}
BLOCKS: Mapping[str, Shape] = {
    "text": {"text": str},
    "toolCall": {"toolCallId": str, "toolName": str, "input": ANY},
    "toolResult": {"ok": bool, "error?": str},
}
PICTURES: Mapping[Generation, Shape] = {
    "0.0.6": {"mimeType": str, "data": str},
    "0.0.8": {"mimeType": str, "data": str},
    "0.0.11": {"mimeType": "image/jpeg", "url": str},
}

CREDENTIAL: Shape = {
    **dict.fromkeys(("id", "providerId", "displayLabel", "createdAt"), str),
    "authMode": ("apiKey", "baseUrl"),
    "baseUrl": (str, type(None)),
    "keyFingerprintCurrent": bool,
    "lastUsedAt": (str, type(None)),
}
DEFAULT: Shape = {"credentialId": str, "modelId": str}
STORED_DEFAULT: Shape = {**DEFAULT, "scope": str, "updatedAt": str, "updatedBy": (str, type(None))}
MODEL: Shape = {
    "id": str,
    "label": str,
    "capabilities": dict,
    "tier?": str,
    "pricing?": dict,
    "contextWindow?": NUMBER,
    "catalogueSource?": ("live", "fallback"),
}
CAPABILITIES: Shape = dict.fromkeys(
    ("toolCalling", "visionInput", "toolResultImages", "promptCache", "streaming"), bool
)
PRICING: Shape = {"inputPerMTok": NUMBER, "outputPerMTok": NUMBER}
USAGE: Shape = dict.fromkeys(
    ("promptTokens", "completionTokens", "costUsd", "chatCount", "cacheReadTokens", "cacheCreationTokens"), NUMBER
)
AUDIT_KEYS: Mapping[str, Shape] = {
    "byUser": {"userId": str, "userLabel": str},
    "byScope": {"scope": str},
    "byModel": {"providerId": str, "modelId": str},
    "byDay": {"day": str},
}


def event_shape(kind: str, generation: Generation) -> Shape | None:
    shape = EVENTS.get(kind)
    if kind == "usage" and generation == NEWEST and shape:
        return {name.rstrip("?") if name == "costUsd?" else name: value for name, value in shape.items()}
    return shape


def block_shape(kind: str, generation: Generation) -> Shape | None:
    return PICTURES[generation] if kind == "image" else BLOCKS.get(kind)


def find_schema_error(value: Any, shape: Shape) -> str | None:
    """The first thing a strict schema would refuse; None when there is none."""
    if not isinstance(value, dict):
        return "is no object"
    for name, wanted in shape.items():
        member = name.rstrip("?")
        if member not in value:
            if name == member:
                return f"{member} is missing"
        elif not _fits(value[member], wanted):
            return f"{member} is {value[member]!r}"
    return None


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return any(_fits(value, one) for one in wanted)
    if not isinstance(wanted, type):
        return bool(value == wanted)
    if isinstance(value, bool) and wanted in (int, float):
        return False
    return isinstance(value, wanted)
