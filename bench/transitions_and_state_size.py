"""Read a Step Functions execution history: billed transitions, and the size of the state."""

from collections.abc import Iterable, Mapping
from typing import Any

STATE_MEMBERS = ("input", "output", "parameters")


def count_transitions(history: Iterable[Mapping[str, Any]]) -> int:
    """Count the states entered, one for the start, and each retry."""
    types = [str(event["type"]) for event in history]
    entered_count = sum(event_type.endswith("StateEntered") for event_type in types)
    retry_count = types.count("TaskScheduled") - types.count("TaskStateEntered")
    return 1 + entered_count + max(0, retry_count)


def largest_state_bytes(history: Iterable[Mapping[str, Any]]) -> int:
    """Return the size of the largest input or output of any state."""
    details = [value for event in history for value in event.values() if isinstance(value, Mapping)]
    texts = [str(detail[name]) for detail in details for name in STATE_MEMBERS if name in detail]
    return max((len(text.encode()) for text in texts), default=0)
