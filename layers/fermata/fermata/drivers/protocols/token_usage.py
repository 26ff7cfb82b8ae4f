"""Tokens as their provider counts them, and whether a provider has read all it was sent."""

from collections.abc import Mapping
from typing import Any

from fermata.domain.model_io import ModelRequest, TokenUsage

REQUEST_BYTES_PER_TOKEN = 5
"""Of a request's JSON; a modest estimate."""
MIN_PLAUSIBLE_SHARE = 0.6
"""A prompt counted below this share of its estimate was cut: no text has more than eight bytes a token."""
MIN_TOKENS_TO_JUDGE = 1500
"""Tokens below which an estimate says too little."""


def tokens_from_usage(usage: Mapping[str, Any], prompt: Any, completion: Any, details: Any) -> TokenUsage:
    """From a provider whose prompt count includes what the cache read and wrote."""
    details = details if isinstance(details, Mapping) else {}
    read, written = to_token_count(details.get("cached_tokens")), to_token_count(details.get("cache_write_tokens"))
    return TokenUsage(
        prompt=to_token_count(prompt),
        completion=to_token_count(completion),
        cache_read=read,
        cache_creation=written,
        cached_within=read + written > 0,
        raw=dict(usage) or None,
    )


def to_token_count(value: Any) -> int:
    """A number of tokens; whatever is no number counts nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
        return 0
    return int(value)


def truncation_warning(label: str, expected: int, tokens: TokenUsage) -> str | None:
    """A warning when a provider has counted far less than it was sent: it dropped the beginning without a word."""
    seen = tokens.context_tokens
    if expected < MIN_TOKENS_TO_JUDGE or not 0 < seen < MIN_PLAUSIBLE_SHARE * expected:
        return None
    return (
        f"{label} read only {seen} of about {expected} tokens: the beginning of this conversation and its tools were "
        "left out. Give the model a larger context window, or begin a new conversation."
    )


def estimate_request_tokens(ask: ModelRequest, sent: bytes) -> int:
    """About how many tokens a request is; its pictures count nothing."""
    pictures = sum(
        len(block.data or "") for message in ask.messages for block in message.content if block.kind == "image"
    )
    return (len(sent) - pictures) // REQUEST_BYTES_PER_TOKEN
