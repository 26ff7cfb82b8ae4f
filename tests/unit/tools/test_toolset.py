"""Tools are offered to the model by caller, scope and naming."""

from typing import Any

import pytest

from fermata.agents.registry import get_toolset
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

CHAT_ONLY = frozenset({"ai.chat"})


def list_names(specs: tuple[Any, ...]) -> list[str]:
    return [spec.name for spec in specs]


@pytest.mark.parametrize("contract", SITE_TOOL_CONTRACT, ids=lambda contract: contract["name"])
def test_each_site_tool_is_defined_as_the_editor_expects(contract: dict[str, Any]) -> None:
    tool = get_site_tool(contract["name"])
    assert tool.permissions == set(contract["permissions"])
    assert tool.execution == contract["execution"]
    assert tool.access == (Access.WRITE if contract["mutates"] else Access.READ)
    assert tool.result_policy.heavy == contract["heavy"]
    assert tool.idempotent is not contract["mutates"]
    assert tool.affects.snapshot is contract["mutates"]
    assert get_wire_name(tool, ToolNaming.CANONICAL) == contract["name"]
    assert get_wire_name(tool, ToolNaming.PREFIXED) == contract["prefixedName"]
    assert SITE_TOOLSET.find_tool(contract["prefixedName"]) is tool


def test_server_tools_are_offered_first_then_browser_tools_in_the_order_of_definition() -> None:
    assert list_names(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site")) == [
        contract["name"] for contract in SITE_TOOL_CONTRACT
    ]


def test_a_server_tool_that_is_defined_last_is_offered_first() -> None:
    tools = make_toolset(
        make_tool("paint", execution=Execution.BROWSER, handler=None), make_tool("look"), make_tool("see")
    )
    assert list_names(tools.build_tool_specs(CHAT_ONLY, "site")) == ["look", "see", "paint"]


def test_tools_are_offered_by_prefixed_names_to_editors_that_use_them() -> None:
    offered = SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site", ToolNaming.PREFIXED)
    assert list_names(offered) == [contract["prefixedName"] for contract in SITE_TOOL_CONTRACT]


def test_an_offered_tool_has_a_schema_and_a_description() -> None:
    for spec, contract in zip(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES, "site"), SITE_TOOL_CONTRACT, strict=True):
        assert spec.input_schema == contract["inputSchema"]
        assert len(spec.description) > 40


def test_a_caller_who_may_only_chat_is_offered_reads_without_permissions() -> None:
    ((_, case_input, expected),) = [case for case in contract_cases("capabilityGate") if case[0] == "C137"]
    assert (
        list_names(
            SITE_TOOLSET.build_tool_specs(frozenset(case_input["caps"]), case_input["scope"], ToolNaming.PREFIXED)
        )
        == expected
    )


def test_a_caller_who_may_not_write_is_offered_reads() -> None:
    offered = list_names(SITE_TOOLSET.build_tool_specs(ALL_CAPABILITIES - {"ai.tools.write"}, "site"))
    assert offered == [contract["name"] for contract in SITE_TOOL_CONTRACT if not contract["mutates"]]


def test_a_caller_who_edits_content_is_offered_no_tools_that_change_the_structure() -> None:
    capabilities = frozenset({"ai.chat", "ai.tools.write", "site.content.edit"})
    offered = list_names(SITE_TOOLSET.build_tool_specs(capabilities, "site"))
    assert offered == ["getNodeHtml", "updateNodeProps", "renameNode", "render_snapshot"]


def test_the_site_toolset_has_the_tools_of_its_editor_in_the_same_order() -> None:
    assert [tool.name for tool in SITE_TOOLSET.tools] == [contract["name"] for contract in SITE_TOOL_CONTRACT]


@pytest.mark.parametrize(
    ("case", "case_input", "expected"),
    [case for case in contract_cases("capabilityGate") if case[0] not in ("C136", "C137")],
)
def test_a_write_requires_the_write_capability_and_one_of_the_permissions(
    case: str, case_input: Any, expected: Any
) -> None:
    capability = Access.WRITE if case_input["tool"].get("mutates") else Access.READ
    tool = make_tool(access=capability, permissions=frozenset(case_input["tool"].get("requires", ())))
    assert tool.permits(frozenset(case_input["caps"])) is expected["allowed"], case


