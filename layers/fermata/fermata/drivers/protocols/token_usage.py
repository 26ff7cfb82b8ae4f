"""Read token counts from a provider's usage, and detect a prompt that its server has truncated."""

from collections.abc import Mapping
from typing import Any

from fermata.domain.model_io import ModelRequest, TokenUsage

REQUEST_BYTES_PER_TOKEN = 5
"""Bytes of a request's JSON; a cautious estimate."""
MIN_PLAUSIBLE_SHARE = 0.6
"""A prompt counted below this share of its estimate was truncated: no text has more than eight bytes a token."""
MIN_TOKENS_TO_JUDGE = 1500
"""Below this, an estimate says too little."""


def tokens_from_usage(usage: Mapping[str, Any], prompt: Any, completion: Any, prompt_details: Any) -> TokenUsage:
    """Build the token usage of a provider whose prompt count should include cached tokens (decision 0074).

    Some gateways leave the cached part out: then it is larger than the prompt, or the total counts both (decision
    0195). Some leave thinking out of the completion: then the total is larger by it.

    Args:
        usage: The usage as the provider reports it; kept as `raw`.
        prompt: Its count of prompt tokens.
        completion: Its count of completion tokens.
        prompt_details: An object with `cached_tokens` and `cache_write_tokens`.
    """
    details = prompt_details if isinstance(prompt_details, Mapping) else {}
    cache_read = to_token_count(details.get("cached_tokens"))
    cache_creation = to_token_count(details.get("cache_write_tokens"))
    cached = cache_read + cache_creation
    prompt_tokens, completion_tokens = to_token_count(prompt), to_token_count(completion)
    total = to_token_count(usage.get("total_tokens"))
    is_left_out = cached > prompt_tokens or (cached > 0 and total == prompt_tokens + cached + completion_tokens)
    if not is_left_out:
        completion_tokens += _count_thinking_apart(usage, total - prompt_tokens - completion_tokens)
    return TokenUsage(
        prompt=prompt_tokens,
        completion=completion_tokens,
        cache_read=cache_read,
        cache_creation=cache_creation,
        cached_within=cached > 0 and not is_left_out,
        raw=dict(usage) or None,
    )


def _count_thinking_apart(usage: Mapping[str, Any], rest: int) -> int:
    """Return the tokens of thinking that are not in the completion.

    Args:
        rest: What the total has besides prompt and completion. Without details, only thinking explains it.
    """
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return rest if rest > 0 and (reasoning is None or to_token_count(reasoning) == rest) else 0


def to_token_count(value: Any) -> int:
    """Return a number of tokens; 0 for a value that is no plausible number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
        return 0
    return int(value)


def truncation_warning(label: str, expected_tokens: int, tokens: TokenUsage) -> str | None:
    """Return a warning if the server counted far less than it was sent: it dropped the beginning (decision 0072)."""
    counted = tokens.context_tokens
    if expected_tokens < MIN_TOKENS_TO_JUDGE or not 0 < counted < MIN_PLAUSIBLE_SHARE * expected_tokens:
        return None
    return (
        f"{label} read only {counted} of about {expected_tokens} tokens: the beginning of this conversation and its "
        "tools were left out. Give the model a larger context window, or begin a new conversation."
    )


def estimate_request_tokens(request: ModelRequest, body: bytes) -> int:
    """Estimate the tokens of an encoded request; its images count nothing."""
    image_bytes = sum(
        len(block.data or "") for message in request.messages for block in message.content if block.kind == "image"
    )
    return (len(body) - image_bytes) // REQUEST_BYTES_PER_TOKEN
