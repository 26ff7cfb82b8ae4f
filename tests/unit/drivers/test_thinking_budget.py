"""The thinking allowance and parameters of each provider's requests."""

from typing import Any

import pytest

from fermata.drivers.registry import PROVIDER_MODULES, get_model_traits, get_provider
from tests.unit.drivers.conversation_builders import model_request, user_message
from tests.unit.drivers.history_strategies import MODELS

LIMITS = {
    "anthropic": ("max_tokens",),
    "openai": ("max_output_tokens",),
    "openrouter": ("max_output_tokens",),
    "ollama": ("options", "num_predict"),
    "openai-compatible": ("max_tokens",),
}
THINKS_BY_ITSELF = MODELS | {"anthropic": "claude-opus-5"}


def build_sent_body(provider: str, model: str, tokens: int) -> dict[str, Any]:
    request = model_request(user_message("a"), model=model, thinking_tokens=tokens)
    return get_provider(provider).build_body(request, frozenset())


@pytest.mark.parametrize("tokens", [0, 4096])
@pytest.mark.parametrize("provider", PROVIDER_MODULES)
def test_the_output_limit_is_raised_by_the_thinking_allowance(provider: str, tokens: int) -> None:
    model = THINKS_BY_ITSELF[provider]
    limit: Any = build_sent_body(provider, model, tokens)
    for name in LIMITS[provider]:
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
