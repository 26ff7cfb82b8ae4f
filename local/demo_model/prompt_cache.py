"""Count input tokens as Anthropic's prompt cache does: read, written, or uncached."""

import hashlib
import json
from typing import Any

from local.demo_model.merged_messages import merge_messages, without_cache_control

LOOKBACK_BLOCKS = 20
"""How many blocks before a breakpoint are searched for an earlier entry."""


class PromptCache:
    """All prefixes up to a breakpoint, by API key and model."""

    def __init__(self) -> None:
        self._entries: set[tuple[str, str, str]] = set()

    def count_input_tokens(self, key: str, body: dict[str, Any]) -> dict[str, int]:
        """Count the input tokens of a request, and cache its prefixes."""
        fingerprints, sizes, marks = _prefixes(body)
        hits = [
            index
            for mark in marks
            for index in range(mark, max(-1, mark - LOOKBACK_BLOCKS), -1)
            if self._has(key, body, fingerprints[index])
        ]
        self._entries.update((key, body["model"], fingerprints[mark]) for mark in marks)
        read_tokens = sizes[max(hits)] if hits else 0
        cached_tokens = sizes[marks[-1]] if marks else 0
        total = sizes[-1] if sizes else 0
        return {
            "input_tokens": max(1, total - max(cached_tokens, read_tokens)),
            "cache_read_input_tokens": read_tokens,
            "cache_creation_input_tokens": max(0, cached_tokens - read_tokens),
        }

    def _has(self, key: str, body: dict[str, Any], fingerprint: str) -> bool:
        return (key, body["model"], fingerprint) in self._entries


def _prefixes(body: dict[str, Any]) -> tuple[list[str], list[int], list[int]]:
    """Get the fingerprint and token count of every prefix, and the indexes of the blocks that are breakpoints."""
    system = body.get("system") or []
    blocks = list(body.get("tools") or [])
    blocks += [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in merge_messages(body["messages"]):
        blocks += [block | {"role": message.role} for block in message.blocks]
    digest, size = hashlib.sha256(), 0
    prints, sizes, marks = [], [], []
    for index, block in enumerate(blocks):
        text = json.dumps(without_cache_control(block), ensure_ascii=False).encode("utf-8", "replace")
        digest.update(text)
        size += len(text)
        prints.append(digest.hexdigest())
        sizes.append(size // 4)
        if "cache_control" in block:
            marks.append(index)
    return prints, sizes, marks
