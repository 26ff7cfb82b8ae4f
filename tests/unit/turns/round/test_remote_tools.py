"""A turn calls the remote tools it has started with: in place, or with a result that comes later."""

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.policy_store import set_policy
from fermata.domain.blocks import ToolResultBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, NotFound, Unauthorized
from fermata.domain.events import ApprovalRequestedEvent, ErrorEvent, ToolAwaitedEvent, ToolResultEvent
from fermata.remote_tools.built_in import image_generation
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.remote_tools.tool_registry import ToolChange, change_tool, register_tool, remove_tool
from fermata.signed_requests.signature import make_signing_secret, sign_request, verify_request
from fermata.turns.answer.submit_remote_result import RemoteResult, ResultUnfitting, submit_remote_result
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.list_approvals import get_approval
from fermata.turns.await_remote_results import NO_RESULT_MESSAGE
from fermata.turns.end import end_turn
from fermata.turns.pause import load_pause
from fermata.turns.round.remote_calls import CALLBACK_PATH
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from tests.images import make_image
from tests.scripted_tool_server import ReceivedCall, ScriptedToolServer, run_scripted_tool_server
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns import invariants
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
CAN_APPROVE = frozenset({"ai.tools.approve", "ai.tools.write", "ai.chat"})
APPROVER = Caller(tenant="bakery", user="root", capabilities=CAN_APPROVE)
ALIAS = "pim_getProduct"
SKU = {"sku": "SKU-123"}


@pytest.fixture
def vendor() -> Iterator[ScriptedToolServer]:
    with run_scripted_tool_server() as server:
        yield server


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    """A stage whose tools may be on this machine."""
    made = staged(fermata_stage="local")
    make_tenant(made.resources, "bakery")
    return made


def register(stage: Stage, vendor: ScriptedToolServer, **changes: Any) -> str:
    """Register a tool and return its signing secret."""
    members = {"headers": changes.pop("headers", None), "scopes": changes.pop("scopes", ())}
    stored = register_tool(stage.resources, ADMIN, make_manifest_json(**changes), vendor.url, **members)
    return stored.signing_secret or ""


def call_tool(stage: Stage, *arguments: dict[str, Any], name: str = ALIAS) -> str:
    """Run a turn whose model calls the tool once for each of `arguments`, and then answers."""
    stage.start_turn()
    stage.script_replies(reply_with_calls(*[tool_call_block(name, **one) for one in arguments]), "Done.")
    return stage.run_workflow()


def results(stage: Stage) -> list[ToolResultEvent]:
    return [event for event in stage.events() if isinstance(event, ToolResultEvent)]


def post_result(stage: Stage, secret: str, request_id: str = "1.0.remote", **members: Any) -> None:
    """Send a result as the tool's server does."""
    payload = {"tenant": "bakery", "bridgeId": stage.turn.id, "requestId": request_id, **members}
    body = json.dumps(payload).encode()
    headers = sign_request([secret], "msg_1", stage.clock.time(), body)
    result = RemoteResult("bakery", stage.turn.id, request_id, members.get("data"), members.get("error"))
    submit_remote_result(stage.resources, result, headers, body)


def test_a_model_is_offered_the_tool_and_reads_its_data(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor, headers={"x-api-key": "k"})
    vendor.script_answer({"data": {"title": "Bread"}})
    assert call_tool(stage, SKU) == "finished"
    spec = next(spec for spec in stage.driver.requests[0].tools if spec.name == ALIAS)
    assert spec.input_schema == {"type": "object", "properties": {}}
    assert stage.results_sent_to_model()[0].data == {"title": "Bread"}
    [call] = vendor.calls
    verify_request([secret], call.headers, stage.clock.time(), call.raw)
    assert call.headers["x-api-key"] == "k"
    assert call.headers["idempotency-key"] == f"{stage.turn.id}/1/0"
    assert call.body["toolName"] == "pim.getProduct"
    assert call.body["arguments"] == SKU
    assert call.body["context"] == {
        "siteId": "bakery",
        "sessionId": stage.conversation.id,
        "userId": "ada",
        "traceId": stage.turn.id,
        "plannerProvider": "anthropic",
    }
    assert call.body["callback"]["requestId"] == "1.0.remote"
    assert call.body["callback"]["path"] == CALLBACK_PATH
    [result] = results(stage)
    assert result.execution is not None
    assert (result.ok, result.execution.attempts, result.execution.code) == (True, 1, None)
    invariants.check_invariants(stage)


