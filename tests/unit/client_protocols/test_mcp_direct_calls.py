"""MCP clients call tools that only rounds can carry out: registered ones, and those of the content system."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from fermata.credentials.scope_defaults import set_default
from fermata.domain.caller import Caller
from fermata.domain.events import ApprovalRequestedEvent
from fermata.hosts.registry import register_host
from fermata.remote_tools.tool_registry import register_tool
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.round import direct_call
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.scripted_host import HOST_SECRET, scripted_host
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.client_protocols.conftest import Requester, RequestSender
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.approvals.bakery import HEAD_BAKER
from tests.unit.turns.stage import Stage

Json = dict[str, Any]
ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
SKU = {"sku": "SKU-123"}
SCHEMA: Json = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}


@pytest.fixture
def vendor(stage: Stage, requester: Requester) -> Iterator[ScriptedToolServer]:
    """A server whose tools may be on this machine."""
    settings = stage.resources.settings.model_copy(update={"fermata_stage": "local"})
    object.__setattr__(stage.resources, "settings", settings)
    with run_scripted_tool_server() as server:
        yield server


def ask(requester: RequestSender, method: str, **parameters: Any) -> Json:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    response = requester.send("POST", "/mcp", json=message, headers={"accept": "application/json"})
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    result: Json = answer.get("result", answer)
    return result


def find_tool(requester: Requester) -> str:
    [name] = [tool["name"] for tool in ask(requester, "tools/list")["tools"] if "getProduct" in tool["name"]]
    return str(name)


def call(requester: RequestSender, name: str, **arguments: Any) -> tuple[bool, str]:
    result = ask(requester, "tools/call", name=name, arguments=arguments)
    return not result["isError"], result["content"][0]["text"]


def test_a_registered_tool_is_listed_and_called_without_a_model(
    stage: Stage, requester: Requester, vendor: ScriptedToolServer
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(inputSchema=SCHEMA), vendor.url)
    name = find_tool(requester)
    for product in ("Rye", "Wheat"):
        vendor.script_answer({"data": {"name": product}})
    answers = [call(requester, name, **SKU) for _ in range(2)]
    assert [(ok, json.loads(text)["name"]) for ok, text in answers] == [(True, "Rye"), (True, "Wheat")]
    assert not stage.driver.requests
    usage = [event for event in stage.events() if event.type == "usage"]
    assert [(event.prompt_tokens, event.completion_tokens) for event in usage] == [(0, 0)]


def test_a_wrong_input_never_leaves_the_service(stage: Stage, requester: Requester, vendor: ScriptedToolServer) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(inputSchema=SCHEMA), vendor.url)
    ok, words = call(requester, find_tool(requester), sku=7)
    assert not ok
    assert "sku" in words
    assert not vendor.calls


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_that_needs_a_person_says_so_and_the_same_call_takes_the_result(
    approved: bool, stage: Stage, requester: Requester, vendor: ScriptedToolServer
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(capability="write"), vendor.url)
    name = find_tool(requester)
    ok, words = call(requester, name, **SKU)
    [asked] = [event for event in stage.events() if isinstance(event, ApprovalRequestedEvent)]
    assert not ok
    assert asked.approval_id in words
    assert call(requester, name, **SKU) == (ok, words), "asking again changes nothing"
    assert not vendor.calls
    for product in ("Rye", "Wheat"):
        vendor.script_answer({"data": {"name": product}})
    decide_approval(stage.resources, HEAD_BAKER, asked.approval_id, ApprovalAnswer(is_approved=approved, reason="No."))
    ok, words = call(requester, name, **SKU)
    assert ok is approved
    assert ("Rye" if approved else "No.") in words
    assert len(vendor.calls) == (1 if approved else 0)
    assert "waits until a person" in call(requester, name, **SKU)[1], "a result is taken once"
    assert "waits until a person" in call(requester, name, sku="SKU-7")[1], "another input is another call"


def test_a_tool_is_listed_only_for_who_may_call_it(
    stage: Stage, requester: Requester, vendor: ScriptedToolServer
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(capability="write"), vendor.url)
    name = find_tool(requester)
    reader = Requester(requester.signer, ("ai.chat", "site.read"))
    assert name not in {tool["name"] for tool in ask(reader, "tools/list")["tools"]}
    assert "Unknown tool" in str(ask(reader, "tools/call", name=name, arguments=SKU))
    assert not vendor.calls


def test_a_budget_that_is_used_up_does_not_stop_calls_that_ask_no_model(
    stage: Stage, requester: Requester, vendor: ScriptedToolServer
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(inputSchema=SCHEMA), vendor.url)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(0))))
    vendor.script_answer({"data": {"name": "Rye"}})
    assert call(requester, find_tool(requester), **SKU)[0]


def test_tools_of_the_content_system_are_listed_where_there_is_one_and_called(
    stage: Stage, requester: Requester, vendor: ScriptedToolServer
) -> None:
    set_default(stage.resources, stage.caller, "content", stage.credential.id, "model-1")
    editor = Requester(requester.signer, (*requester.capabilities, "content.manage", "data.custom.tables.read"))

    def list_names() -> set[str]:
        return {tool["name"] for tool in ask(editor, "tools/list")["tools"]}

    before = list_names()
    with scripted_host() as host:
        register_host(stage.resources, "bakery", host.url, secret=HOST_SECRET)
        host.script_response("GET tables", {"tables": []})
        assert "content_list_collections" in list_names() - before
        ok, words = call(editor, "content_list_collections")
    assert (ok, host.requests[-1].claims["sub"]) == (True, "ada"), words
    assert not stage.driver.requests


def test_a_call_whose_function_dies_before_it_is_made_costs_nothing(
    stage: Stage, requester: Requester, vendor: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(inputSchema=SCHEMA), vendor.url)
    name = find_tool(requester)

    def die(*_: Any) -> None:
        raise SystemError("The function was killed.")

    monkeypatch.setattr(direct_call, "answer_direct_call", die)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": SKU}}
    requester.send("POST", "/mcp", json=message)
    stage.cancel_turn()
    assert [event.type for event in stage.events()][-1] == "cancelled"
    assert not [event for event in stage.events() if event.type == "usage" and event.prompt_tokens]