def test_any_one_of_several_permissions_is_enough() -> None:
    ((_, case_input, expected),) = [case for case in contract_cases("capabilityGate") if case[0] == "C136"]
    lists = make_tool(
        "list_collections", toolset="content", permissions=frozenset({"content.manage", case_input["caps"][1]})
    )
    gets = make_tool("get_document", toolset="content", permissions=frozenset({"content.manage", "content.create"}))
    offered = list_names(
        make_toolset(lists, gets).build_tool_specs(
            frozenset(case_input["caps"]), case_input["scope"], ToolNaming.PREFIXED
        )
    )
    assert offered == expected["present"]
    assert not set(offered) & set(expected["absent"])


def test_tools_that_are_disabled_or_of_another_scope_or_tenant_are_not_offered() -> None:
    tools = make_toolset(
        make_tool("off", enabled=False),
        make_tool("elsewhere", scopes=frozenset({"content"})),
        make_tool("theirs", tenant="tenant-2"),
        make_tool("ours", tenant="tenant-1"),
    )
    assert list_names(tools.build_tool_specs(CHAT_ONLY, "site", tenant="tenant-1")) == ["ours"]


def test_a_tool_with_roles_or_phases_is_offered_only_in_them() -> None:
    tools = make_toolset(
        make_tool("merge", roles=frozenset({"admin"})), make_tool("init", phases=frozenset({"uninitialized"}))
    )
    assert list_names(tools.build_tool_specs(CHAT_ONLY, "site")) == []
    assert list_names(tools.build_tool_specs(CHAT_ONLY, "site", role="viewer", phase="active")) == []
    assert list_names(tools.build_tool_specs(CHAT_ONLY, "site", role="admin", phase="uninitialized")) == [
        "merge",
        "init",
    ]


def test_an_alias_finds_its_tool_and_an_unknown_name_finds_nothing() -> None:
    tool = make_tool("cms_getPages", aliases=("cms_listPages",))
    assert make_toolset(tool).find_tool("cms_listPages") is tool
    assert make_toolset(tool).find_tool("cms_dropPages") is None


@pytest.mark.parametrize(
    "name",
    [
        "functions.insertHtml",
        "default_api:site_insert_html",
        "tools/insertHtml",
        "mcp__editor__insertHtml",
        " InsertHTML ",
        "insert_html",
        "site-insert-html",
        "insertHtml<|channel|>json",
        "insertHtml commentary",
        "functions.insertHtml:0",
        "functions.insertHtml<|tool_call_argument_begin|>",
        "tool_insert_html",
        "functions_insertHtml",
        "insertHtmlTool",
        "<function=insertHtml>",
        "to=functions.insertHtml json",
        "insertHtml</tool_call>",
        "insertHtml[ARGS]",
        "google:tool:insertHtml:index:0",
        'insertHtml({"html": ""})',
    ],
)
def test_a_name_is_recognised_when_only_one_tool_can_be_meant(name: str) -> None:
    assert SITE_TOOLSET.find_tool(name) is get_site_tool("insertHtml")
    assert SITE_TOOLSET.get_tool_namer(ToolNaming.PREFIXED)(name) == "site_insert_html"


def test_a_name_that_may_mean_two_tools_is_not_recognised() -> None:
    tools = make_toolset(make_tool("get_page"), make_tool("getPage"))
    assert tools.find_tool("GETPAGE") is None
    assert tools.find_tool("getPage") is tools.tools[1]


@pytest.mark.parametrize("name", ["undo_insert_html", "not insertHtml", "", "tool", "tool_", "functions."])
def test_a_word_that_changes_what_is_meant_is_part_of_the_name(name: str) -> None:
    assert SITE_TOOLSET.find_tool(name) is None


def test_only_the_editors_own_scopes_have_prefixed_names() -> None:
    assert get_prefixed_name(make_tool("unsplash.search")) == "unsplash.search"
    assert get_prefixed_name(make_tool("plugin_read_file", toolset="plugin")) == "plugin_read_file"
    assert get_prefixed_name(make_tool("updateNodeProps", toolset="site")) == "site_update_node_props"


def test_two_tools_of_a_toolset_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two tools answer to one"):
        make_toolset(make_tool("one"), make_tool("two", aliases=("one",)))


def test_a_browser_tool_has_no_handler_and_every_other_tool_needs_one() -> None:
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
        (Approval.BY_RISK, Access.READ, Risk.MODERATE, False),
        (Approval.BY_RISK, Access.READ, Risk.HIGH, True),
        (Approval.BY_RISK, Access.WRITE, Risk.SAFE, True),
    ],
)
def test_the_approval_setting_decides_whether_a_person_must_agree(
    approval: Approval, capability: Access, risk: Risk, asks: bool
) -> None:
    assert make_tool(approval=approval, access=capability, risk=risk).needs_approval is asks