@pytest.mark.parametrize("name", ["pim.getProduct", "functions.pim_getProduct"])
def test_the_tool_is_found_under_its_own_name_too(stage: Stage, vendor: ScriptedToolServer, name: str) -> None:
    register(stage, vendor)
    call_tool(stage, SKU, name=name)
    assert len(vendor.calls) == 1


def test_a_failure_is_read_by_the_model_and_described_to_clients(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, retryPolicy={"maxAttempts": 1})
    vendor.script_answer(b"down", 503)
    assert call_tool(stage, SKU) == "finished"
    [result] = results(stage)
    assert result.error == "pim.getProduct answered 503: down"
    assert result.execution is not None
    assert (result.execution.code, result.execution.retryable) == ("tool_execution_failed", True)


def test_wrong_arguments_never_leave_the_service(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, inputSchema={"type": "object", "required": ["sku"]})
    call_tool(stage, {"number": 1})
    assert vendor.calls == []
    [result] = results(stage)
    assert "$.sku" in (result.error or "")
    assert result.execution is not None
    assert result.execution.code == "invalid_tool_input"


def test_a_tool_is_called_that_was_registered_or_turned_on_since_another_was_called(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    register(stage, vendor)
    register(stage, vendor, name="late.tool", enabled=False)
    call_tool(stage, SKU)
    change_tool(stage.resources, ADMIN, "late.tool", ToolChange(enabled=True))
    register(stage, vendor, name="new.tool")
    for name in ("late_tool", "new_tool"):
        call_tool(stage, SKU, name=name)
        assert results(stage)[-1].ok
    assert len(vendor.calls) == 3


def test_a_tool_of_another_scope_or_one_that_is_off_is_not_offered(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, name="a", scopes=["content"])
    register(stage, vendor, name="b", enabled=False)
    call_tool(stage, SKU, name="a")
    assert not {"a", "b"} & {spec.name for spec in stage.driver.requests[0].tools}
    assert vendor.calls == []


def test_a_turn_keeps_the_version_it_has_started_with(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor)
    stage.start_turn()
    manifest = make_manifest_json(inputSchema={"type": "object", "required": ["other"]})
    register_tool(stage.resources, ADMIN, manifest, "https://93.184.216.34/elsewhere", replace=True)
    vendor.script_answer({"data": 1})
    stage.script_replies(reply_with_calls(tool_call_block(ALIAS, **SKU)), "Done.")
    stage.run_workflow()
    assert len(vendor.calls) == 1


@pytest.mark.parametrize("removes", [True, False])
def test_a_tool_that_was_removed_or_turned_off_is_not_called(
    stage: Stage, vendor: ScriptedToolServer, removes: bool
) -> None:
    register(stage, vendor)
    stage.start_turn()
    if removes:
        remove_tool(stage.resources, ADMIN, "pim.getProduct")
    else:
        change_tool(stage.resources, ADMIN, "pim.getProduct", ToolChange(enabled=False))
    stage.script_replies(reply_with_calls(tool_call_block(ALIAS, **SKU)), "Done.")
    stage.run_workflow()
    assert vendor.calls == []
    [result] = results(stage)
    assert result.execution is not None
    assert result.execution.code == "tool_not_found"


def test_the_same_call_twice_in_a_turn_is_sent_once(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor)
    vendor.script_answer({"data": {"title": "Bread"}})
    stage.start_turn()
    call = reply_with_calls(tool_call_block(ALIAS, **SKU))
    stage.script_replies(call, reply_with_calls(tool_call_block(ALIAS, **SKU)), "Done.")
    assert stage.run_workflow() == "finished"
    assert [result.ok for result in results(stage)] == [True, True]
    assert len(vendor.calls) == 1


def test_a_result_may_come_later(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    assert call_tool(stage, SKU) == "waiting"
    [event] = [event for event in stage.events() if isinstance(event, ToolAwaitedEvent)]
    assert event.tool_name == ALIAS
    assert stage.tool_requests() == []
    post_result(stage, secret, data={"title": "Bread"})
    assert stage.run_workflow() == "finished"
    assert stage.results_sent_to_model()[0].data == {"title": "Bread"}
    invariants.check_invariants(stage)


def test_a_result_may_be_a_failure(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    post_result(stage, secret, error="There is no such product.")
    assert stage.run_workflow() == "finished"
    assert results(stage)[0].error == "There is no such product."


@pytest.mark.parametrize("is_early", [False, True])
def test_a_result_that_breaks_the_output_schema_is_a_failure_of_which_its_vendor_reads_as_well(
    stage: Stage, vendor: ScriptedToolServer, is_early: bool
) -> None:
    secret = register(stage, vendor, outputSchema={"type": "object", "required": ["title"]})

    def post_unfitting(_call: ReceivedCall | None = None) -> None:
        with pytest.raises(ResultUnfitting, match=r"\$\.title: is required") as refused:
            post_result(stage, secret, data={})
        assert (refused.value.status, refused.value.code) == (422, "invalid_tool_output")

    vendor.script_answer({}, 202, before=post_unfitting if is_early else None)
    call_tool(stage, SKU)
    post_unfitting()
    stage.run_workflow()
    execution = results(stage)[0].execution
    assert execution is not None
    assert execution.code == "invalid_tool_output"
    post_unfitting()
    with pytest.raises(Conflict):
        post_result(stage, secret, data={"title": "Bread"})


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_result_may_come_before_the_202(stage: Stage, vendor: ScriptedToolServer, idempotent: bool) -> None:
    secret = register(stage, vendor, idempotent=idempotent)

    def send_early(_call: ReceivedCall) -> None:
        for _ in range(2):
            post_result(stage, secret, data={"title": "Bread"})
        with pytest.raises(Conflict):
            post_result(stage, secret, data={"title": "Cake"})

    vendor.script_answer({}, 202, before=send_early)
    assert call_tool(stage, SKU) == "finished"
    assert stage.results_sent_to_model()[0].data == {"title": "Bread"}
    assert len(vendor.calls) == 1
    assert len(results(stage)) == 1
    invariants.check_invariants(stage)


def test_a_result_that_came_before_the_202_is_accepted_again_when_the_round_is_over(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202, before=lambda _call: post_result(stage, secret, data=1))
    assert call_tool(stage, SKU) == "finished"
    post_result(stage, secret, data=1)
    with pytest.raises(Conflict):
        post_result(stage, secret, data=2)


@pytest.mark.parametrize("is_posted_during_end", [True, False])
def test_an_accepted_result_is_kept_though_the_turn_ends_before_its_202_is_read(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch, is_posted_during_end: bool
) -> None:
    secret = register(stage, vendor)
    posts = [lambda: post_result(stage, secret, data={"title": "Bread"})]

    def load_and_post(*given: Any) -> Any:
        pause = load_pause(*given)
        if posts:
            posts.pop()()
        return pause

    def cancel_early(_call: ReceivedCall) -> None:
        if not is_posted_during_end:
            posts.pop()()
        stage.cancel_turn()

    monkeypatch.setattr(end_turn, "load_pause", load_and_post)
    vendor.script_answer({}, 202, before=cancel_early)
    call_tool(stage, SKU)
    assert [result.ok for result in results(stage)] == [True]
    [message] = [message for message in stage.load_messages() if message.role == "tool"]
    (block,) = message.content
    assert isinstance(block, ToolResultBlock)
    assert block.data == {"title": "Bread"}
    post_result(stage, secret, data={"title": "Bread"})
    stage.script_replies("Yes.")
    stage.start_turn()
    stage.run_workflow()
    assert stage.results_sent_to_model()[0].data == {"title": "Bread"}
    invariants.check_invariants(stage)


def test_no_result_is_accepted_when_the_turn_has_ended_during_the_call(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    secret = register(stage, vendor)

    def cancel_and_post(_call: ReceivedCall) -> None:
        stage.cancel_turn()
        with pytest.raises(NotFound):
            post_result(stage, secret, data=1)

    vendor.script_answer({}, 202, before=cancel_and_post)
    call_tool(stage, SKU)
    assert [result.ok for result in results(stage)] == [False]
    invariants.check_invariants(stage)


def test_the_same_result_twice_is_one_and_another_is_a_conflict(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    for _ in range(3):
        post_result(stage, secret, data=1)
    with pytest.raises(Conflict):
        post_result(stage, secret, data=2)
    assert len(results(stage)) == 1
    assert stage.run_workflow() == "finished"
    post_result(stage, secret, data=1)
    with pytest.raises(Conflict):
        post_result(stage, secret, error="It failed.")


def test_a_result_after_the_deadline_is_refused_and_the_model_has_read_of_it(
    stage: Stage, vendor: ScriptedToolServer
) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    stage.pass_time(86_401)
    assert stage.run_workflow() == "finished"
    assert results(stage)[0].error == NO_RESULT_MESSAGE
    with pytest.raises(NotFound):
        post_result(stage, secret, data=1)


def test_a_result_after_the_turn_was_cancelled_is_refused(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    stage.cancel_turn()
    with pytest.raises(NotFound):
        post_result(stage, secret, data=1)
    invariants.check_invariants(stage)


def test_only_the_tool_that_was_called_may_send_a_result(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    other_secret = register(stage, vendor, name="other")
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    for wrong in (make_signing_secret(), other_secret):
        with pytest.raises(Unauthorized):
            post_result(stage, wrong, data=1)
    for request_id in ("1.1.remote", "9.0.remote", "x", "1.0.abc"):
        with pytest.raises(Unauthorized):
            post_result(stage, secret, request_id, data=1)
    stage.pass_time(1)
    assert results(stage) == []


def test_a_signature_that_was_sent_before_is_refused_when_it_is_old(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    body = json.dumps({"data": 1}).encode()
    headers = sign_request([secret], "msg_1", stage.clock.time() - 301, body)
    with pytest.raises(Unauthorized) as refused:
        submit_remote_result(stage.resources, RemoteResult("bakery", stage.turn.id, "1.0.remote", 1), headers, body)
    assert refused.value.reason == "stale"


def test_a_browser_cannot_answer_for_a_remote_tool(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor)
    vendor.script_answer({}, 202)
    call_tool(stage, SKU)
    with pytest.raises(NotFound):
        stage.answer_request({"ok": True, "data": 1}, "1.0.remote")


def test_two_calls_of_one_round_may_both_come_later_in_any_order(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor)

    def send_second(_call: ReceivedCall) -> None:
        post_result(stage, secret, "1.1.remote", data=2)

    vendor.script_answer({}, 202)
    vendor.script_answer({}, 202, before=send_second)
    assert call_tool(stage, {"sku": 1}, {"sku": 2}) == "waiting"
    post_result(stage, secret, "1.0.remote", data=1)
    assert stage.run_workflow() == "finished"
    assert [result.data for result in stage.results_sent_to_model()] == [1, 2]
    invariants.check_invariants(stage)


def test_a_write_is_sent_only_after_a_person_has_approved_it(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, capability="write", idempotent=False)
    vendor.script_answer({"data": 1})
    assert call_tool(stage, SKU) == "waiting"
    assert vendor.calls == []
    [approval] = [event for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    assert get_approval(stage.resources, APPROVER, approval.approval_id)["input"] == SKU
    answer = ApprovalAnswer(is_approved=True, input={"sku": "SKU-456"})
    decide_approval(stage.resources, APPROVER, approval.approval_id, answer)
    assert stage.run_workflow() == "finished"
    assert [call.body["arguments"] for call in vendor.calls] == [{"sku": "SKU-456"}]
    invariants.check_invariants(stage)


def test_a_write_that_was_denied_is_not_sent(stage: Stage, vendor: ScriptedToolServer) -> None:
    register(stage, vendor, capability="write")
    call_tool(stage, SKU)
    [approval] = [event for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    decide_approval(stage.resources, APPROVER, approval.approval_id, ApprovalAnswer(is_approved=False))
    assert stage.run_workflow() == "finished"
    assert vendor.calls == []


def test_no_result_is_accepted_for_a_call_that_waits_for_a_person(stage: Stage, vendor: ScriptedToolServer) -> None:
    secret = register(stage, vendor, capability="write")
    call_tool(stage, SKU)
    with pytest.raises(NotFound):
        post_result(stage, secret, data=1)


def test_a_turn_uses_a_built_in_tool_and_keeps_its_image_with_the_conversation(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", vendor.url)
    vendor.script_answer({"data": [{"b64_json": base64.b64encode(make_image()).decode()}]})
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={})
    assert call_tool(stage, {"prompt": "a loaf"}, name="image_generate") == "finished"
    url = stage.results_sent_to_model()[0].data["imageUrl"]
    assert f"conversations/bakery/{stage.conversation.id}/" in url
    [key] = stage.resources.blobs.list_keys(f"conversations/bakery/{stage.conversation.id}")
    assert stage.resources.blobs.get_bytes(key) == make_image()


def test_what_an_image_has_cost_is_in_the_ledger_and_in_the_turn(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", vendor.url)
    usage = {"input_tokens": 20, "output_tokens": 6208, "total_tokens": 6228}
    image = base64.b64encode(make_image()).decode()
    vendor.script_answer({"data": [{"b64_json": image}], "usage": usage})
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={})
    assert call_tool(stage, {"prompt": "a loaf"}, {"prompt": "a roll"}, name="image_generate") == "finished"
    rows = [row for row in stage.ledger_rows() if row["provider"] == "openai"]
    assert [(row["model"], row["prompt"], row["completion"]) for row in rows] == [("gpt-image-1", 20, 6208)] * 2
    assert {row["cost"] for row in rows} == {Decimal("0.24842")}
    assert all(row["priced"] and row["billable"] for row in rows)
    state = stage.entries()[-1].state
    assert (state.cost_usd, state.context_tokens < 6000) == (Decimal("0.49684"), True)
    invariants.check_invariants(stage)


def test_a_budget_is_charged_with_an_image_and_refuses_the_next_request_when_it_is_used_up(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", vendor.url)
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.3"))))
    image = base64.b64encode(make_image()).decode()
    vendor.script_answer({"data": [{"b64_json": image}], "usage": {"input_tokens": 0, "output_tokens": 8000}})
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={})
    call_tool(stage, {"prompt": "a loaf"}, name="image_generate")
    [error] = [event for event in stage.events() if isinstance(event, ErrorEvent)]
    assert error.code == "budget_exhausted"
    today = load_budget_status(stage.resources, "bakery")["tenant"]["today"]
    assert (today["spentUsd"], today["heldUsd"]) == (pytest.approx(0.32, abs=0.001), 0)


def test_a_budget_covers_no_image_of_a_model_without_a_known_price(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", vendor.url)
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(5))))
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={"model": "an-own-model"})
    assert call_tool(stage, {"prompt": "a loaf"}, name="image_generate") == "finished"
    [result] = results(stage)
    assert "price of the image model an-own-model is not known" in str(result.model_dump())
    assert vendor.calls == []


@pytest.mark.parametrize("model", ["gpt-image-1", "an-own-model"])
def test_an_image_without_a_known_price_counts_as_unpriced(
    stage: Stage, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", vendor.url)
    usage = {"input_tokens": -1, "output_tokens": "many" if model == "gpt-image-1" else 5}
    vendor.script_answer({"data": [{"b64_json": base64.b64encode(make_image()).decode()}], "usage": usage})
    turn_on_built_in_tool(stage.resources, ADMIN, "image.generate", api_key="k", options={"model": model})
    assert call_tool(stage, {"prompt": "a loaf"}, name="image_generate") == "finished"
    [row] = [row for row in stage.ledger_rows() if row["provider"] == "openai"]
    assert (row["cost"], row["priced"], row["prompt"]) == (0, False, 0)


@pytest.mark.parametrize("denied", ["pim.get", "pim_get", "PIM_GET"])
@pytest.mark.parametrize("other", ["pim_get", "Pim_Get"])
def test_a_rule_is_about_the_tool_that_is_registered_under_its_name(
    stage: Stage, vendor: ScriptedToolServer, denied: str, other: str
) -> None:
    for name in ("pim.get", other):
        register(stage, vendor, name=name)
    set_policy(stage.resources, ADMIN, ApprovalPolicy(rules=(PolicyRule(effect="deny", tools=(denied,)),)))
    vendor.script_answer({"data": 1})
    stage.start_turn()
    calls = [tool_call_block(name) for name in ("pim.get", other)]
    stage.script_replies(reply_with_calls(*calls), "Done.")
    assert stage.run_workflow() == "finished"
    [call] = vendor.calls
    assert {call.body["toolName"].lower(), denied.lower()} == {"pim.get", "pim_get"}
