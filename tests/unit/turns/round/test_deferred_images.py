"""Images that a planner's model asks for are generated when its plan uses them."""

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.conversations import conversation_store
from fermata.domain.caller import Caller
from fermata.domain.events import EditPlanEvent, ToolResultEvent
from fermata.drivers.registry import get_model_traits
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.remote_tools.built_in import image_generation
from fermata.remote_tools.deferred_image_generation import DeferredCall, find_deferred_calls, replace_placeholders
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.turns import accounting
from fermata.turns.start import build_turn
from fermata.turns.start.start_turn import start_turn
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from tests.images import make_image
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.plans.page_samples import SITE
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import Stage, as_posted_snapshot, reply_with_calls, tool_call_block

ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
IMAGE = {"data": [{"b64_json": base64.b64encode(make_image()).decode()}], "usage": {"output_tokens": 1000}}
FIRST, SECOND = "https://deferred.invalid/image-1-0", "https://deferred.invalid/image-1-1"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", server.url)
        yield server


@pytest.fixture
def planner(staged: MakeStage, provider: ScriptedToolServer) -> Stage:
    stage = staged(fermata_stage="local")
    make_tenant(stage.resources, "bakery")
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={})
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "planner", None, stage.credential.id, "model-1"
    )
    import_pages(stage.resources, locate(stage), SITE.pages, overwrite=False)
    return stage


def locate(stage: Stage) -> DraftLocation:
    return DraftLocation(stage.caller.tenant, stage.conversation.id)


def run(stage: Stage, *replies: Any) -> None:
    prompt = replace(stage.make_prompt("Add pictures"), scope="planner", snapshot=as_posted_snapshot({"slug": "/"}))
    stage._turn = start_turn(stage.resources, stage.caller, prompt).turn
    stage.script_replies(*replies)
    assert stage.run_workflow() == "finished"


def ask_for_images(count: int = 1) -> Any:
    return reply_with_calls(*(tool_call_block("image_generate", prompt=f"loaf {number}") for number in range(count)))


def submit(*urls: str, block: str = "b_hero", **members: Any) -> Any:
    patch = {f"imageUrl{number}": url for number, url in enumerate(urls)}
    operation = {"op": "update_props", "pageSlug": "/", "blockId": block, "patch": patch}
    return reply_with_calls(
        tool_call_block("submit_edit_plan", summary_for_user="Pictures.", ops=[operation], **members)
    )


def read_props(stage: Stage) -> dict[str, Any]:
    page = load_draft(stage.resources, locate(stage)).draft.find_page("/")
    block = page.find_block("b_hero") if page else None
    assert block
    return block.props


def test_the_model_reads_a_placeholder_at_once_and_the_plan_gets_the_images(
    planner: Stage, provider: ScriptedToolServer
) -> None:
    provider.script_answer(IMAGE)
    run(planner, ask_for_images(2), submit(FIRST, SECOND))
    results = [event for event in planner.events() if isinstance(event, ToolResultEvent)][:2]
    assert [(one.execution.deferred, one.execution.attempts) for one in results if one.execution] == [(True, 0)] * 2
    assert planner.results_sent_to_model()[0].data["imageUrl"] == FIRST
    assert {call.body["prompt"] for call in provider.calls} == {"loaf 0", "loaf 1"}
    props = read_props(planner)
    assert all(f"conversations/bakery/{planner.conversation.id}/" in props[f"imageUrl{number}"] for number in (0, 1))
    costs = [row["cost"] for row in planner.ledger_rows() if row["provider"] == "openai"]
    assert costs == [Decimal("0.04")] * 2


@pytest.mark.parametrize(("usd", "made"), [("0.1", 0), ("0.3", 1), ("0.55", 2)])
def test_no_more_images_of_a_plan_are_made_than_the_budget_covers_together(
    planner: Stage, provider: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch, usd: str, made: int
) -> None:
    free = replace(get_model_traits("anthropic"), are_free=True)
    for module in (build_turn, accounting):
        monkeypatch.setattr(module, "get_model_traits", lambda _provider: free)
    set_budgets(planner.resources, planner.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(usd))))
    provider.script_answer(IMAGE)
    run(planner, ask_for_images(2), submit(FIRST, SECOND))
    assert {call.body["prompt"] for call in provider.calls} == {f"loaf {number}" for number in range(made)}
    assert [bool(read_props(planner)[f"imageUrl{number}"]) for number in (0, 1)] == [made > 0, made > 1]
    [plan] = [event for event in planner.events() if isinstance(event, EditPlanEvent)]
    assert str(plan.outcome["changes"]).count("An image is missing") == 2 - made
    today = load_budget_status(planner.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (pytest.approx(0.04 * made), 0)


def test_an_image_that_no_plan_uses_is_not_generated(planner: Stage, provider: ScriptedToolServer) -> None:
    run(planner, ask_for_images(), submit("https://images.example/own.png"))
    assert provider.calls == []


def test_the_plan_says_which_image_could_not_be_generated(planner: Stage, provider: ScriptedToolServer) -> None:
    provider.script_answer(b"refused", 400)
    run(planner, ask_for_images(), submit(FIRST, "https://deferred.invalid/image-7-7", change_log="Pictures"))
    assert (read_props(planner)["imageUrl0"], read_props(planner)["imageUrl1"]) == ("", "")
    [plan] = [event for event in planner.events() if isinstance(event, EditPlanEvent)]
    changes = plan.outcome["changes"]
    assert changes[0] == "Pictures"
    assert "OpenAI answered 400" in changes[1]
    assert "of no call" in changes[2]


def test_a_corrected_plan_has_the_same_image(planner: Stage, provider: ScriptedToolServer) -> None:
    provider.script_answer(IMAGE)
    run(planner, ask_for_images(), submit(FIRST, block="b_none"), submit(FIRST))
    assert len(provider.calls) == 1
    assert "conversations/bakery" in read_props(planner)["imageUrl0"]


def test_an_empty_prompt_is_refused_at_once(planner: Stage) -> None:
    run(planner, reply_with_calls(tool_call_block("image_generate", prompt="  ")), submit("x"))
    assert not planner.results_sent_to_model()[0].ok


def test_placeholders_are_found_and_replaced_wherever_they_are() -> None:
    value = {"a": [FIRST, {"b": f'<img src="{SECOND}">'}], "c": FIRST, "d": "https://deferred.invalid/image-1-00"}
    calls = find_deferred_calls(value)
    assert calls == [DeferredCall(1, 0), DeferredCall(1, 1)]
    replaced = replace_placeholders(value, {calls[0]: "https://x/0", calls[1]: "https://x/1"})
    assert replaced["a"] == ["https://x/0", {"b": '<img src="https://x/1">'}]
    assert not re.search("deferred", str(replaced))
