"""Calls of MCP clients that a limit refuses leave nothing: no conversation, and nothing that counts for the plan."""

from typing import Any

import pytest

from fermata.client_protocols.mcp_tools import find_editor_tool
from fermata.domain.caller import Caller
from fermata.domain.dialect import NEWEST_GENERATION
from fermata.domain.workspace_plan import Subscription
from fermata.editor_bridge.open_editors import register_editor
from fermata.limits.reader_leases import ReaderLease
from fermata.remote_tools.tool_registry import register_tool
from fermata.tools.tool import Execution
from fermata.wire.auth.tenant import TenantLimits
from fermata.wire.auth.tenant_store import update_tenant
from local.seed import WIDE_LIMITS
from tests.unit.client_protocols.conftest import Requester
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
    return {row["id"] for row in rows if row["sk"] == "meta"}


def call_until_refused(stage: Stage, requester: Requester, name: str, **arguments: Any) -> tuple[str, bool]:
    """Return the words of the refusal, and whether the refused call has left a conversation."""
    for number in range(MOST_IN_A_ROW):
        before = list_conversations(stage)
        ok, words = call(requester, name, **arguments, **({} if "prompt" in arguments else {"sku": f"SKU-{number}"}))
        if not ok and "waits until a person" not in words:
            return words, list_conversations(stage) != before
    raise AssertionError("No call was refused.")


def test_a_task_for_an_agent_that_is_one_prompt_too_many_begins_no_conversation(
    stage: Stage, requester: Requester
) -> None:
    update_tenant(stage.resources, "bakery", limits=ONE_PROMPT)
    stage.script_replies(*["It is fresh."] * MOST_IN_A_ROW)
    words, leaves_conversation = call_until_refused(stage, requester, "ask_site", prompt="Is it fresh?")
    assert "The next one is possible in" in words
    assert not leaves_conversation
    stage.driver.scripts.clear()


def test_a_call_of_a_registered_tool_that_is_one_prompt_too_many_begins_no_conversation(
    stage: Stage, requester: Requester
) -> None:
    register_tool(stage.resources, ADMIN, make_manifest_json(capability="write"), SERVER_URL)
    update_tenant(stage.resources, "bakery", limits=ONE_PROMPT)
    words, leaves_conversation = call_until_refused(stage, requester, find_tool(requester))
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


@pytest.mark.parametrize("agent", [False, True], ids=["tool", "agent"])
def test_a_call_that_is_one_reader_too_many_counts_for_no_plan(
    stage: Stage, requester: Requester, *, agent: bool
) -> None:
    register_editor(stage.resources, stage.caller, "site", "seed", NEWEST_GENERATION)
    name, arguments = ("ask_site", {"prompt": "Hi"}) if agent else (find_tool_of_the_editor(requester), {})
    update_tenant(stage.resources, "bakery", limits=ONE_READER, subscription=Subscription(plan="pro"))
    limits = ONE_READER.apply_to(stage.resources.settings.caller_limits)
    lease = ReaderLease.take(stage.resources, stage.caller, limits)
    before = list_conversations(stage)
    ok, words = call(requester, name, **arguments)
    lease.release()
    assert not ok
    assert "as many connections as you may have at once (1)" in words
    assert count(stage) == 0
    assert list_conversations(stage) == before
