"""What a turn asks of its model beside the conversation: how much to think, and how large a window to have."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.tools.site.tools import SITE
from fermata.turns.recall import SLACK, recipient_of
from fermata.usage.balance import balance
from fermata.usage.budgets import Budgets, Limits, set_budgets
from fermata.wire.ndjson import lines
from fermata.words.events import Context, Reasoning
from fermata.words.model import ReasoningDelta, Reply, Stop, Tokens
from tests.unit.turns import truth
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import Stage, call, calls


@pytest.mark.parametrize(
    ("deployment", "tenant", "told"), [(0, None, 0), (4096, None, 4096), (4096, 1024, 1024), (4096, 0, 0)]
)
def test_the_tenants_setting_counts_before_the_deployments(
    staged: MakeStage, deployment: int, tenant: Any, told: int
) -> None:
    stage = staged(thinking_tokens=deployment)
    stage.start(thinking_tokens=tenant)
    stage.says("Hello.")
    stage.run()
    assert [ask.thinking_tokens for ask in stage.driver.asks] == [told]


def test_a_setting_that_changes_does_not_change_a_turn_under_way(staged: MakeStage) -> None:
    stage = staged(thinking_tokens=4096)
    stage.start()
    stage.says(calls(call("deleteNode", nodeId="n")), "Done.")
    stage.run()
    changed = stage.desk.settings.model_copy(update={"thinking_tokens": 0})
    object.__setattr__(stage.desk, "settings", changed)
    stage.answer({"ok": True})
    stage.run()
    assert [ask.thinking_tokens for ask in stage.driver.asks] == [4096, 4096]


def test_what_a_model_thinks_is_on_the_stream_of_those_who_know_reasoning(stage: Stage) -> None:
    stage.start(thinking_tokens=1024)
    stage.says([ReasoningDelta(text="Hm, a footer."), Reply(blocks=(), stop=Stop.END, tokens=Tokens(prompt=1))])
    stage.run()
    (thought,) = [event for event in stage.events() if isinstance(event, Reasoning)]
    assert b"Hm, a footer." in lines(3, thought, "fermata")
    assert b"Hm" not in lines(3, thought, "instatic")
    truth.check(stage)


def test_a_budget_holds_what_thinking_may_cost_too(stage: Stage) -> None:
    stage.price(input_per_mtok=0, output_per_mtok=1000)
    set_budgets(stage.desk, stage.caller, Budgets(tenant=Limits(daily_usd=Decimal(1000))))
    stage.start(thinking_tokens=10_000)
    assert balance(stage.desk, "bakery")["tenant"]["today"]["heldUsd"] == pytest.approx(8.192 + 10)


def test_ollama_is_asked_for_the_window_that_the_history_is_cut_to(staged: MakeStage) -> None:
    stage = staged(ollama_window=16_000)
    turn = stage.start().model_copy(update={"provider": "ollama"})
    stage.says("Hello.")
    stage.run()
    assert stage.driver.asks[0].window_tokens == 16_000
    room = recipient_of(stage.desk, turn, SITE, "", ()).tokens
    assert room == pytest.approx(16_000 * (1 - SLACK) - stage.desk.settings.longest_answer, abs=200)


def test_thinking_that_takes_more_than_the_slack_leaves_less_room_for_the_history(staged: MakeStage) -> None:
    stage = staged(unknown_window=200_000)
    turn = stage.start()

    def room(tokens: int) -> int:
        told = turn.model_copy(update={"thinking_tokens": tokens})
        return recipient_of(stage.desk, told, SITE, "", ()).tokens

    assert room(0) == room(10_000) == room(20_000)
    assert room(60_000) == room(0) - 40_000


def test_how_full_the_window_is_stays_as_it_was_when_a_provider_does_not_say(stage: Stage) -> None:
    stage.start()
    stage.says(
        [Reply(blocks=(call("list_documents"),), stop=Stop.TOOL_CALLS, tokens=Tokens(prompt=700, cache_read=300))],
        [Reply(blocks=(), stop=Stop.END, tokens=Tokens(), tokens_known=False)],
    )
    stage.run()
    assert [event.context_tokens for event in stage.events() if isinstance(event, Context)] == [1000]
    assert stage.thread().context_tokens == 1000
