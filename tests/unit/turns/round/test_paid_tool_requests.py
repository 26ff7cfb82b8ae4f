"""The cost of an image is in the ledger, whatever becomes of the turn that has asked for it."""

import base64
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.conversations.conversation_store import create_conversation
from fermata.domain.caller import Caller
from fermata.domain.events import ErrorEvent
from fermata.drivers.registry import get_model_traits
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.remote_tools.built_in import image_generation
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.turns import accounting
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.start import build_turn
from fermata.turns.start.start_turn import start_turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from tests.images import make_image
from tests.scripted_tool_server import ReceivedCall, ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.plans.page_samples import SITE
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import RecordingConnection, Stage, as_posted_snapshot, reply_with_calls, tool_call_block

ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
ANSWER = {
    "data": [{"b64_json": base64.b64encode(make_image()).decode()}],
    "usage": {"input_tokens": 20, "output_tokens": 6000},
}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", server.url)
        yield server


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    made = staged(fermata_stage="local")
    make_tenant(made.resources, "bakery")
    turn_on_built_in_tool(made.resources, ADMIN, "image.generate", api_key="k", options={})
    return made


def ask_for_image(stage: Stage) -> str:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("image_generate", prompt="a loaf of bread")), "Done.")
    return stage.run_workflow()


def image_rows(stage: Stage) -> list[tuple[Any, ...]]:
    rows = [row for row in stage.ledger_rows() if row["provider"] == "openai"]
    return [(row["completion"], row["cost"], row["billable"], row["estimated"], row["outcome"]) for row in rows]


def cancel(stage: Stage) -> object:
    return stage.cancel_turn()


def expire(stage: Stage) -> object:
    error = ErrorEvent(message="The turn took too long.", code="turn_expired", retryable=False)
    return stop_turn(stage.resources, stage.turn, error)


ENDS = [pytest.param(cancel, id="cancelled"), pytest.param(expire, id="out of time")]


@pytest.mark.parametrize("end", ENDS)
def test_an_image_that_was_answered_when_its_turn_had_ended_is_in_the_ledger(
    stage: Stage, provider: ScriptedToolServer, end: Callable[[Stage], object]
) -> None:
    provider.script_answer(ANSWER, before=lambda _call: end(stage))
    assert ask_for_image(stage) == "finished"
    assert image_rows(stage) == [(6000, Decimal("0.2401"), True, False, "ok")]


@pytest.mark.parametrize("end", ENDS)
def test_an_image_whose_turn_ends_before_the_provider_answers_is_estimated(
    stage: Stage, provider: ScriptedToolServer, end: Callable[[Stage], object]
) -> None:
    aborted = threading.Event()

    def end_and_wait(_call: ReceivedCall) -> None:
        end(stage)
        stage.pass_time(1)
        aborted.wait(10)  # the watch on the log aborts the request

    provider.script_answer(ANSWER, before=end_and_wait)
    try:
        assert ask_for_image(stage) == "finished"
    finally:
        aborted.set()
    assert image_rows(stage) == [(6208, Decimal("0.248335"), False, True, "unanswered")]


def test_the_image_of_a_function_that_was_superseded_is_in_the_ledger(
    stage: Stage, provider: ScriptedToolServer
) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("image_generate", prompt="a loaf")), "Done.")
    older, newer = stage.make_invocation(), stage.make_invocation()
    provider.script_answer(ANSWER, before=lambda _call: stage.advance_turn(newer, RecordingConnection()))
    stage.advance_turn(older)
    assert stage.terminal_events()[0].type == "done"
    assert image_rows(stage) == [(6000, Decimal("0.2401"), True, False, "ok")]


def test_a_budget_is_charged_with_the_image_of_a_turn_that_was_cancelled(
    stage: Stage, provider: ScriptedToolServer
) -> None:
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(5))))
    provider.script_answer(ANSWER, before=lambda _call: stage.cancel_turn())
    ask_for_image(stage)
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (pytest.approx(0.2401, abs=0.001), 0)


