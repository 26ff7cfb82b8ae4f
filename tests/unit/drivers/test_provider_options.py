"""Options of an agent reach its provider in the provider's own form, and no other provider."""

import json
from typing import Any

import pytest

from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from tests.unit.drivers.conversation_builders import model_request, user_message
from tests.unit.drivers.history_strategies import MODELS

BUDGET = {"type": "enabled", "budgetTokens": 5000}


def build_sent_body(provider: str, options: Any, model: str = "", **members: Any) -> Any:
    request = model_request(user_message("a"), model=model or MODELS[provider], provider_options=options, **members)
    return json.loads(get_provider(provider)._encode_body(request, frozenset()))


@pytest.mark.parametrize(
    ("provider", "model", "options", "expected"),
    [
        (
            "anthropic",
            "claude-opus-4-5",
            {"anthropic": {"thinking": BUDGET, "effort": "high"}},
            {
                "thinking": {"type": "enabled", "budget_tokens": 5000},
                "max_tokens": 13_192,
                "output_config": {"effort": "high"},
            },
        ),
        (
            "openai",
            "gpt-5.2",
            {"openai": {"reasoningEffort": "minimal", "reasoningSummary": "detailed", "service_tier": "flex"}},
            {"reasoning": {"effort": "minimal", "summary": "detailed"}, "service_tier": "flex"},
        ),
        (
            "openrouter",
            "x/y",
            {"openai": {"reasoningEffort": "low"}, "openrouter": {"provider": {"only": ["a"]}}},
            {"reasoning": {"effort": "low"}, "provider": {"only": ["a"]}},
        ),
        ("openai-compatible", "m", {"openai": {"reasoningEffort": "low"}}, {"reasoning_effort": "low"}),
        (
            "openai-compatible",
            "anthropic/claude",
            {"gateway": {"order": ["a", "b"], "models": ["x"], "tags": None}, "anthropic": {"effort": "low"}},
            {"providerOptions": {"gateway": {"order": ["a", "b"]}, "anthropic": {"effort": "low"}}},
        ),
        ("ollama", "qwen3", {"ollama": {"keep_alive": "1h"}}, {"keep_alive": "1h"}),
        (
            "gemini",
            "gemini-2.5-flash",
            {"google": {"thinkingConfig": {"thinkingBudget": 5000}, "safetySettings": [{"category": "X"}]}},
            {
                "generationConfig": {
                    "maxOutputTokens": 13_192,
                    "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5000},
                },
                "safetySettings": [{"category": "X"}],
            },
        ),
        (
            "gemini",
            "gemini-3-pro",
            {"google": {"thinkingConfig": {"thinkingLevel": "low"}}},
            {
                "generationConfig": {
                    "maxOutputTokens": 16_384,
                    "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
                }
            },
        ),
    ],
)
def test_options_are_written_as_the_provider_reads_them(
    provider: str, model: str, options: Any, expected: dict[str, Any]
) -> None:
    body = build_sent_body(provider, options, model)
    assert {name: body.get(name) for name in expected} == expected
    assert "reasoningEffort" not in json.dumps(body)


def test_budget_and_level_of_gemini_exclude_each_other() -> None:
    options = {"google": {"thinkingConfig": {"thinkingBudget": 0}}}
    body = build_sent_body("gemini", options, "gemini-3-pro", thinking_tokens=4096)
    assert body["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, "thinkingBudget": 0}


def test_thinking_can_be_turned_off() -> None:
    options = {"anthropic": {"thinking": {"type": "disabled"}}}
    assert "thinking" in build_sent_body("anthropic", {}, "claude-opus-4-5", thinking_tokens=4096)
    for model in ("claude-opus-4-5", "claude-opus-5"):
        assert "thinking" not in build_sent_body("anthropic", options, model, thinking_tokens=4096)


def test_options_of_ollama_join_those_of_the_request() -> None:
    sent = build_sent_body("ollama", {"ollama": {"options": {"mirostat": 1}}})["options"]
    assert sent["mirostat"] == 1
    assert "num_ctx" in sent


@pytest.mark.parametrize("provider", PROVIDER_MODULES)
@pytest.mark.parametrize("options", [{}, {"nobody": {"a": 1}}, {"anthropic": None, "google": 7, "openai": []}])
def test_options_of_others_and_none_change_nothing(provider: str, options: Any) -> None:
    is_for_a_provider_behind = provider == "openai-compatible" and "nobody" in options
    assert (build_sent_body(provider, options) != build_sent_body(provider, {})) is is_for_a_provider_behind


@pytest.mark.parametrize("thinking", [None, 7, "x", [], {}, {"budgetTokens": "x"}, {"budgetTokens": True}])
def test_a_budget_that_is_no_number_is_none(thinking: Any) -> None:
    sent = build_sent_body("anthropic", {"anthropic": {"thinking": thinking}})
    assert sent["max_tokens"] == build_sent_body("anthropic", {})["max_tokens"]
