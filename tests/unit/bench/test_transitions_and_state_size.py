"""Transitions and state sizes of a workflow's execution."""

from typing import Any

from bench.transitions_and_state_size import count_transitions, largest_state_bytes


def entered_event(event_type: str = "TaskStateEntered", text: str = "{}") -> dict[str, Any]:
    return {"type": event_type, "stateEnteredEventDetails": {"name": "x", "input": text}}


def test_the_start_and_every_state_entered_is_a_transition() -> None:
    history = [
        {"type": "ExecutionStarted"},
        entered_event(),
        {"type": "TaskScheduled"},
        entered_event("SucceedStateEntered"),
    ]
    assert count_transitions(history) == 3


def test_a_retry_is_a_transition_too() -> None:
    history = [entered_event(), {"type": "TaskScheduled"}, {"type": "TaskFailed"}, {"type": "TaskScheduled"}]
    assert count_transitions(history) == 1 + 1 + 1


def test_the_largest_state_is_measured_in_bytes() -> None:
    assert largest_state_bytes([entered_event(text="ä"), entered_event(text="abc")]) == 3
    assert largest_state_bytes([]) == 0
