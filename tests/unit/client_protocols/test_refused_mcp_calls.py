"""Calls of MCP clients that a limit refuses leave nothing: no conversation, and nothing that counts for the plan."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from fermata.client_protocols.mcp_tools import find_editor_tool
from fermata.credentials import scope_defaults
from fermata.domain.caller import Caller
from fermata.domain.dialect import NEWEST_GENERATION
from fermata.domain.workspace_plan import Subscription
from fermata.editor_bridge.open_editors import register_editor
from fermata.limits.reader_leases import ReaderLease
from fermata.remote_tools.tool_registry import register_tool
from fermata.tools.tool import Execution
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from local.seed import WIDE_LIMITS
from tests.unit.client_protocols.conftest import Requester
from tests.unit.client_protocols.studio_clients import fill_project
from tests.unit.client_protocols.test_mcp_direct_calls import ADMIN, ask, call, find_tool
from tests.unit.client_protocols.test_plan_of_mcp_calls import SERVER_URL, count
from tests.unit.remote_tools.manifests import make_manifest_json
from tests.unit.turns.stage import Stage

ONE_PROMPT = TenantLimits(user_prompts_per_minute=1)
ONE_READER = WIDE_LIMITS.model_copy(update={"user_readers_at_once": 1})
MOST_IN_A_ROW = 9
"""More than the prompts of a minute, and those that were saved up."""


def list_conversations(stage: Stage) -> set[str]:
    table = stage.resources.settings.conversations_table
    rows, _ = stage.resources.tables.scan_page(table, None)
    return {row["id"] for row in rows if row["sk"] == "meta" and "deleted_at" not in row}


@pytest.fixture
def cms_client(stage: Stage, requester: Requester) -> Requester:
    """A client that may ask the CMS agent."""
    fill_project(stage)
    scope_defaults.set_default(stage.resources, stage.caller, "cms", stage.credential.id, "model-1")
    return Requester(requester.signer, ("ai.chat", "ai.tools.write", "ai.content.write"))


def ask_cms(client: Requester) -> tuple[bool, str]:
    parameters = {"name": "ask_cms", "arguments": {"prompt": "Is it fresh?"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
    sent = client.send("POST", "/mcp?space=studio", json=message, headers={"accept": "application/json"})
    result = sent.json()["result"]
    return not result["isError"], result["content"][0]["text"]


def call_until_refused(stage: Stage, call_once: Callable[[int], tuple[bool, str]]) -> tuple[str, bool]:
    """Return the words of the refusal, and whether the refused call has left a conversation."""
    for number in range(MOST_IN_A_ROW):
        before = list_conversations(stage)
        ok, words = call_once(number)
        if not ok and "waits until a person" not in words:
            return words, list_conversations(stage) != before
    raise AssertionError("No call was refused.")


def test_a_task_for_an_agent_that_is_one_prompt_too_many_begins_no_conversation(
    stage: Stage, cms_client: Requester
) -> None:
    update_tenant(stage.resources, "bakery", limits=ONE_PROMPT)
    stage.script_replies(*["It is fresh."] * MOST_IN_A_ROW)
    words, leaves_conversation = call_until_refused(stage, lambda _number: ask_cms(cms_client))
    stage.driver.scripts.clear()
    assert "The next one is possible in" in words
    assert not leaves_conversation


def test_a_task_for_an_agent_that_a_budget_does_not_cover_leaves_no_conversation(
    stage: Stage, cms_client: Requester
) -> None:
    stage.set_price(input_per_mtok=1_000_000, output_per_mtok=1_000_000)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.01"))))
    before = list_conversations(stage)
    ok, words = ask_cms(cms_client)
    assert not ok
    assert "budget" in words
    assert list_conversations(stage) == before


def test_a_call_of_a_registered_tool_that_is_one_prompt_too_many_begins_no_conversation(
    stage: Stage, requester: Requester
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(capability="write"), SERVER_URL)
    update_tenant(stage.resources, "bakery", limits=ONE_PROMPT)
    name = find_tool(requester)
    words, leaves_conversation = call_until_refused(stage, lambda number: call(requester, name, sku=f"SKU-{number}"))
    assert "The next one is possible in" in words
    assert not leaves_conversation


def find_tool_of_the_editor(requester: Requester) -> str:
    """Return a tool that runs in the editor, and needs no input."""
    caller = Caller(tenant="bakery", user="ada", capabilities=frozenset(requester.capabilities))
    for listed in ask(requester, "tools/list")["tools"]:
        found = find_editor_tool(caller, listed["name"])
        is_plain = not listed["inputSchema"].get("required")
        if found and is_plain and found.scope == "site" and found.tool.execution is not Execution.SERVER:
            return str(listed["name"])
    raise AssertionError("There is no such tool.")


def test_a_call_that_is_one_reader_too_many_counts_for_no_plan_and_begins_no_conversation(
    stage: Stage, requester: Requester, cms_client: Requester
) -> None:
    register_editor(stage.resources, stage.caller, "site", "seed", NEWEST_GENERATION)
    update_tenant(stage.resources, "bakery", limits=ONE_READER, subscription=Subscription(plan="pro"))
    name = find_tool_of_the_editor(requester)
    lease = ReaderLease.take(stage.resources, stage.caller, ONE_READER.apply_to(stage.resources.settings.caller_limits))
    before = list_conversations(stage)
    answers = [call(requester, name), ask_cms(cms_client)]
    lease.release()
    assert [ok for ok, _ in answers] == [False, False]
    assert all("as many connections as you may have at once (1)" in words for _, words in answers)
    assert count(stage) == 0
    assert list_conversations(stage) == before
