"""Settings of a model request: thinking tokens and window size."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.events import ContextEvent, ReasoningEvent
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, TokenUsage
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.turns.round.context_window import WINDOW_RESERVE_RATIO, build_model_profile
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.wire.renderers.ndjson import render_event
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


@pytest.mark.parametrize(
    ("deployment", "tenant", "expected"), [(0, None, 0), (4096, None, 4096), (4096, 1024, 1024), (4096, 0, 0)]
)
def test_the_tenants_thinking_setting_overrides_the_deployments(
    staged: MakeStage, deployment: int, tenant: Any, expected: int
) -> None:
    stage = staged(thinking_tokens=deployment)
    stage.start_turn(thinking_tokens=tenant)
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert [request.thinking_tokens for request in stage.driver.requests] == [expected]


def test_a_changed_setting_does_not_affect_a_running_turn(staged: MakeStage) -> None:
    stage = staged(thinking_tokens=4096)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="n")), "Done.")
    stage.run_workflow()
    changed = stage.resources.settings.model_copy(update={"thinking_tokens": 0})
    object.__setattr__(stage.resources, "settings", changed)
    stage.answer_request({"ok": True})
    stage.run_workflow()
    assert [request.thinking_tokens for request in stage.driver.requests] == [4096, 4096]


def test_reasoning_is_streamed_to_clients_that_support_it(stage: Stage) -> None:
    stage.start_turn(thinking_tokens=1024)
    stage.script_replies(
        [
            ReasoningDelta(text="Hm, a footer."),
            ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=1)),
        ]
    )
    stage.run_workflow()
    (thought,) = [event for event in stage.events() if isinstance(event, ReasoningEvent)]
    assert b"Hm, a footer." in render_event(3, thought, "fermata")
    assert b"Hm" not in render_event(3, thought, "instatic")
    invariants.check_invariants(stage)


def test_a_hold_includes_the_thinking_tokens(stage: Stage) -> None:
    stage.set_price(input_per_mtok=0, output_per_mtok=1000)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(1000))))
    stage.start_turn(thinking_tokens=10_000)
    assert load_budget_status(stage.resources, "bakery")["tenant"]["today"]["heldUsd"] == pytest.approx(8.192 + 10)


def test_ollama_gets_the_window_size_that_the_history_is_cut_to(staged: MakeStage) -> None:
    stage = staged(ollama_window_tokens=16_000)
    turn = stage.start_turn().model_copy(update={"provider": "ollama"})
    stage.script_replies("Hello.")
    stage.run_workflow()
    assert stage.driver.requests[0].window_tokens == 16_000
    room = build_model_profile(stage.resources, turn, SITE_TOOLSET, "", ()).max_history_tokens
    assert room == pytest.approx(
        16_000 * (1 - WINDOW_RESERVE_RATIO) - stage.resources.settings.max_answer_tokens, abs=200
    )


def test_thinking_beyond_the_reserve_shortens_the_history(staged: MakeStage) -> None:
    stage = staged(default_window_tokens=200_000)
    turn = stage.start_turn()

    def room(tokens: int) -> int:
        thinking_turn = turn.model_copy(update={"thinking_tokens": tokens})
        return build_model_profile(stage.resources, thinking_turn, SITE_TOOLSET, "", ()).max_history_tokens

    assert room(0) == room(10_000) == room(20_000)
    assert room(60_000) == room(0) - 40_000


def test_the_context_size_is_kept_when_a_provider_reports_none(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            ModelResponse(
                blocks=(tool_call_block("list_documents"),),
                stop=FinishReason.TOOL_CALLS,
                tokens=TokenUsage(prompt=700, cache_read=300),
            )
        ],
        [ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(), tokens_known=False)],
    )
    stage.run_workflow()
    assert [event.context_tokens for event in stage.events() if isinstance(event, ContextEvent)] == [1000]
    assert stage.load_conversation().context_tokens == 1000
