"""Build what the endpoints of hooks are told about a turn, and read what those at its end return."""

from collections.abc import Sequence
from typing import Any

from fermata.domain.events import DataPartEvent, ErrorEvent, TerminalEvent
from fermata.domain.messages import Message
from fermata.turns.hooks.ui_history import build_steps, build_turn_usage, build_ui_messages, count_json_bytes
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState

MAX_DATA_PARTS = 50
MAX_DATA_PARTS_BYTES = 100_000
"""Of all parts of a turn. They are part of the log entry that ends it."""
DATA_PART_PREFIX = "data-"
_OWN_PART_NAMES = frozenset({"data-approval", "data-display", "data-held", "data-usage", "data-warning"})
"""Of parts by which clients learn from the service itself what waits, what it costs and what went wrong."""


def build_context_fields(turn: Turn) -> dict[str, Any]:
    """Return what every hook is told: the page, the user and the conversation of the turn."""
    context = turn.agent_context
    return {
        "pageId": context.page_id or None,
        "userId": turn.user,
        "conversationId": turn.conversation,
        "urlQuery": context.url_query,
        "sharedState": context.shared_state,
    }


def build_finish_payload(
    turn: Turn, terminal: TerminalEvent, messages: Sequence[Message], state: TurnState
) -> dict[str, Any]:
    """Return what the endpoints at the end of a turn are told.

    Args:
        turn: The turn.
        terminal: How it ends.
        messages: The conversation, with the last answer.
        state: Of the turn, with the usage of its last request.
    """
    steps = build_steps(messages, turn.id)
    error = terminal if isinstance(terminal, ErrorEvent) else None
    last_reason = steps[-1]["finishReason"] if steps else "stop"
    finish_reason = "error" if error is not None else last_reason
    usage = build_turn_usage(
        steps, state.prompt_tokens, state.completion_tokens, state.cache_read_tokens, state.cache_creation_tokens
    )
    return {
        "messages": build_ui_messages(messages),
        "steps": steps,
        "toolResults": [result for step in steps for result in step["toolResults"]],
        "finishReason": finish_reason,
        "isAborted": False,
        "usage": usage,
        **({"error": {"message": error.message, "code": error.code}} if error else {}),
        **build_context_fields(turn),
    }


def read_data_parts(response: Any) -> list[DataPartEvent]:
    """Return the parts that the response of an endpoint names; what is no part, or one of the service, is left out."""
    parts = response.get("dataParts") if isinstance(response, dict) else None
    return [
        DataPartEvent(
            name=part["type"],
            data=part.get("data"),
            part_id=part["id"] if isinstance(part.get("id"), str) else None,
            transient=True if part.get("transient") is True else None,
        )
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, dict) and _is_part_name(part.get("type"))
    ]


def limit_data_parts(events: Sequence[DataPartEvent]) -> list[DataPartEvent]:
    """Return the first parts that fit into the log entry that ends a turn."""
    kept: list[DataPartEvent] = []
    size = 0
    for event in events[:MAX_DATA_PARTS]:
        size += count_json_bytes(event.to_wire())
        if size > MAX_DATA_PARTS_BYTES:
            break
        kept.append(event)
    return kept


def _is_part_name(name: Any) -> bool:
    if not isinstance(name, str) or name in _OWN_PART_NAMES:
        return False
    return name.startswith(DATA_PART_PREFIX) and len(name) > len(DATA_PART_PREFIX)
