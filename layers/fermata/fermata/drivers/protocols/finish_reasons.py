"""Understand why servers of many makers end an answer (decision 0196)."""

import re

from fermata.domain.model_io import FinishReason

CONTENT_FILTER_REASON = "the provider's content filter stopped it"
_MAX_QUOTED_CHARS = 80
_CALLS = ("tool_calls", "tool_call", "tool_use", "function_call")
_NORMAL = frozenset({
    "", "stop", "stop_sequence", "eos", "eos_token", "end", "end_turn", "complete", "completed", "null", "load",
    "unload", *_CALLS,
})  # fmt: skip
_AT_LIMIT = re.compile(r"length|max_?(?:output_|new_)?tokens|token_limit|model_context_window", re.I)
_FILTERED = re.compile(
    r"content_?filter|refusal|safety|recitation|blocklist|prohibited|spii|sensitive|blocked|moderation", re.I
)
_BROKEN = re.compile(r"malformed|unexpected_tool|too_many_tool|error|abort|cancel|insufficient_system", re.I)


def find_finish_reason(reason: str) -> FinishReason:
    """Return what a reason means; an unknown one is the end of the answer."""
    if reason.lower() in _NORMAL or _BROKEN.search(reason):
        return FinishReason.END
    if _AT_LIMIT.search(reason):
        return FinishReason.MAX_TOKENS
    return FinishReason.REFUSAL if _FILTERED.search(reason) else FinishReason.END


def describe_unusual_end(label: str, reason: str, *, has_calls: bool = True) -> str | None:
    """Return a warning for an answer that ended for a reason that nobody documents, or because something broke.

    Args:
        has_calls: Whether a call arrived, which some reasons announce.
    """
    if reason.lower() in _CALLS and not has_calls:
        return f"{label} announced a tool call, but sent none, so nothing was done. Ask the model to go on."
    if reason.lower() in _NORMAL or find_finish_reason(reason) is not FinishReason.END:
        return None
    return f"{label} ended the answer early: {reason[:_MAX_QUOTED_CHARS]}. Ask again if something is missing."
