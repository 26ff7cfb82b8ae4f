"""What is offered to the model, under which name."""

from typing import Any

import pytest

from fermata.tools.registry import get_toolset
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Access, Approval, Execution, Risk
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name
from tests.unit.tools.builders import (
    ALL_CAPABILITIES,
    SITE_TOOL_CONTRACT,
    contract_cases,
    get_site_tool,
    make_tool,
    make_toolset,
)

CHAT = frozenset({"ai.chat"})


def names_of(specs: tuple[Any, ...]) -> list[str]:
    return [spec.name for spec in specs]


@pytest.mark.parametrize("known", SITE_TOOL_CONTRACT, ids=lambda known: known["name"])
def test_each_site_tool_is_governed_as_the_editor_expects(known: dict[str, Any]) -> None:
    tool = get_site_tool(known["name"])
    assert tool.permissions == set(known["permissions"])
    assert tool.execution == known["execution"]
    assert tool.capability == (Access.WRITE if known["mutates"] else Access.READ)
    assert tool.result_policy.heavy == known["heavy"]
    assert tool.idempotent is not known["mutates"]
    assert tool.affects.snapshot is known["mutates"]
    assert get_wire_name(tool, ToolNaming.CANONICAL) == known["name"]
    assert get_wire_name(tool, ToolNaming.PREFIXED) == known["prefixedName"]
    assert SITE_TOOLSET.find_tool(known["prefixedName"]) is tool


def test_the_servers_tools_are_offered_first_then_the_browsers_in_their_order() -> None:
    assert names_of(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site")) == [
        known["name"] for known in SITE_TOOL_CONTRACT
    ]


def test_a_server_tool_that_was_declared_last_is_offered_first() -> None:
    tools = make_toolset(
        make_tool("paint", execution=Execution.BROWSER, handler=None), make_tool("look"), make_tool("see")
    )
    assert names_of(tools.build_tool_specs(CHAT, "site")) == ["look", "see", "paint"]


def test_prefixed_names_are_offered_to_editors_that_know_only_those() -> None:
    offered = SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site", ToolNaming.PREFIXED)
    assert names_of(offered) == [known["prefixedName"] for known in SITE_TOOL_CONTRACT]


def test_what_is_offered_carries_the_schema_and_a_description() -> None:
    for spec, known in zip(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site"), SITE_TOOL_CONTRACT, strict=True):
        assert spec.input_schema == known["inputSchema"]
        assert len(spec.description) > 40


def test_a_caller_who_may_only_chat_is_offered_only_the_ungated_reads() -> None:
    ((_, given, expected),) = [case for case in contract_cases("capabilityGate") if case[0] == "C137"]
    assert (
        names_of(SITE_TOOLSET.build_tool_specs(frozenset(given["caps"]), given["scope"], ToolNaming.PREFIXED))
        == expected
    )


def test_a_caller_who_may_not_write_is_offered_what_reads() -> None:
    offered = names_of(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES - {"ai.tools.write"}, "site"))
    assert offered == [known["name"] for known in SITE_TOOL_CONTRACT if not known["mutates"]]


def test_a_caller_who_edits_content_is_offered_what_changes_words_and_no_structure() -> None:
    capabilities = frozenset({"ai.chat", "ai.tools.write", "site.content.edit"})
    offered = names_of(SITE_TOOLSET.build_tool_specs(capabilities, "site"))
    assert offered == ["getNodeHtml", "updateNodeProps", "renameNode", "render_snapshot"]


def test_the_site_has_six_tools_of_ours_and_twenty_nine_of_the_browsers() -> None:
    sides = [tool.execution for tool in SITE_TOOLSET.tools]
    assert sides == [Execution.SERVER] * 6 + [Execution.BROWSER] * 29
    assert sum(tool.capability is Access.WRITE for tool in SITE_TOOLSET.tools) == 22


