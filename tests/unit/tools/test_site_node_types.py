"""What documents are made of, and for which widths, as the model is told."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.site.node_types.listing import describe_node_types
from fermata.tools.site.toolset import SITE_TOOLSET
from fermata.tools.tool import Execution
from tests.unit.tools.builders import make_call, make_context, make_site_snapshot

KINDS = (
    "button checkbox container form form-message image input label link list loop option option-group outlet radio "
    "select slot-instance slot-outlet submit svg text textarea video visual-component-ref"
)
CATEGORIES = {"Layout", "Interactive", "Forms", "Media", "Typography", "CMS", "Components"}
MEMBERS = {"id", "name", "description", "category", "canHaveChildren", "defaults", "props", "styles"}
HINTS = "fontFamily fontSize fontWeight lineHeight letterSpacing color textAlign marginBottom"


def module(kind: str) -> dict[str, Any]:
    (found,) = [one for one in describe_node_types() if one["id"] == f"base.{kind}"]
    return found


def asked(name: str, posted: Any = None, **given: Any) -> ToolOutput:
    found = admit_call(SITE_TOOLSET, make_call(name, given), make_context())
    assert isinstance(found, AdmittedCall), found
    return run_tool(found, make_context(snapshot=posted))


def test_every_kind_of_node_that_can_be_inserted_is_listed_by_its_id() -> None:
    assert [one["id"] for one in describe_node_types()] == [f"base.{kind}" for kind in KINDS.split()]
    assert {one["category"] for one in describe_node_types()} == CATEGORIES


@pytest.mark.parametrize("kind", KINDS.split())
def test_a_kind_of_node_says_what_it_is_and_what_it_has(kind: str) -> None:
    told = module(kind)
    assert set(told) == MEMBERS
    assert told["description"].endswith(".")
    for prop in told["props"]:
        assert told["defaults"][prop["key"]] == prop["defaultValue"]
        assert ("options" in prop) is (prop["type"] == "select")
        if "options" in prop:
            assert prop["defaultValue"] in [option["value"] for option in prop["options"]]


def test_what_can_hold_others_is_told() -> None:
    holders = {one["id"] for one in describe_node_types() if one["canHaveChildren"]}
    kinds = "container form link loop option-group select slot-instance visual-component-ref"
    assert holders == {f"base.{kind}" for kind in kinds.split()}


def test_only_typography_has_hints_for_its_style() -> None:
    assert [one["id"] for one in describe_node_types() if one["styles"]] == ["base.list", "base.text"]
    hints = module("text")["styles"]
    assert [hint["key"] for hint in hints] == HINTS.split()
    assert all(hint["cssProperties"] == [hint["key"]] for hint in hints)


def test_a_heading_is_a_text_with_another_tag() -> None:
    (tag,) = [prop for prop in module("text")["props"] if prop["key"] == "tag"]
    assert {"label": "Heading 2", "value": "h2"} in tag["options"]


@pytest.mark.parametrize(("category", "count"), [("forms", 11), ("FORMS", 11), (" Media ", 3), ("", 24), ("Nope", 0)])
def test_a_category_narrows_the_list_in_any_case(category: str, count: int) -> None:
    assert len(describe_node_types(category)) == count


def test_the_tool_answers_without_any_snapshot() -> None:
    output = asked("list_modules", category="cms")
    assert output.ok
    assert [one["id"] for one in output.data["modules"]] == ["base.outlet"]


def test_breakpoints_are_told_exactly_as_they_were_posted() -> None:
    posted = make_site_snapshot()
    posted["site"]["breakpoints"].append({"id": "phone", "width": 390.5, "icon": None, "previewFrame": {"scale": 1}})
    output = asked("list_breakpoints", posted)
    assert output.data == {"activeBreakpointId": "desktop", "breakpoints": posted["site"]["breakpoints"]}


def test_breakpoints_of_a_broken_snapshot_are_a_failure_the_model_can_read() -> None:
    output = asked("list_breakpoints", {"site": {"breakpoints": [3]}})
    assert not output.ok
    assert "snapshot.site.breakpoints[0]" in (output.error or "")


@pytest.mark.parametrize("name", ["list_documents", "list_tokens", "list_breakpoints"])
def test_without_a_snapshot_a_read_of_it_fails_and_says_why(name: str) -> None:
    output = asked(name)
    assert (output.ok, output.error) == (
        False,
        "The editor sent no snapshot with this prompt, so there is nothing to list.",
    )


def test_what_is_answered_from_what_is_at_hand_is_instant_and_what_others_are_asked_for_is_not() -> None:
    instant = [tool.name for tool in SITE_TOOLSET.tools if tool.instant]
    assert instant == ["list_documents", "list_modules", "list_tokens", "list_breakpoints"]
    asks_others = [tool.name for tool in SITE_TOOLSET.tools if tool.execution is Execution.SERVER and not tool.instant]
    assert asks_others == ["list_post_types", "list_loop_sources"]
