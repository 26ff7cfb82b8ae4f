"""Content and plugin tools are what their editors expect: names, order, schemas, sides and permissions."""

from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.domain.caller import Capability
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.tool import Access, Tool
from fermata.tools.tool_names import ToolNaming, get_wire_name
from tests.tool_contract import TOOL_CONTRACT
from tests.unit.tools.builders import make_call, make_context

SCOPES = ("content", "plugin")
CONTRACT = [(scope, contract) for scope in SCOPES for contract in TOOL_CONTRACT[scope]]
SAMPLE_VALUES: dict[str, Any] = {"string": "text", "integer": 1, "object": {}}
each_tool = pytest.mark.parametrize(
    ("scope", "contract"), CONTRACT, ids=lambda value: value["name"] if isinstance(value, dict) else ""
)


def get_tool(scope: str, contract: dict[str, Any]) -> Tool:
    tool = get_toolset(scope).find_tool(contract["name"])
    assert tool is not None
    return tool


def make_sample(schema: dict[str, Any]) -> Any:
    """Make the smallest value that fits a schema."""
    if "anyOf" in schema:
        return schema["anyOf"][0]["const"]
    match schema.get("type"):
        case "object":
            return {name: make_sample(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [make_sample(schema["items"])]
    return SAMPLE_VALUES.get(schema.get("type", "string"), "text")


def admit_sample_call(scope: str, contract: dict[str, Any], capabilities: set[str]) -> AdmittedCall | ToolOutput:
    context = make_context(scope=scope, capabilities=frozenset(capabilities))
    return admit_call(get_toolset(scope), make_call(contract["name"], make_sample(contract["inputSchema"])), context)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_toolset_has_the_tools_of_its_editor_in_the_same_order(scope: str) -> None:
    assert [tool.name for tool in get_toolset(scope).tools] == [contract["name"] for contract in TOOL_CONTRACT[scope]]


@each_tool
def test_each_tool_is_defined_as_its_editor_expects(scope: str, contract: dict[str, Any]) -> None:
    tool = get_tool(scope, contract)
    assert tool.input_schema == contract["inputSchema"]
    assert tool.execution == contract["execution"]
    assert tool.access == (Access.WRITE if contract["mutates"] else Access.READ)
    assert tool.permissions == set(contract["permissions"])
    assert tool.result_policy.heavy == contract["heavy"]
    assert tool.idempotent is not contract["mutates"]
    assert (get_wire_name(tool, ToolNaming.CANONICAL), get_wire_name(tool, ToolNaming.PREFIXED)) == (
        contract["name"],
        contract["prefixedName"],
    )
    assert get_toolset(scope).find_tool(contract["prefixedName"]) is tool
    assert tool.affects.snapshot is contract["mutates"]
    assert 40 < len(tool.description) < 300


@pytest.mark.parametrize("scope", SCOPES)
def test_server_tools_are_offered_first_then_browser_tools_in_the_order_of_definition(scope: str) -> None:
    capabilities = frozenset({p for _, contract in CONTRACT for p in contract["permissions"]} | {"ai.tools.write"})
    contracts = [contract for other_scope, contract in CONTRACT if other_scope == scope]
    expected = sorted(contracts, key=lambda contract: contract["execution"] != "server")
    offered = get_toolset(scope).build_tool_specs(capabilities, scope, ToolNaming.PREFIXED)
    assert [spec.name for spec in offered] == [contract["prefixedName"] for contract in expected]


@each_tool
def test_a_caller_with_one_of_the_permissions_may_use_the_tool(scope: str, contract: dict[str, Any]) -> None:
    write_capability = {str(Capability.WRITE)} if contract["mutates"] else set()
    for permission in contract["permissions"] or ["ai.chat"]:
        outcome = admit_sample_call(scope, contract, write_capability | {permission})
        assert isinstance(outcome, AdmittedCall), outcome


@each_tool
def test_a_call_without_the_permissions_is_refused(scope: str, contract: dict[str, Any]) -> None:
    if not contract["permissions"]:
        assert isinstance(admit_sample_call(scope, contract, {"ai.tools.write"}), AdmittedCall)
        return
    other_permissions = {p for _, other in CONTRACT for p in other["permissions"]} - set(contract["permissions"])
    outcome = admit_sample_call(scope, contract, other_permissions | {"ai.chat", "ai.tools.write"})
    assert outcome == ToolOutput.failure(f"Tool {contract['name']} is not permitted for this user.")


@each_tool
def test_a_caller_without_the_write_capability_cannot_change_anything(scope: str, contract: dict[str, Any]) -> None:
    outcome = admit_sample_call(scope, contract, {"ai.chat", *contract["permissions"]})
    assert isinstance(outcome, ToolOutput) is contract["mutates"]


@each_tool
def test_a_tool_is_unknown_in_other_scopes(scope: str, contract: dict[str, Any]) -> None:
    capabilities = frozenset({*contract["permissions"], "ai.tools.write"})
    context = make_context(scope="site", capabilities=capabilities)
    outcome = admit_call(get_toolset(scope), make_call(contract["name"], make_sample(contract["inputSchema"])), context)
    assert outcome == ToolOutput.failure(f"Unknown tool: {contract['name']}")
