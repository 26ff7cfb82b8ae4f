"""The thinking allowance and parameters of each provider's requests."""

from typing import Any

import pytest

from fermata.drivers.registry import PROVIDER_MODULES, get_model_traits, get_provider
from tests.unit.drivers.conversation_builders import model_request, user_message
from tests.unit.drivers.history_strategies import MODELS
from tests.unit.drivers.tested_providers import TESTED_PROVIDERS

THINKS_BY_ITSELF = MODELS | {"anthropic": "claude-opus-5"}


def build_sent_body(provider: str, model: str, tokens: int) -> dict[str, Any]:
    request = model_request(user_message("a"), model=model, thinking_tokens=tokens)
    return get_provider(provider).build_body(request, frozenset())


@pytest.mark.parametrize("tokens", [0, 4096])
@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_the_output_limit_is_raised_by_the_thinking_allowance(provider: str, tokens: int) -> None:
    model = THINKS_BY_ITSELF[provider]
    limit: Any = build_sent_body(provider, model, tokens)
    for name in TESTED_PROVIDERS[provider].limit_path:
        limit = limit[name]
    assert limit == 8192 + get_model_traits(provider).thinking_allowance(model, tokens)


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_the_allowance_is_the_requested_budget(provider: str) -> None:
    assert get_model_traits(provider).thinking_allowance(MODELS[provider], 4096) == 4096


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("anthropic", "claude-haiku-4-5", 0),
        ("anthropic", "claude-opus-5", 16_384),
        ("openai", "gpt-4.1", 0),
        ("openai", "gpt-5.2", 25_000),
        ("openrouter", "any", 8192),
        ("gemini", "gemini-2.0-flash", 0),
        ("gemini", "gemini-3-pro", 8192),
        ("ollama", "any", 8192),
        ("openai-compatible", "deepseek-v4", 0),
        ("openai-compatible", "gpt-5.2", 25_000),
    ],
)
def test_without_a_budget_the_allowance_is_what_is_likely(provider: str, model: str, expected: int) -> None:
    assert get_model_traits(provider).thinking_allowance(model, 0) == expected


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("anthropic", "claude-opus-4-5", {"thinking": {"type": "enabled", "budget_tokens": 5000}}),
        ("openai", "gpt-5.2", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("openrouter", "anthropic/claude-opus-5", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("ollama", "qwen3", {"think": True}),
        ("openai-compatible", "gpt-5.2", {"reasoning_effort": "medium"}),
        ("gemini", "gemini-2.0-flash", {}),
        ("openai-compatible", "deepseek-v4", {}),
    ],
)
def test_each_provider_gets_its_own_thinking_parameter_and_only_with_a_budget(
    provider: str, model: str, expected: dict[str, Any]
) -> None:
    names = ("thinking", "reasoning", "think", "reasoning_effort")
    body = build_sent_body(provider, model, 5000)
    assert {name: body[name] for name in names if name in body} == expected
    assert not build_sent_body(provider, model, 0).keys() & set(names)


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("gemini-2.5-pro", 5000, {"includeThoughts": True, "thinkingBudget": 5000}),
        ("gemini-2.5-pro", 20, {"includeThoughts": True, "thinkingBudget": 128}),
        ("gemini-2.5-flash", 60_000, {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", 20, {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-3-pro", 5000, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.8-flash", 5000, {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-flash-latest", 20, {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-3-pro", 0, {"includeThoughts": True}),
        ("gemini-2.0-flash", 5000, None),
        ("gemma-3-27b-it", 5000, None),
    ],
)
def test_a_gemini_model_thinks_as_its_generation_takes_it(
    model: str, tokens: int, expected: dict[str, Any] | None
) -> None:
    """Summaries are asked for without a budget too: a stream would be silent while the model thinks."""
    config = build_sent_body("gemini", model, tokens)["generationConfig"]
    assert config.get("thinkingConfig") == expected
