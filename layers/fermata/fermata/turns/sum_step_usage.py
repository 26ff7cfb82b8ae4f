"""Add up the usage of a turn's steps, as the endpoints of its hooks read it."""

from collections.abc import Iterable, Mapping
from typing import Any

_COUNTS = {
    "inputTokens": ("inputTokens",),
    "outputTokens": ("outputTokens",),
    "totalTokens": ("totalTokens",),
    "reasoningTokens": ("outputTokenDetails", "reasoningTokens"),
    "cacheReadTokens": ("inputTokenDetails", "cacheReadTokens"),
    "cacheWriteTokens": ("inputTokenDetails", "cacheWriteTokens"),
}
"""Where a step has each count."""


def sum_step_usage(steps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of all steps, with the finish reason of the last one; what a step does not say counts as 0."""
    usage: dict[str, Any] = dict.fromkeys(_COUNTS, 0) | {"finishReason": "stop"}
    for step in steps:
        for name, path in _COUNTS.items():
            usage[name] += _read_count(step, path)
        usage["finishReason"] = step.get("finishReason") or usage["finishReason"]
    return usage


def _read_count(step: Mapping[str, Any], path: tuple[str, ...]) -> int:
    value: Any = step
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None and len(path) > 1:
        value = step.get(path[-1])
    return value if isinstance(value, int) else 0
