"""Each generation of Instatic's editor is offered exactly the schemas it knows, and no member of a call is lost."""

from typing import Any

import pytest

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from fermata.domain.dialect import NEWEST_GENERATION, OLDEST_GENERATION, EditorGeneration
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, add_ignored_members, admit_call
from fermata.tools.tool import ToolContext
from tests.tenant_tokens import ALL_CAPABILITIES
from tests.unit.tools.builders import make_call

TEXT = {"type": "string", "minLength": 1}
ANY_MAP = {"type": "object", "patternProperties": {"^(.*)$": {}}}


def one_of(*values: str) -> dict[str, Any]:
    return {"anyOf": [{"const": value, "type": "string"} for value in values]}


def some(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": 100, "uniqueItems": True}


NEWEST_SCHEMAS: dict[tuple[str, str], dict[str, Any]] = {
    ("site", "applyCss"): {
        "type": "object",
        "properties": {
            "operation": one_of("merge", "replace", "delete", "remove-properties"),
            "css": TEXT,
            "selectors": some(TEXT),
            "properties": some(TEXT | {"pattern": "^-{0,2}[a-zA-Z][a-zA-Z0-9-]*$"}),
        },
        "required": ["operation"],
        "additionalProperties": False,
    },
    ("site", "write_code_asset"): {
        "type": "object",
        "properties": {
            "path": TEXT,
            "type": one_of("script", "style"),
            "content": {"type": "string"},
            "runtime": ANY_MAP,
            "dependencies": {"type": "object", "patternProperties": {"^(.*)$": TEXT}},
        },
        "required": ["path", "type", "content"],
    },
    ("content", "create_document"): {
        "type": "object",
        "properties": {"tableId": TEXT, "fields": ANY_MAP},
        "required": ["tableId"],
    },
}


def admit_with_all_rights(
    scope: str, name: str, arguments: Any, generation: EditorGeneration
) -> AdmittedCall | ToolOutput:
    toolset = get_toolset(scope, generation)
    rights = {*ALL_CAPABILITIES, *(right for tool in toolset.tools for right in tool.permissions)}
    context = ToolContext(tenant="bakery", user="ada", capabilities=frozenset(rights), scope=scope, turn="t1")
    return admit_call(toolset, make_call(name, arguments), context)


def admit(scope: str, name: str, arguments: Any, generation: EditorGeneration = NEWEST_GENERATION) -> Any:
    admitted = admit_with_all_rights(scope, name, arguments, generation)
    return admitted.error if isinstance(admitted, ToolOutput) else admitted.arguments


@pytest.mark.parametrize(("scope", "name"), NEWEST_SCHEMAS)
def test_the_newest_editor_is_offered_the_schemas_it_has(scope: str, name: str) -> None:
    tool = get_toolset(scope, NEWEST_GENERATION).find_tool(name)
    assert tool is not None
    assert tool.input_schema == NEWEST_SCHEMAS[scope, name]
    assert list(tool.input_schema["properties"]) == list(NEWEST_SCHEMAS[scope, name]["properties"])


@pytest.mark.parametrize("scope", list_scopes_with_tools())
def test_a_generation_changes_no_other_tool_and_no_order(scope: str) -> None:
    oldest, newest = get_toolset(scope, OLDEST_GENERATION).tools, get_toolset(scope, NEWEST_GENERATION).tools
    assert [tool.name for tool in newest] == [tool.name for tool in oldest]
    assert {(scope, new.name) for new, old in zip(newest, oldest, strict=True) if new is not old} == {
        changed for changed in NEWEST_SCHEMAS if changed[0] == scope
    }
    for new, old in zip(newest, oldest, strict=True):
        assert (new.permissions, new.access, new.execution) == (old.permissions, old.access, old.execution)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("site_apply_css", {"operation": "merge", "css": "p { top: 0 }"}),
        ("site_apply_css", {"operation": "replace", "css": "p { top: 0 }"}),
        ("site_apply_css", {"operation": "delete", "selectors": [".a", ".b"]}),
        ("site_apply_css", {"operation": "remove-properties", "selectors": [".a"], "properties": ["--x", "top"]}),
        (
            "site_write_code_asset",
            {"path": "a.js", "type": "script", "content": "", "dependencies": {"d3": "^7"}, "runtime": {"x": 1}},
        ),
    ],
)
def test_the_newest_editor_receives_every_member_of_a_call(name: str, arguments: dict[str, Any]) -> None:
    assert admit("site", name, arguments) == arguments


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"css": "p { top: 0 }"}, "operation: Expected required property"),
        ({"operation": "paint", "css": "p {}"}, "operation: Expected union value"),
        ({"operation": "merge"}, "Operation merge needs css"),
        ({"operation": "replace", "selectors": [".a"]}, "Operation replace needs css"),
        ({"operation": "delete", "css": ".a {}"}, "Operation delete needs selectors"),
        ({"operation": "remove-properties"}, "Operation remove-properties needs selectors and properties"),
        ({"operation": "remove-properties", "selectors": [".a"], "properties": ["a b"]}, "properties[0]: Expected"),
        ({"operation": "delete", "selectors": [".a", ".a"]}, "selectors: Expected array elements to be unique"),
        ({"operation": "delete", "selectors": []}, "selectors: Expected array length"),
        ({"operation": "delete", "selectors": [".a"], "force": True}, "force: Unexpected property"),
    ],
)
def test_a_css_operation_without_what_it_needs_is_refused_with_the_reason(
    arguments: dict[str, Any], error: str
) -> None:
    assert error in admit("site", "site_apply_css", arguments)


