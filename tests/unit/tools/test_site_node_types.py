"""Node types and breakpoints, as the site tools list them."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.site.node_types.listing import describe_node_types
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Execution
from tests.unit.tools.builders import make_call, make_context, make_site_snapshot, run_tool

NODE_TYPE_NAMES = (
    "button checkbox container form form-message image input label link list loop option option-group outlet radio "
    "select slot-instance slot-outlet submit svg text textarea video visual-component-ref"
)
CATEGORIES = {"Layout", "Interactive", "Forms", "Media", "Typography", "CMS", "Components"}
MEMBERS = {"id", "name", "description", "category", "canHaveChildren", "defaults", "props", "styles"}
STYLE_HINTS = "fontFamily fontSize fontWeight lineHeight letterSpacing color textAlign marginBottom"


def get_node_type(kind: str) -> dict[str, Any]:
    (admitted,) = [item for item in describe_node_types() if item["id"] == f"base.{kind}"]
    return admitted


def call_tool(name: str, snapshot: Any = None, **arguments: Any) -> ToolOutput:
    admitted = admit_call(SITE_TOOLSET, make_call(name, arguments), make_context())
    assert isinstance(admitted, AdmittedCall), admitted
    return run_tool(admitted, make_context(snapshot=snapshot))


def test_every_node_type_is_listed_by_its_id() -> None:
    assert [item["id"] for item in describe_node_types()] == [f"base.{kind}" for kind in NODE_TYPE_NAMES.split()]
    assert {item["category"] for item in describe_node_types()} == CATEGORIES


@pytest.mark.parametrize("kind", NODE_TYPE_NAMES.split())
def test_a_node_type_has_a_description_props_and_defaults(kind: str) -> None:
    description = get_node_type(kind)
    assert set(description) == MEMBERS
    assert description["description"].endswith(".")
    for prop in description["props"]:
        assert description["defaults"][prop["key"]] == prop["defaultValue"]
        assert ("options" in prop) is (prop["type"] == "select")
        if "options" in prop:
            assert prop["defaultValue"] in [option["value"] for option in prop["options"]]


def test_node_types_that_can_have_children_are_marked() -> None:
    holders = {item["id"] for item in describe_node_types() if item["canHaveChildren"]}
    kinds = "container form link loop option-group select slot-instance visual-component-ref"
    assert holders == {f"base.{kind}" for kind in kinds.split()}


def test_only_typography_has_style_hints() -> None:
    assert [item["id"] for item in describe_node_types() if item["styles"]] == ["base.list", "base.text"]
    hints = get_node_type("text")["styles"]
    assert [hint["key"] for hint in hints] == STYLE_HINTS.split()
    assert all(hint["cssProperties"] == [hint["key"]] for hint in hints)


def test_a_heading_is_a_text_node_with_another_tag() -> None:
    (tag,) = [prop for prop in get_node_type("text")["props"] if prop["key"] == "tag"]
    assert {"label": "Heading 2", "value": "h2"} in tag["options"]


@pytest.mark.parametrize(("category", "count"), [("forms", 11), ("FORMS", 11), (" Media ", 3), ("", 24), ("Nope", 0)])
def test_a_category_filters_the_list_in_upper_or_lower_case(category: str, count: int) -> None:
    assert len(describe_node_types(category)) == count


def test_node_types_are_listed_without_a_snapshot() -> None:
    output = call_tool("list_modules", category="cms")
    assert output.ok
    assert [item["id"] for item in output.data["modules"]] == ["base.outlet"]


def test_breakpoints_are_returned_exactly_as_posted() -> None:
    snapshot = make_site_snapshot()
    snapshot["site"]["breakpoints"].append({"id": "phone", "width": 390.5, "icon": None, "previewFrame": {"scale": 1}})
    output = call_tool("list_breakpoints", snapshot)
    assert output.data == {"activeBreakpointId": "desktop", "breakpoints": snapshot["site"]["breakpoints"]}


def test_a_broken_breakpoint_is_a_failure_that_names_it() -> None:
    output = call_tool("list_breakpoints", {"site": {"breakpoints": [3]}})
    assert not output.ok
    assert "snapshot.site.breakpoints[0]" in (output.error or "")


@pytest.mark.parametrize("name", ["list_documents", "list_tokens", "list_breakpoints"])
def test_reads_of_the_snapshot_fail_with_a_reason_if_there_is_none(name: str) -> None:
    output = call_tool(name)
    assert (output.ok, output.error) == (
        False,
        "The editor sent no snapshot with this prompt, so there is nothing to list.",
    )


def test_reads_of_snapshot_and_static_data_are_instant_and_reads_of_the_content_system_are_not() -> None:
    instant = [tool.name for tool in SITE_TOOLSET.tools if tool.instant]
    assert instant == ["list_documents", "list_modules", "list_tokens", "list_breakpoints"]
    asks_others = [tool.name for tool in SITE_TOOLSET.tools if tool.execution is Execution.SERVER and not tool.instant]
    assert asks_others == ["list_post_types", "list_loop_sources"]
