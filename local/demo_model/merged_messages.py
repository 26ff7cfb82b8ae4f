"""Normalize Messages requests as the API does: content as lists, and adjacent messages of one role merged."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

ContentBlock = dict[str, Any]


@dataclass
class MergedMessage:
    role: str
    blocks: list[ContentBlock] = field(default_factory=list)


def merge_messages(messages: list[dict[str, Any]]) -> list[MergedMessage]:
    merged: list[MergedMessage] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if not merged or merged[-1].role != message["role"]:
            merged.append(MergedMessage(message["role"]))
        merged[-1].blocks += blocks
    return merged


def without_cache_control(block: ContentBlock) -> ContentBlock:
    """Copy a block without its cache breakpoint, which may change between requests."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def fingerprint(*parts: Any) -> str:
    """Make a short fingerprint of JSON values."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


def fingerprint_prefix(body: dict[str, Any], turns: list[MergedMessage]) -> str:
    """Make the fingerprint of what precedes an answer: tools, system and messages, without their thinking."""
    system = body.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    messages = [
        [
            turn.role,
            [
                without_cache_control(block)
                for block in turn.blocks
                if block["type"] not in ("thinking", "redacted_thinking")
            ],
        ]
        for turn in turns
    ]
    return fingerprint(
        [without_cache_control(tool) for tool in body.get("tools") or []],
        [without_cache_control(block) for block in blocks],
        messages,
    )


def sign_thinking(body: dict[str, Any], turns: list[MergedMessage], thinking: str) -> str:
    """Sign thinking: the signature is bound to its text, its model and the prefix before it."""
    return f"demo.{fingerprint(body['model'], thinking)}.{fingerprint_prefix(body, turns)}"