@pytest.mark.parametrize(
    ("scope", "name", "arguments", "member", "generation"),
    [
        ("site", "applyCss", {"css": "p { top: 0 }", "operation": "replace"}, "operation", OLDEST_GENERATION),
        ("site", "applyCss", {"css": "p { top: 0 }", "selectors": [".a"]}, "selectors", OLDEST_GENERATION),
        (
            "site",
            "write_code_asset",
            {"path": "a.js", "type": "script", "content": "", "dependencies": {"d3": "^7"}},
            "dependencies",
            OLDEST_GENERATION,
        ),
        ("content", "create_document", {"tableId": "t", "status": "published"}, "status", NEWEST_GENERATION),
    ],
)
def test_a_member_that_only_another_generation_has_is_refused_and_not_dropped(
    scope: str, name: str, arguments: dict[str, Any], member: str, generation: EditorGeneration
) -> None:
    assert f"{member}: This release of the editor does not have it" in admit(scope, name, arguments, generation)
    del arguments[member]
    assert isinstance(admit(scope, name, arguments, generation), dict)


@pytest.mark.parametrize(
    ("name", "arguments", "ignored"),
    [
        ("site_insert_html", {"parentId": "a", "html": "b", "position": "before"}, ["position"]),
        ("site_insert_html", {"parentId": "a", "html": "b", "position": None, "note": ""}, []),
        ("site_insert_html", {"arguments": {"parentId": "a", "html": "b", "position": 1}}, ["position"]),
        ("site_insert_html", '{"parentId": "a", "html": "b", "where": {}}', ["where"]),
        ("site_render_snapshot", {"captureScreenshot": True}, []),
        ("site_update_node_props", {"nodeId": "a", "patch": {"anything": 1}}, []),
        ("site_apply_css", {"css": "p { top: 0 }", "operation": "merge"}, []),
    ],
)
def test_a_member_that_no_release_has_is_dropped_and_named(name: str, arguments: Any, ignored: list[str]) -> None:
    admitted = admit_with_all_rights("site", name, arguments, OLDEST_GENERATION)
    assert isinstance(admitted, AdmittedCall), admitted
    assert list(admitted.ignored_members) == ignored


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (ToolOutput.success({"a": 1}), ToolOutput.success({"a": 1, "ignoredInput": ["x"]})),
        (ToolOutput.success(), ToolOutput.success({"ignoredInput": ["x"]})),
        (ToolOutput.success([1]), ToolOutput.success({"result": [1], "ignoredInput": ["x"]})),
        (ToolOutput.failure("No."), ToolOutput.failure("No. Ignored input: x.")),
    ],
)
def test_the_model_reads_what_was_ignored(output: ToolOutput, told: ToolOutput) -> None:
    assert add_ignored_members(output, ("x",)) == told
    assert add_ignored_members(output, ()) is output
