"""The way in which each model is asked to think."""

from typing import Any

import pytest

from tests.unit.drivers.accepted_anthropic_body import build_accepted_body
from tests.unit.drivers.conversation_builders import (
    model_message,
    model_request,
    tool_call,
    tool_result,
    user_message,
)

ADAPTIVE = {"type": "adaptive", "display": "summarized"}


def enabled_thinking(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


@pytest.mark.parametrize(
    ("name", "tokens", "setting", "limit"),
    [
        ("claude-3-5-haiku-20241022", 2000, None, 8192),
        ("claude-sonnet-4-5-20250929", 0, None, 8192),
        ("claude-sonnet-4-5-20250929", 2000, enabled_thinking(2000), 10_192),
        ("claude-3-7-sonnet-20250219", 9000, enabled_thinking(9000), 17_192),
        ("claude-opus-4-20250514", 100, enabled_thinking(1024), 9216),
        ("claude-opus-4-20250514", 90_000, enabled_thinking(32_000 - 8192), 32_000),
        ("claude-opus-4-8", 0, None, 8192),
        ("claude-opus-4-8", 2000, ADAPTIVE, 10_192),
        ("some-other-model", 2000, ADAPTIVE, 10_192),
        ("claude-opus-5", 0, ADAPTIVE, 8192 + 16_384),
    ],
)
def test_each_model_is_asked_to_think_in_the_way_it_accepts(name: str, tokens: int, setting: Any, limit: int) -> None:
    body = build_accepted_body(model_request(user_message("a"), model=name, thinking_tokens=tokens))
    assert (body.get("thinking"), body["max_tokens"]) == (setting, limit)


@pytest.mark.parametrize("tokens", [0, 2000, 90_000])
@pytest.mark.parametrize("version", ["3-5-sonnet-20241022", "3-7-sonnet-20250219", "opus-4-1", "haiku-4-5", "opus-5"])
def test_no_model_is_asked_for_more_than_it_may_answer(version: str, tokens: int) -> None:
    build_accepted_body(model_request(user_message("a"), model=f"claude-{version}", thinking_tokens=tokens))


def test_a_limit_above_the_models_usual_one_is_sent_as_it_is() -> None:
    assert (
        build_accepted_body(model_request(user_message("a"), model="claude-opus-5", max_tokens=100_000))["max_tokens"]
        == 100_000
    )


def test_the_newest_models_are_asked_to_drop_thinking_on_a_changed_history() -> None:
    thinking = build_accepted_body(model_request(user_message("a"), model="claude-opus-5-5"))["thinking"]
    assert thinking["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_a_budget_is_left_out_where_it_does_not_fit() -> None:
    model = "claude-sonnet-4-5"
    assert "thinking" not in build_accepted_body(
        model_request(user_message("a"), model=model, thinking_tokens=2000, max_tokens=64_000)
    )
    lost = [user_message("a"), model_message("x", tool_call("t1")), tool_result("t1")]
    assert "thinking" not in build_accepted_body(model_request(*lost, model=model, thinking_tokens=2000))
