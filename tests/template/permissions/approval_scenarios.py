"""Let calls and plans wait for people, who decide in several places, with the permissions of each function."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from fermata.agents.policy_store import set_policy
from fermata.aws.resources import Resources
from fermata.client_protocols.chat_conversations import open_chat
from fermata.client_protocols.client_messages import ClientAnswer
from fermata.client_protocols.continue_turn import ClientTurn
from fermata.conversations import conversation_store
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import LOG_LENGTH, DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.page_model import Page
from fermata.remote_tools.tool_registry import register_tool
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.approval_record import ApprovalRecord
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.approvals.decide_held_plan import apply_held_plan
from fermata.turns.approvals.list_approvals import get_approval, list_waiting_approvals
from fermata.turns.approvals.list_decisions import list_decisions
from fermata.turns.start.start_turn import start_turn
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.webhook_event import WebhookEvent
from fermata.webhooks.webhook_registry import add_webhook
from tests.resources import TestClock, resources_of_new_process
from tests.scripted_tool_server import run_scripted_tool_server
from tests.template.permissions.guarded_stage import (
    LARGE,
    SNAPSHOT,
    StageOf,
    may_also_approve,
    record_messages,
    run_locally_without_queue,
)
from tests.tenant_tokens import make_tenant
from tests.unit.plans.page_samples import HOME
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import OK, as_posted_snapshot, reply_with_calls, tool_call_block


@pytest.mark.parametrize("function", ["api", "stream_turns", "round", "tool_result", "deliver_webhooks"])
def test_a_draft_changes_until_its_oldest_versions_are_deleted(at: StageOf, function: str) -> None:
    resources, location = at(function).resources, DraftLocation("bakery", f"draft-{function}")
    block = {"id": "b", "type": "CTA", "props": {}}
    import_pages(resources, location, (Page.from_wire({**HOME, "blocks": [block]}),), overwrite=False)
    for number in range(LOG_LENGTH + 2):
        operation = {"op": "update_props", "pageSlug": "/", "blockId": "b", "patch": {"title": str(number)}}
        apply_submitted_operations(resources, location, [operation], f"e{number}")
    apply_submitted_operations(resources, location, [operation], f"e{LOG_LENGTH + 1}")
    assert load_draft(resources, location).version == LOG_LENGTH + 3


def test_a_webhook_decides_about_a_call(
    resources: Resources, at: StageOf, functions: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenant(resources_of_new_process(resources))
    caller, settings = may_also_approve(functions["stage"].caller), functions["credentials"]
    sent = record_messages(monkeypatch)
    run_locally_without_queue(functions)
    with run_scripted_tool_server() as receiver:
        receiver.script_answer({"approved": True, "data": 1})
        register_tool(settings, caller, make_manifest_json(capability="write"), receiver.url)
        add_webhook(settings, caller, receiver.url, (WebhookEvent.APPROVAL_REQUEST,), may_answer=True)
        at("stream_turns").start_turn()
        at("round").script_replies(reply_with_calls(tool_call_block("pim.getProduct")), "Done.")
        assert at("round").run_workflow() == "waiting"
        deliver_queued_entry(functions["deliver_webhooks"], QueuedEntry.from_message(sent.pop()))
        assert at("round").run_workflow() == "finished"
    assert [call.body.get("toolName") for call in receiver.calls] == [None, "pim.getProduct"]


@pytest.mark.parametrize("outcome", ["approved", "denied", "expired", "cancelled"])
def test_a_call_waits_for_a_person(at: StageOf, functions: dict[str, Any], clock: TestClock, outcome: str) -> None:
    """Its input and its result are large, and the tool is new to the tenant."""
    policy = ApprovalPolicy(rules=(PolicyRule(effect="ask"),), new_tools=True)
    set_policy(functions["credentials"], at("api").caller, policy)
    at("stream_turns").start_turn()
    at("round").script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="p", html=LARGE)), "Done.")
    wake = at("round").advance_turn()
    held = at("store_hold_token").advance_turn(holds=True, hint=at("round").workflow.outputs[wake.token]["hint"])
    approver = at("api").caller
    [listed] = list_waiting_approvals(functions["tool_result"], approver, "", 50).approvals
    assert get_approval(functions["tool_result"], approver, listed.id)["input"]["html"] == LARGE
    if outcome == "expired":
        clock.advance(8 * 86_400)
        at("store_hold_token").advance_turn(holds=True)
    elif outcome == "cancelled":
        at("api").cancel_turn()
        return
    else:
        answer = ApprovalAnswer(is_approved=outcome == "approved", reason="x")
        assert decide_approval(functions["tool_result"], approver, listed.id, answer).state == outcome
    assert held.token
    if outcome == "approved":
        at("tool_result").answer_request(OK)
    assert at("round").run_workflow() == "finished"


def test_a_chat_client_decides_and_answers_where_it_is_streamed_to(at: StageOf, functions: dict[str, Any]) -> None:
    stream, editor = functions["stream_turns"], at("api").caller
    approver = editor.model_copy(update={"capabilities": editor.capabilities | {"ai.tools.approve"}})
    set_policy(functions["credentials"], editor, ApprovalPolicy(rules=(PolicyRule(effect="ask"),)))
    open_chat(stream, editor, "site", "a name")
    turn = at("stream_turns").start_turn(LARGE, snapshot=SNAPSHOT, protocol="ui")
    insert = tool_call_block("insertHtml", parentId="p", html=LARGE)
    at("round").script_replies(reply_with_calls(insert), "Done.")
    wake = at("round").advance_turn()
    at("store_hold_token").advance_turn(holds=True, hint=at("round").workflow.outputs[wake.token]["hint"])
    waiting = ClientTurn(stream, approver, turn)
    approval = next(call.approval for call in waiting.fold.calls.values() if call.approval)
    waiting.apply([ClientAnswer(insert.tool_call_id, approval_id=approval.approval_id, is_approved=True)])
    snapshot = as_posted_snapshot(SNAPSHOT)
    answered = ClientTurn(stream, approver, turn, snapshot)
    answered.apply([ClientAnswer(insert.tool_call_id, output={"ok": True, "data": LARGE})])
    assert at("round").run_workflow() == "finished"


@pytest.mark.parametrize("decider", ["tool_result", "deliver_webhooks", "stream_turns", "api"])
def test_a_plan_waits_for_a_person(at: StageOf, functions: dict[str, Any], decider: str) -> None:
    """It has replaced an older one."""
    stage, resources = at("stream_turns"), functions["api"]
    stage.conversation = conversation_store.create_conversation(
        resources, stage.caller, "planner", None, stage.credential.id, "model-1"
    )
    location = DraftLocation(stage.caller.tenant, stage.conversation.id)
    import_pages(resources, location, (Page.from_wire(HOME),), overwrite=False)
    for title in ("First", "Second"):
        listed = _hold_plan(at, functions, title)
    assert get_approval(functions["tool_result"], stage.caller, listed.id)["plan"] is not None
    if decider in ("stream_turns", "api"):
        apply_held_plan(functions[decider], stage.caller, location, listed.plan_id)
    else:
        decide_approval(functions[decider], stage.caller, listed.id, ApprovalAnswer(is_approved=True))
    assert list_decisions(functions["tool_result"], stage.caller, "", 50).decisions[0]["outcome"] == "approved"


def _hold_plan(at: StageOf, functions: dict[str, Any], title: str) -> ApprovalRecord:
    stage = at("stream_turns")
    prompt = replace(stage.make_prompt("Plan"), scope="planner", snapshot=as_posted_snapshot({"onlyPlan": True}))
    stage._turn = start_turn(functions["stream_turns"], stage.caller, prompt).turn
    operation = {"op": "update_page_meta", "pageSlug": "/", "patch": {"title": title}}
    call = tool_call_block("submit_edit_plan", summary_for_user="Done.", ops=[operation])
    at("round").script_replies(reply_with_calls(call))
    assert at("round").run_workflow() == "finished"
    stage.clock.advance(1)
    [listed] = list_waiting_approvals(functions["tool_result"], stage.caller, "", 50).approvals
    return listed
