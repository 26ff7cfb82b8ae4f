"""Describe what has happened in a session of the CMS agent's own protocol: each prompt, and the steps to its answer.

All of it follows from the stored messages: a step begins when the message before it was stored, and each response of a
model says what its turn had used until then.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from fermata.domain.messages import Message, UsageSoFar

MAX_LOGGED_PROMPT_CHARS = 2_000
_NOTHING = UsageSoFar.model_validate({"prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0})


def describe_cms_log(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return an entry for each prompt among messages, with the steps of its turn.

    Args:
        messages: In their order.
    """
    turns: dict[str, list[Message]] = {}
    for message in messages:
        if message.turn in turns:
            turns[message.turn].append(message)
        elif message.role == "user":
            turns[message.turn] = [message]
    return [_describe_turn(found) for found in turns.values()]


def _describe_turn(messages: Sequence[Message]) -> dict[str, Any]:
    prompt = messages[0]
    text = " ".join(block.text for block in prompt.content if block.kind == "text" and block.text)
    steps = _list_steps(messages)
    used = [message.turn_usage for message in messages if message.turn_usage]
    return {
        "index": prompt.position,
        "traceId": prompt.turn,
        "prompt": text[:MAX_LOGGED_PROMPT_CHARS],
        "tools": [name for step in steps for name in step["tools"]],
        "timestamp": prompt.created_at,
        "durationMs": _count_milliseconds(prompt, messages[-1]),
        "usage": _describe_usage(_NOTHING, used[-1] if used else _NOTHING),
        "steps": steps,
    }


def _list_steps(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a step for each response of a model: how long the model took, what it used, and the tools it called."""
    steps: list[dict[str, Any]] = []
    used = _NOTHING
    for before, message in pairwise(messages):
        if message.role != "assistant":
            continue
        until_now = message.turn_usage or used
        steps.append(
            {
                "stepNumber": len(steps) + 1,
                "durationMs": _count_milliseconds(before, message),
                "usage": _describe_usage(used, until_now),
                "tools": [block.tool_name for block in message.content if block.kind == "toolCall"],
            }
        )
        used = until_now
    return steps


def _describe_usage(before: UsageSoFar, after: UsageSoFar) -> dict[str, Any]:
    prompt = max(0, after.prompt_tokens - before.prompt_tokens)
    completion = max(0, after.completion_tokens - before.completion_tokens)
    return {
        "promptTokens": prompt,
        "completionTokens": completion,
        "totalTokens": prompt + completion,
        "costUsd": max(0.0, float(after.cost_usd - before.cost_usd)),
    }


def _count_milliseconds(start: Message, end: Message) -> int:
    """Return the time between two messages; 0 if one has no time, or clocks of processes differ."""
    try:
        seconds = (datetime.fromisoformat(end.created_at) - datetime.fromisoformat(start.created_at)).total_seconds()
    except ValueError:
        return 0
    return max(0, round(seconds * 1000))
