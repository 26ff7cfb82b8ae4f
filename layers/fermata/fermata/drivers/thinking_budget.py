"""How much a model is told to think before it answers, and the room that takes (docs/decisions/0080).

Told nothing (0 tokens), every model does as it does by itself. Everywhere thinking counts against the limit of the
answer, so that limit is raised by as much as is thought, or likely is.
"""

import re

ANTHROPIC_THINKING_TOKENS = 16_384
OPENAI_THINKING_TOKENS = 25_000
"""What its guide advises."""
DEFAULT_THINKING_TOKENS = 8192
"""No more than is likely: OpenRouter wants to see credit for all of it, and Ollama's windows are small."""
MIN_ANTHROPIC_BUDGET_TOKENS = 1024
"""Tokens of the smallest budget Anthropic takes."""

ModelVersion = tuple[int, int]

_BUDGET, _ADAPTIVE, _BY_ITSELF, _BINDING = (3, 7), (4, 6), (5, 0), (5, 1)
_LONG_ANSWERS = (4, 5)
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?![\d])")
_OPENAI = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*chat)")


def get_thinking_allowance(provider: str, model: str, tokens: int) -> int:
    """Tokens beyond the answer's own that a request to this model allows for."""
    match provider:
        case "anthropic":
            return _anthropic_room(model, tokens)
        case "openai":
            return (tokens or OPENAI_THINKING_TOKENS) if is_openai_reasoning_model(model) else 0
        case "openai-compatible":
            return tokens or (OPENAI_THINKING_TOKENS if is_openai_reasoning_model(model) else 0)
        case _:
            return tokens or DEFAULT_THINKING_TOKENS


def _anthropic_room(model: str, tokens: int) -> int:
    match get_anthropic_thinking_mode(model, tokens):
        case "adaptive":
            return tokens or ANTHROPIC_THINKING_TOKENS
        case "enabled":
            return max(tokens, MIN_ANTHROPIC_BUDGET_TOKENS)
        case _:
            return 0


def effort_from_tokens(tokens: int) -> str:
    """A budget in the words of models that only know effort."""
    if tokens < 4096:
        return "low"
    return "medium" if tokens < 16384 else "high"


def is_openai_reasoning_model(model: str) -> bool:
    """Whether a model of OpenAI's reasons, by its name."""
    return _OPENAI.match(model) is not None


def get_anthropic_thinking_mode(model: str, tokens: int) -> str | None:
    """In which way: older models within a budget when told to, newer ones decide how much, the newest always do."""
    version = _version(model)
    if version is not None and version >= _BY_ITSELF:
        return "adaptive"
    if tokens <= 0 or (version is not None and version < _BUDGET):
        return None
    return "adaptive" if version is None or version >= _ADAPTIVE else "enabled"


def has_bound_thinking(model: str) -> bool:
    """Whether a model of Anthropic's refuses or drops thinking whose history has changed since."""
    return (_version(model) or (0, 0)) >= _BINDING


def get_max_anthropic_output(model: str) -> int:
    """Tokens that any model of Anthropic's of this age may answer with, thinking and all."""
    return 64_000 if (_version(model) or (0, 0)) >= _LONG_ANSWERS else 32_000


def _version(model: str) -> ModelVersion | None:
    """`claude-opus-4-8` is (4, 8), `claude-3-7-sonnet-20250219` is (3, 7); names without a number are None."""
    found = _VERSION.match(model)
    return (int(found[1]), int(found[2] or 0)) if found else None
