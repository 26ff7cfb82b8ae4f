"""Estimate the tokens of messages from their text, without fetching anything from S3.

Tokens per character differ tenfold between scripts: a tokenizer has words of English and of markup, syllables of
others, and single bytes of those that it has hardly seen (decision 0200).
"""

import json
import re
from collections.abc import Iterable
from typing import Any, assert_never

from fermata.conversations.block_predicates import block_images
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

ESTIMATED_BYTES_PER_TOKEN = 3
"""Deliberately low: JSON and HTML have about 3.3 bytes a token, and a provider refuses a request that is too long."""
MAX_TOKENS_PER_IMAGE = 1600
"""Tokens of the largest image that providers do not shrink."""
_MESSAGE_OVERHEAD_TOKENS = 12
_LATIN_AND_CYRILLIC = re.compile(r"[\u0080-\u036f\u0400-\u052f]+")
"""Two bytes a character; two tokens for three characters."""
_SYLLABIC = re.compile(
    r"[\u0370-\u03ff\u0530-\u07ff\u2000-\u206f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+"
)
"""Greek, Hebrew, Arabic, punctuation, Chinese, Japanese, Korean: one token a character."""
_RARE = re.compile(r"[\U00010000-\U0010ffff]+")
"""Emoji and historic scripts: three tokens a character."""


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return the estimated prompt tokens of the messages, rather too many than too few."""
    return sum(map(_estimate_message, messages))


def estimate_text_tokens(text: str) -> int:
    """Return the estimated tokens of a text in any script."""
    if text.isascii():
        return len(text) // ESTIMATED_BYTES_PER_TOKEN
    foreign, syllabic, rare = (
        sum(map(len, pattern.findall(text))) for pattern in (_LATIN_AND_CYRILLIC, _SYLLABIC, _RARE)
    )
    ascii_chars = len(text.encode("ascii", "ignore"))
    others = len(text) - ascii_chars - foreign - syllabic - rare  # of India, Thailand, Ethiopia and so on: two tokens
    return (ascii_chars + 2 * foreign) // ESTIMATED_BYTES_PER_TOKEN + syllabic + 2 * others + 3 * rare


@WeakCache
def _estimate_message(message: Message) -> int:
    return _MESSAGE_OVERHEAD_TOKENS + sum(map(estimate_block_tokens, message.content))


def estimate_block_tokens(block: Block) -> int:
    """Return the estimated tokens of a block with its images. Those of a blob were estimated when it was stored."""
    return _estimate_text_of_block(block) + MAX_TOKENS_PER_IMAGE * len(block_images(block))


def _estimate_text_of_block(block: Block) -> int:
    match block.kind:
        case "text":
            return estimate_text_tokens(block.text)
        case "image" | "audio":
            return 0
        case "toolCall":
            return estimate_json_tokens(block.input)
        case "toolResult":
            return estimate_json_tokens(block.data) + estimate_text_tokens(block.error or "")
        case "reasoning":
            return estimate_json_tokens(block.payload)
        case "blob":
            return block.size // ESTIMATED_BYTES_PER_TOKEN if block.tokens is None else block.tokens
        case _:
            assert_never(block)


def estimate_json_tokens(value: Any) -> int:
    """Return the estimated tokens of a value's JSON text."""
    return estimate_text_tokens(json.dumps(value, ensure_ascii=False))