@pytest.mark.parametrize(
    ("case", "given", "expected"),
    [case for case in contract_cases("capabilityGate") if case[0] not in ("C136", "C137")],
)
def test_a_tool_is_open_to_whoever_may_write_and_has_one_of_its_permissions(
    case: str, given: Any, expected: Any
) -> None:
    capability = Access.WRITE if given["tool"].get("mutates") else Access.READ
    tool = make_tool(capability=capability, permissions=frozenset(given["tool"].get("requires", ())))
    assert tool.permits(frozenset(given["caps"])) is expected["allowed"], case


def test_any_one_of_several_permissions_is_enough() -> None:
    ((_, given, expected),) = [case for case in contract_cases("capabilityGate") if case[0] == "C136"]
    lists = make_tool(
        "list_collections", toolset="content", permissions=frozenset({"content.manage", given["caps"][1]})
    )
    gets = make_tool("get_document", toolset="content", permissions=frozenset({"content.manage", "content.create"}))
    offered = names_of(
        make_toolset(lists, gets).build_tool_specs(frozenset(given["caps"]), given["scope"], ToolNaming.PREFIXED)
    )
    assert offered == expected["present"]
    assert not set(offered) & set(expected["absent"])


def test_what_is_disabled_out_of_scope_or_another_tenants_is_not_offered() -> None:
    tools = make_toolset(
        make_tool("off", enabled=False),
        make_tool("elsewhere", scopes=frozenset({"content"})),
        make_tool("theirs", tenant="tenant-2"),
        make_tool("ours", tenant="tenant-1"),
    )
    assert names_of(tools.build_tool_specs(CHAT, "site", tenant="tenant-1")) == ["ours"]


def test_roles_and_phases_narrow_the_offer_and_fail_closed() -> None:
    tools = make_toolset(
        make_tool("merge", roles=frozenset({"admin"})), make_tool("init", phases=frozenset({"uninitialized"}))
    )
    assert names_of(tools.build_tool_specs(CHAT, "site")) == []
    assert names_of(tools.build_tool_specs(CHAT, "site", role="viewer", phase="active")) == []
    assert names_of(tools.build_tool_specs(CHAT, "site", role="admin", phase="uninitialized")) == ["merge", "init"]


def test_an_alias_finds_its_tool_and_an_unknown_name_finds_nothing() -> None:
    tool = make_tool("cms_getPages", aliases=("cms_listPages",))
    assert make_toolset(tool).find_tool("cms_listPages") is tool
    assert make_toolset(tool).find_tool("cms_getpages") is None


def test_only_the_editors_own_scopes_have_prefixed_names() -> None:
    assert get_prefixed_name(make_tool("unsplash.search")) == "unsplash.search"
    assert get_prefixed_name(make_tool("plugin_read_file", toolset="plugin")) == "plugin_read_file"
    assert get_prefixed_name(make_tool("updateNodeProps", toolset="site")) == "site_update_node_props"


def test_two_tools_that_answer_to_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two tools answer to one"):
        make_toolset(make_tool("one"), make_tool("two", aliases=("one",)))


def test_a_browser_tool_has_no_function_and_every_other_needs_one() -> None:
    with pytest.raises(ValueError, match="needs `handler`"):
        make_tool(handler=None)
    with pytest.raises(ValueError, match="needs `handler`"):
        make_tool(execution=Execution.BROWSER)
    assert make_tool(execution=Execution.BROWSER, handler=None).handler is None


def test_the_data_scope_has_no_tools_yet() -> None:
    assert get_toolset("data").build_tool_specs(ALL_CAPABILITIES, "data") == ()
    assert get_toolset("site") is SITE_TOOLSET


@pytest.mark.parametrize(
    ("approval", "capability", "risk", "asks"),
    [
        (Approval.NEVER, Access.WRITE, Risk.HIGH, False),
        (Approval.ALWAYS, Access.READ, Risk.SAFE, True),
        (Approval.POLICY, Access.READ, Risk.MODERATE, False),
        (Approval.POLICY, Access.READ, Risk.HIGH, True),
        (Approval.POLICY, Access.WRITE, Risk.SAFE, True),
    ],
)
def test_approval_is_asked_by_the_record(approval: Approval, capability: Access, risk: Risk, asks: bool) -> None:
    assert make_tool(approval=approval, capability=capability, risk=risk).needs_approval is asks
