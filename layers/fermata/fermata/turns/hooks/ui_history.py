"""Show a conversation in the form of chat clients: one message of parts for each prompt and for each answer."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.turns.sum_step_usage import sum_step_usage


def build_ui_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages of a conversation. All replies and results of a turn are one message of the assistant.

    Args:
        messages: As they are stored, in their order.
    """
    shown: list[dict[str, Any]] = []
    for message in messages:
        role = "user" if message.role == "user" else "assistant"
        identity = f"{message.turn}-{role}"
        if not shown or shown[-1]["id"] != identity:
            shown.append({"id": identity, "role": role, "parts": []})
        _add_parts(shown[-1]["parts"], message)
    return shown


def _add_parts(parts: list[dict[str, Any]], message: Message) -> None:
    if message.role == "tool":
        _add_result(parts, message)
        return
    if message.role == "assistant":
        parts.append({"type": "step-start"})
    for block in message.content:
        part = _build_part(block)
        if part is not None:
            parts.append(part)


def _build_part(block: Block) -> dict[str, Any] | None:
    match block.kind:
        case "text":
            return {"type": "text", "text": block.text, "state": "done"}
        case "toolCall":
            call = {"toolCallId": block.tool_call_id, "state": "input-available", "input": block.input}
            return {"type": f"tool-{block.tool_name}", **call}
        case "image" | "audio":
            return {"type": "file", "mediaType": block.mime_type, "url": ""}
        case _:
            return None


def _add_result(parts: list[dict[str, Any]], message: Message) -> None:
    """Complete the part of a call in place."""
    call = next((part for part in parts if part.get("toolCallId") == message.tool_call_id), None)
    if call is None:
        return
    for block in message.content:
        if block.kind == "toolResult":
            is_ok = block.ok
            outcome = {"output": block.data} if is_ok else {"errorText": block.error or ""}
            call |= {"state": "output-available" if is_ok else "output-error", **outcome}


def build_steps(messages: Iterable[Message], turn: str) -> list[dict[str, Any]]:
    """Return what each round of a turn said, called and got, in their order.

    Args:
        messages: As they are stored.
        turn: The id of the turn.
    """
    steps: dict[int, dict[str, Any]] = {}
    for message in messages:
        if message.turn != turn or message.role == "user":
            continue
        step = steps.setdefault(message.round, _make_step(len(steps) + 1))
        for block in message.content:
            _add_to_step(step, message, block)
    for step in steps.values():
        step["finishReason"] = "tool-calls" if step["toolCalls"] else "stop"
    return list(steps.values())


def _make_step(number: int) -> dict[str, Any]:
    return {"stepNumber": number, "text": "", "toolCalls": [], "toolResults": []}


def _add_to_step(step: dict[str, Any], message: Message, block: Block) -> None:
    match block.kind:
        case "text":
            step["text"] += block.text
        case "toolCall":
            call = {"toolCallId": block.tool_call_id, "toolName": block.tool_name, "input": block.input}
            step["toolCalls"].append(call)
        case "toolResult":
            result = {"toolCallId": message.tool_call_id, "toolName": message.tool_name}
            outcome = {"output": block.data} if block.ok else {"error": block.error}
            step["toolResults"].append(result | outcome)


def build_turn_usage(
    steps: Sequence[dict[str, Any]], prompt_tokens: int, completion_tokens: int, cache_read: int, cache_written: int
) -> dict[str, Any]:
    """Return the usage of a turn in the form of its hooks.

    Args:
        steps: Of the turn, for the finish reason.
        prompt_tokens: Of all its requests.
        completion_tokens: Of all its requests.
        cache_read: Prompt tokens that came from a cache.
        cache_written: Prompt tokens that were put into one.
    """
    total = {
        "inputTokens": prompt_tokens,
        "outputTokens": completion_tokens,
        "totalTokens": prompt_tokens + completion_tokens,
        "inputTokenDetails": {"cacheReadTokens": cache_read, "cacheWriteTokens": cache_written},
        "finishReason": steps[-1]["finishReason"] if steps else "stop",
    }
    usage = sum_step_usage([total])
    del usage["finishReason"]
    return usage


def count_json_bytes(value: Any) -> int:
    """Return the size of a JSON value as it is sent."""
    return len(json.dumps(value, ensure_ascii=False).encode())