def make_model_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = replace(get_model_traits("anthropic"), are_free=True)
    for module in (build_turn, accounting):
        monkeypatch.setattr(module, "get_model_traits", lambda _provider: free)


def set_daily_budget(stage: Stage, usd: str) -> None:
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(usd))))


def test_a_budget_pays_for_the_images_of_a_turn_whose_model_is_free(
    stage: Stage, provider: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model_free(monkeypatch)
    set_daily_budget(stage, "5")
    provider.script_answer(ANSWER)
    assert ask_for_image(stage) == "finished"
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (pytest.approx(0.2401), 0)
    invariants.check_invariants(stage)


def test_an_image_that_the_budget_does_not_cover_is_not_asked_for_and_the_free_model_goes_on(
    stage: Stage, provider: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_model_free(monkeypatch)
    set_daily_budget(stage, "0.1")
    assert ask_for_image(stage) == "finished"
    assert stage.terminal_events()[0].type == "done"
    assert "has $0.10 left" in str(stage.driver.requests[-1].messages[-1])
    assert not provider.calls
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (0, 0)


@pytest.mark.parametrize("at_once", [True, False], ids=["in one round", "in two rounds"])
def test_no_more_images_are_asked_for_than_the_budget_covers(
    stage: Stage, provider: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    make_model_free(monkeypatch)
    set_daily_budget(stage, "0.3")
    provider.script_answer(ANSWER)
    stage.start_turn()
    calls = [tool_call_block("image_generate", prompt=prompt) for prompt in ("a loaf", "a roll")]
    rounds = [reply_with_calls(*calls)] if at_once else [reply_with_calls(call) for call in calls]
    stage.script_replies(*rounds, "Done.")
    assert stage.run_workflow() == "finished"
    assert len(provider.calls) == 1
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (pytest.approx(0.2401), 0)


def test_a_provider_that_takes_too_long_leaves_an_estimate_with_the_result(
    stage: Stage, provider: ScriptedToolServer
) -> None:
    provider.script_answer(b"{", headers={"content-length": "10"})  # the connection is lost within the answer
    assert ask_for_image(stage) == "finished"
    assert image_rows(stage) == [(6208, Decimal("0.248335"), False, True, "unanswered")]
    invariants.check_invariants(stage)


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_refused_request_costs_nothing(stage: Stage, provider: ScriptedToolServer, status: int) -> None:
    provider.script_answer({"error": {"message": "no"}}, status)
    assert ask_for_image(stage) == "finished"
    assert image_rows(stage) == []


def test_a_request_that_reached_nobody_costs_nothing(
    stage: Stage, provider: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", "http://127.0.0.1:1/images")
    assert ask_for_image(stage) == "finished"
    assert image_rows(stage) == []


def test_images_of_a_plan_whose_turn_was_cancelled_are_in_the_ledger(
    stage: Stage, provider: ScriptedToolServer
) -> None:
    stage.conversation = create_conversation(
        stage.resources, stage.caller, "planner", None, stage.credential.id, "model-1"
    )
    import_pages(stage.resources, DraftLocation("bakery", stage.conversation.id), SITE.pages, overwrite=False)
    patch = {"imageUrl": "https://deferred.invalid/image-1-0"}
    operation = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": patch}
    plan = tool_call_block("submit_edit_plan", summary_for_user="A picture.", ops=[operation])
    stage.script_replies(reply_with_calls(tool_call_block("image_generate", prompt="loaf")), reply_with_calls(plan))
    provider.script_answer(ANSWER, before=lambda _call: stage.cancel_turn())
    prompt = replace(stage.make_prompt("A picture"), scope="planner", snapshot=as_posted_snapshot({"slug": "/"}))
    stage.adopt_turn(start_turn(stage.resources, stage.caller, prompt).turn)
    assert stage.run_workflow() == "finished"
    assert stage.terminal_events()[0].type == "cancelled"
    assert image_rows(stage) == [(6000, Decimal("0.2401"), True, False, "ok")]
