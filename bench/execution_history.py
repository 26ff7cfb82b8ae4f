"""What an execution's history says: how many transitions are billed, and how large its state ever was."""

from collections.abc import Iterable, Mapping
from typing import Any

STATE_MEMBERS = ("input", "output", "parameters")


def count_transitions(history: Iterable[Mapping[str, Any]]) -> int:
    """States entered, and one for the start. A retried state counts again."""
    kinds = [str(event["type"]) for event in history]
    retried = sum(kind == "TaskScheduled" for kind in kinds) - sum(kind == "TaskStateEntered" for kind in kinds)
    return 1 + sum(kind.endswith("StateEntered") for kind in kinds) + max(0, retried)


def largest_state_bytes(history: Iterable[Mapping[str, Any]]) -> int:
    """Bytes of the largest input or output."""
    details = [value for event in history for value in event.values() if isinstance(value, Mapping)]
    texts = [str(detail[name]) for detail in details for name in STATE_MEMBERS if name in detail]
    return max((len(text.encode()) for text in texts), default=0)
