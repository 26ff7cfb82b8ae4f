"""Calls of MCP clients count for the plan of their workspace, each once, and are refused beyond it (decision 0530)."""

import pytest

from fermata.client_protocols.mcp_tools import find_editor_tool
from fermata.credentials import scope_defaults
from fermata.domain.caller import Caller
from fermata.domain.events import ApprovalRequestedEvent
from fermata.domain.plan_refusals import to_month
from fermata.domain.workspace_plan import PlanMeter, Subscription
from fermata.limits.month_counts import build_months_key, list_month_counts
from fermata.remote_tools.tool_registry import register_tool
from fermata.tools.tool import Execution
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.wire.auth.tenant_store import update_tenant
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.studio_clients import fill_project
from tests.unit.client_protocols.test_mcp_direct_calls import ADMIN, SKU, ask, call, find_tool
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.approvals.bakery import HEAD_BAKER
from tests.unit.turns.stage import Stage

SERVER_URL = "https://93.184.216.34/tool"


def count(stage: Stage, meter: PlanMeter = PlanMeter.MCP_CALLS) -> int:
    key = build_months_key(stage.resources, "bakery", "", to_month(stage.resources.clock.time()))
    return int(list_month_counts(stage.resources.tables.get_item_by_key(key))[meter])


def choose_plan(stage: Stage, plan: str = "pro", **limits: int) -> None:
    update_tenant(stage.resources, "bakery", subscription=Subscription(plan=plan, limits=limits))


def find_tool_of_the_service(requester: Requester) -> str:
    """Return a tool of the editor that needs neither an editor nor a content system, and no input."""
    caller = Caller(tenant="bakery", user="ada", capabilities=frozenset(requester.capabilities))
    for listed in ask(requester, "tools/list")["tools"]:
        found = find_editor_tool(caller, listed["name"])
        is_plain = not listed["inputSchema"].get("required")
        if found and is_plain and found.tool.execution is Execution.SERVER and found.tool.works_without_host is None:
            return str(listed["name"])
    raise AssertionError("There is no such tool.")


def test_a_call_that_is_answered_here_counts_and_the_next_one_is_refused_in_words(
    stage: Stage, requester: Requester
) -> None:
    choose_plan(stage, mcpCalls=1)
    name = find_tool_of_the_service(requester)
    call(requester, name)
    assert count(stage) == 1
    ok, words = call(requester, name)
    assert not ok
    assert "used the 1 calls of MCP clients that its plan pro includes in a month" in words
    assert count(stage) == 1
    choose_plan(stage, "free")
    assert call(requester, name) == (
        False,
        "The plan free has no calls of MCP clients. Choose a larger plan to use them.",
    )
    assert "Unknown tool" in str(ask(requester, "tools/call", name="none", arguments={}))
    assert count(stage) == 1


def test_a_call_that_a_person_approves_counts_once_however_often_its_result_is_asked_for(
    stage: Stage, requester: Requester
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(capability="write"), SERVER_URL)
    name = find_tool(requester)
    for _ in range(2):
        assert "waits until a person" in call(requester, name, **SKU)[1]
    [asked] = [event for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    decide_approval(stage.resources, HEAD_BAKER, asked.approval_id, ApprovalAnswer(is_approved=False, reason="No."))
    assert "No." in call(requester, name, **SKU)[1]
    assert count(stage) == 1
    choose_plan(stage, mcpCalls=1)
    turn = stage.turn.id
    assert "used the 1 calls" in call(requester, name, sku="SKU-7")[1]
    assert stage.turn.id == turn, "A refused call starts nothing."


@pytest.mark.parametrize(("agent", "meter"), [("cms", PlanMeter.MCP_CALLS), ("studio", PlanMeter.CHAT_MESSAGES)])
def test_a_task_for_an_agent_counts_as_a_call_and_one_for_the_studio_as_a_message(
    stage: Stage, requester: Requester, agent: str, meter: PlanMeter
) -> None:
    fill_project(stage)
    scope_defaults.set_default(stage.resources, stage.caller, agent, stage.credential.id, "model-1")
    client = Requester(requester.signer, ("ai.chat", "ai.tools.write", "ai.content.write"))
    choose_plan(stage, mcpCalls=1, chatMessages=1)
    stage.script_replies("It is fresh.")

    def send() -> tuple[bool, str]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        parameters = {"name": f"ask_{agent}", "arguments": {"prompt": "Is it fresh?"}}
        headers = {"accept": "application/json"}
        sent = client.send("POST", "/mcp?space=studio", json={**message, "params": parameters}, headers=headers)
        result = sent.json()["result"]
        return not result["isError"], result["content"][0]["text"]

    assert send() == (True, "It is fresh.")
    other = {PlanMeter.MCP_CALLS, PlanMeter.CHAT_MESSAGES} - {meter}
    assert (count(stage, meter), [count(stage, one) for one in other]) == (1, [0])
    ok, words = send()
    assert not ok
    assert "used the 1 " in words
    assert count(stage, meter) == 1
