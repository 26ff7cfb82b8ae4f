"""Compute the tokens that a request adds to its output limit so that the model can think (decision 0080).

Thinking counts against the limit of the answer everywhere, so that limit is raised by the thinking tokens that were
asked for. With 0, every model thinks as much as it does by default, and the limit is raised by what is likely.
"""

import re

OPENAI_THINKING_TOKENS = 25_000
"""What OpenAI's guide advises."""
DEFAULT_THINKING_TOKENS = 8192
"""No more than is likely: OpenRouter wants to see credit for all of it, and Ollama's windows are small."""

_OPENAI_REASONING_MODEL = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*chat)")


def default_thinking_allowance(_model: str, tokens: int) -> int:
    return tokens or DEFAULT_THINKING_TOKENS


def effort_from_tokens(tokens: int) -> str:
    """Return the effort that stands for a budget, for models that take no number."""
    if tokens < 4096:
        return "low"
    return "medium" if tokens < 16384 else "high"


def is_openai_reasoning_model(model: str) -> bool:
    """Return, judging by its name, whether one of OpenAI's models reasons."""
    return _OPENAI_REASONING_MODEL.match(model) is not None
