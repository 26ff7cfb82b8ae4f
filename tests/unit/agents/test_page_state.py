"""The tool that fills in fields of the page is offered for the fields that the client exposes."""

from typing import Any

import pytest

from fermata.agents.tool_sources.page_state import (
    UPDATE_PAGE_STATE_NAME,
    answer_page_state_updates,
    build_update_page_state_tool,
    describe_kind,
)
from fermata.domain.blocks import ToolCallBlock
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.tool import Execution, Tool, ToolContext
from fermata.tools.toolset import Toolset

CONTEXT = ToolContext(tenant="t", user="u", capabilities=frozenset({"ai.chat"}), scope="site", turn="x")


def build_tool(shared_state: Any) -> Tool:
    tool = build_update_page_state_tool(shared_state)
    assert tool is not None
    return tool


def test_the_client_carries_it_out() -> None:  # updatePageState-02
    tool = build_tool({"foo": 1})
    assert (tool.name, tool.execution, tool.handler) == (UPDATE_PAGE_STATE_NAME, Execution.BROWSER, None)


def test_its_description_has_a_line_for_each_field() -> None:  # updatePageState-03
    lines = build_tool({"legal_name": "Acme", "trade_name": "Acme Inc.", "employees": 42}).description.split("\n")
    assert lines[1:] == ["- legal_name (string)", "- trade_name (string)", "- employees (number)"]


@pytest.mark.parametrize("shared_state", [{}, None, [], "x", 1])  # updatePageState-04
def test_without_a_field_it_is_not_offered(shared_state: Any) -> None:
    assert build_update_page_state_tool(shared_state) is None


def test_it_is_not_offered_for_a_page_that_can_only_be_read() -> None:
    assert build_update_page_state_tool({"foo": 1}, is_read_only=True) is None


def test_kinds_are_those_of_json() -> None:  # updatePageState-05
    values = [None, [1], {"d": 1}, True, "x", 1, 1.5]
    kinds = ["null", "array", "object", "boolean", "string", "number", "number"]
    assert [describe_kind(value) for value in values] == kinds


def test_its_input_is_an_object_of_updates() -> None:  # updatePageState-06
    schema = build_tool({"foo": 1}).input_schema
    updates = schema["properties"]["updates"]
    assert (schema["type"], schema["required"], list(schema["properties"])) == ("object", ["updates"], ["updates"])
    assert (updates["type"], updates["additionalProperties"]) == ("object", True)
    assert schema["description"]
    assert updates["description"]


@pytest.mark.parametrize(
    ("arguments", "is_admitted"),
    [({"updates": {"foo": 2, "admin": True}}, True), ({}, False), ({"updates": 1}, False), ({"updates": {}}, True)],
)
def test_a_call_has_updates_with_any_keys(arguments: Any, *, is_admitted: bool) -> None:
    call = ToolCallBlock(tool_call_id="c", tool_name=UPDATE_PAGE_STATE_NAME, input=arguments)
    admitted = admit_call(Toolset("page", (build_tool({"foo": 1}),)), call, CONTEXT)
    assert isinstance(admitted, AdmittedCall) is is_admitted
    assert not isinstance(admitted, AdmittedCall) or admitted.arguments == arguments


def test_only_exposed_keys_are_written() -> None:  # updatePageState-07
    answer = answer_page_state_updates(["legal_name", "company"], {"legal_name": "x", "admin": True})
    assert answer == {"ok": True, "written": ["legal_name"], "ignored": ["admin"]}
