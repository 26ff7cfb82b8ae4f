"""The request as the real API sees it: content as lists, neighbours of one role as one message."""

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
    turns: list[MergedMessage] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if not turns or turns[-1].role != message["role"]:
            turns.append(MergedMessage(message["role"]))
        turns[-1].blocks += blocks
    return turns


def without_cache_control(block: ContentBlock) -> ContentBlock:
    """A block without its cache mark: marks may come and go."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def fingerprint(*parts: Any) -> str:
    """A short fingerprint of JSON values."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


def fingerprint_prefix(body: dict[str, Any], turns: list[MergedMessage]) -> str:
    """What stands before an answer: tools, system and the turns so far, their thinking aside."""
    system = body.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    said = [
        [t.role, [without_cache_control(b) for b in t.blocks if b["type"] not in ("thinking", "redacted_thinking")]]
        for t in turns
    ]
    return fingerprint(
        [without_cache_control(tool) for tool in body.get("tools") or []],
        [without_cache_control(block) for block in blocks],
        said,
    )


def sign_thinking(body: dict[str, Any], turns: list[MergedMessage], thinking: str) -> str:
    """The signature of a piece of thinking: bound to its text, its model and what stood before it."""
    return f"demo.{fingerprint(body['model'], thinking)}.{fingerprint_prefix(body, turns)}"
