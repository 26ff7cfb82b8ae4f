"""Find the points of a turn at which endpoints are called, in the entries of its log."""

from collections.abc import Iterable, Iterator
from typing import Any

from fermata.domain.events import (
    Event,
    FinishHooksRunEvent,
    RoundStartedEvent,
    TerminalEvent,
    ToolCallEvent,
    ToolResultEvent,
)
from fermata.domain.run_settings import RunHooks
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.turn_state_from_log import TurnState

HOOK_FLAGS = {
    "on_start": "s",
    "on_step_start": "r",
    "on_tool_call_start": "c",
    "on_tool_call_finish": "o",
    "on_step_finish": "f",
    "on_finish": "e",
}
"""By the names of `RunHooks`: the letter with which the state of a turn says that endpoints are called there."""


@value_dataclass(frozen=True)
class HookPoint:
    """A point of a turn.

    Attributes:
        name: Of the member of `RunHooks`.
        key: The same for every delivery of the point within its turn.
        facts: What is sent about it.
    """

    name: str
    key: str
    facts: dict[str, Any]


def build_hook_flags(hooks: RunHooks) -> str:
    """Return the letters of the points at which an agent names endpoints."""
    return "".join(flag for name, flag in HOOK_FLAGS.items() if getattr(hooks, name))


def has_hook_points(events: Iterable[Event], state: TurnState) -> bool:
    """Return whether endpoints are called for these events.

    Args:
        events: Of a log entry.
        state: After them.
    """
    if not state.hook_flags:
        return False
    return any(is_hooked(point, state) for point in iter_hook_points(events, state))


def is_hooked(point: HookPoint, state: TurnState) -> bool:
    """Return whether endpoints are called at a point of this turn."""
    return HOOK_FLAGS[point.name] in state.hook_flags


def iter_hook_points(events: Iterable[Event], state: TurnState) -> Iterator[HookPoint]:
    """Yield the points of a log entry.

    Args:
        events: Of the entry.
        state: After them.
    """
    listed = list(events)
    has_results = any(isinstance(event, ToolResultEvent) for event in listed)
    has_calls = has_results or any(isinstance(event, ToolCallEvent) for event in listed)
    # The results that complete a round are in one entry with the start of the next one.
    step = state.round - int(has_calls and state.phase == "asking")
    for event in listed:
        if not isinstance(event, RoundStartedEvent):
            yield from _find_call_point(event, step)
    is_over = any(isinstance(event, TerminalEvent) for event in listed)
    if is_over or (has_results and state.phase in ("ready", "asking")):
        reason = "stop" if is_over else "tool-calls"
        yield HookPoint("on_step_finish", f"step-end.{step}", {"stepNumber": step, "finishReason": reason})
    if state.phase == "asking" and state.request_attempts == 1:
        yield from _find_round_points(listed)
    if is_over and not any(isinstance(event, FinishHooksRunEvent) for event in listed):
        yield HookPoint("on_finish", "finish", {})


def _find_round_points(events: Iterable[Event]) -> Iterator[HookPoint]:
    for event in events:
        if isinstance(event, RoundStartedEvent):
            if event.round == 1:
                yield HookPoint("on_start", "start", {})
            yield HookPoint("on_step_start", f"step.{event.round}", {"stepNumber": event.round})


def _find_call_point(event: Event, step: int) -> Iterator[HookPoint]:
    match event:
        case ToolCallEvent():
            call = {"toolCallId": event.tool_call_id, "toolName": event.tool_name, "input": event.input}
            yield HookPoint("on_tool_call_start", f"call.{step}.{event.tool_call_id}", {"stepNumber": step, **call})
        case ToolResultEvent():
            result = {"toolCallId": event.tool_call_id, "toolName": event.tool_name, "success": event.ok}
            failed = {} if event.ok else {"error": event.error}
            key = f"result.{step}.{event.tool_call_id}"
            yield HookPoint("on_tool_call_finish", key, {"stepNumber": step, **result, **failed})
