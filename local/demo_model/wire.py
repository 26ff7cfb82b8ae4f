"""The request as the real API sees it: content as lists, neighbours of one role as one message."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

Block = dict[str, Any]


@dataclass
class Turn:
    role: str
    blocks: list[Block] = field(default_factory=list)


def merged(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if not turns or turns[-1].role != message["role"]:
            turns.append(Turn(message["role"]))
        turns[-1].blocks += blocks
    return turns


def bare(block: Block) -> Block:
    """A block without its cache mark: marks may come and go."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def print_of(*parts: Any) -> str:
    """A short fingerprint of JSON values."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:16]


def prefix_print(body: dict[str, Any], turns: list[Turn]) -> str:
    """What stands before an answer: tools, system and the turns so far, their thinking aside."""
    system = body.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    said = [[t.role, [bare(b) for b in t.blocks if b["type"] not in ("thinking", "redacted_thinking")]] for t in turns]
    return print_of([bare(tool) for tool in body.get("tools") or []], [bare(block) for block in blocks], said)


def sign(body: dict[str, Any], turns: list[Turn], thinking: str) -> str:
    """The signature of a piece of thinking: bound to its text, its model and what stood before it."""
    return f"demo.{print_of(body['model'], thinking)}.{prefix_print(body, turns)}"
