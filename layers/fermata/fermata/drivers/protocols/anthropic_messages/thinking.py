"""Know how each Claude model thinks: by budget, adaptively or not at all (decisions 0060 and 0080)."""

import re
from typing import Literal

ADAPTIVE_THINKING_TOKENS = 16_384
MIN_THINKING_BUDGET_TOKENS = 1024
"""The smallest budget that the API accepts."""

ThinkingMode = Literal["adaptive", "enabled"]
ModelVersion = tuple[int, int]

_FIRST_WITH_BUDGET = (3, 7)
_FIRST_ADAPTIVE = (4, 6)
_FIRST_ALWAYS_THINKING = (5, 0)
_FIRST_WITH_BOUND_THINKING = (5, 1)
_FIRST_WITH_LONG_OUTPUT = (4, 5)
_FIRST_WITH_OUTPUT_SCHEMAS = (4, 5)
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?![\d])")


def get_anthropic_allowance(model: str, tokens: int) -> int:
    """Return the tokens to add to the output limit when `tokens` of thinking are asked for."""
    match get_thinking_mode(model, tokens):
        case "adaptive":
            return tokens or ADAPTIVE_THINKING_TOKENS
        case "enabled":
            return max(tokens, MIN_THINKING_BUDGET_TOKENS)
        case None:
            return 0


def get_thinking_mode(model: str, tokens: int) -> ThinkingMode | None:
    """Return how the model is asked to think; None if it is not.

    Older models think within a budget when they are asked to, newer ones decide how much, and the newest always think.
    """
    version = _parse_version(model)
    if version is not None and version >= _FIRST_ALWAYS_THINKING:
        return "adaptive"
    if tokens <= 0 or (version is not None and version < _FIRST_WITH_BUDGET):
        return None
    return "adaptive" if version is None or version >= _FIRST_ADAPTIVE else "enabled"


def has_bound_thinking(model: str) -> bool:
    """Return whether the model refuses or drops its earlier thinking when the history before it has changed."""
    return (_parse_version(model) or (0, 0)) >= _FIRST_WITH_BOUND_THINKING


def has_output_schemas(model: str) -> bool:
    """Return whether the model's answers can be bound to a JSON Schema."""
    return (_parse_version(model) or (0, 0)) >= _FIRST_WITH_OUTPUT_SCHEMAS


def get_max_output_tokens(model: str) -> int:
    """Return the tokens that every Claude model of this version may answer with, thinking included."""
    return 64_000 if (_parse_version(model) or (0, 0)) >= _FIRST_WITH_LONG_OUTPUT else 32_000


def _parse_version(model: str) -> ModelVersion | None:
    """Parse a version: `claude-opus-4-8` is (4, 8), `claude-3-7-sonnet-20250219` is (3, 7).

    Returns None for names without a number.
    """
    match = _VERSION.match(model)
    return (int(match[1]), int(match[2] or 0)) if match else None
