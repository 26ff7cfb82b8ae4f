"""The content and the plugin tools as their editors know them: names, order, schemas, sides, and who may call them."""

import json
from typing import Any

import pytest

from fermata.domain.caller import Capability
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.registry import get_toolset
from fermata.tools.tool import Access, Tool
from fermata.tools.tool_names import ToolNaming, get_wire_name
from tests.unit.tools.builders import FIXTURES, make_call, make_context

SCOPES = ("content", "plugin")
KNOWN = [(scope, known) for scope in SCOPES for known in json.loads((FIXTURES / f"{scope}_tools.json").read_text())]
SAMPLES: dict[str, Any] = {"string": "text", "integer": 1, "object": {}}
each = pytest.mark.parametrize(("scope", "known"), KNOWN, ids=lambda one: one["name"] if isinstance(one, dict) else "")


def tool_of(scope: str, known: dict[str, Any]) -> Tool:
    tool = get_toolset(scope).find_tool(known["name"])
    assert tool is not None
    return tool


def sample(schema: dict[str, Any]) -> Any:
    """The smallest value that fits."""
    if "anyOf" in schema:
        return schema["anyOf"][0]["const"]
    match schema.get("type"):
        case "object":
            return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return [sample(schema["items"])]
    return SAMPLES.get(schema.get("type", "string"), "text")


def admitted(scope: str, known: dict[str, Any], capabilities: set[str]) -> AdmittedCall | ToolOutput:
    where = make_context(scope=scope, capabilities=frozenset(capabilities))
    return admit_call(get_toolset(scope), make_call(known["name"], sample(known["inputSchema"])), where)


def test_there_are_fifteen_content_tools_and_ten_plugin_tools() -> None:
    assert [len(get_toolset(scope).tools) for scope in SCOPES] == [15, 10]


@each
def test_a_tool_is_what_the_editor_knows(scope: str, known: dict[str, Any]) -> None:
    tool = tool_of(scope, known)
    assert tool.input_schema == known["inputSchema"]
    assert tool.execution == known["execution"]
    assert tool.capability == (Access.WRITE if known["mutates"] else Access.READ)
    assert tool.permissions == set(known["permissions"])
    assert tool.result_policy.heavy == known["heavy"]
    assert tool.idempotent is not known["mutates"]
    assert (get_wire_name(tool, ToolNaming.CANONICAL), get_wire_name(tool, ToolNaming.PREFIXED)) == (
        known["name"],
        known["prefixedName"],
    )
    assert get_toolset(scope).find_tool(known["prefixedName"]) is tool
    assert tool.affects.snapshot is known["mutates"]
    assert 40 < len(tool.description) < 300


@pytest.mark.parametrize("scope", SCOPES)
def test_the_servers_tools_are_offered_first_then_the_browsers_in_their_order(scope: str) -> None:
    everything = frozenset({p for _, known in KNOWN for p in known["permissions"]} | {"ai.tools.write"})
    own = [known for area, known in KNOWN if area == scope]
    expected = sorted(own, key=lambda known: known["execution"] != "server")
    offered = get_toolset(scope).build_tool_specs(everything, scope, ToolNaming.PREFIXED)
    assert [spec.name for spec in offered] == [known["prefixedName"] for known in expected]


@each
def test_any_one_of_its_permissions_lets_a_caller_use_it(scope: str, known: dict[str, Any]) -> None:
    write = {str(Capability.WRITE)} if known["mutates"] else set()
    for permission in known["permissions"] or ["ai.chat"]:
        found = admitted(scope, known, write | {permission})
        assert isinstance(found, AdmittedCall), found


@each
def test_without_its_permissions_a_call_is_refused(scope: str, known: dict[str, Any]) -> None:
    if not known["permissions"]:
        assert isinstance(admitted(scope, known, {"ai.tools.write"}), AdmittedCall)
        return
    others = {p for _, other in KNOWN for p in other["permissions"]} - set(known["permissions"])
    refused = admitted(scope, known, others | {"ai.chat", "ai.tools.write"})
    assert refused == ToolOutput.failure(f"Tool {known['name']} is not permitted for this user.")


@each
def test_whoever_may_not_write_changes_nothing(scope: str, known: dict[str, Any]) -> None:
    found = admitted(scope, known, {"ai.chat", *known["permissions"]})
    assert isinstance(found, ToolOutput) is known["mutates"]


@each
def test_a_tool_exists_in_its_own_scope_only(scope: str, known: dict[str, Any]) -> None:
    everything = frozenset({*known["permissions"], "ai.tools.write"})
    elsewhere = make_context(scope="site", capabilities=everything)
    found = admit_call(get_toolset(scope), make_call(known["name"], sample(known["inputSchema"])), elsewhere)
    assert found == ToolOutput.failure(f"Unknown tool: {known['name']}")
