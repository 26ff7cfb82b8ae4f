"""A manifest is validated strictly, and the first wrong member is named."""

import json
from typing import Any

import pytest

from fermata.remote_tools.tool_manifest import MAX_TIMEOUT_MS, InvalidManifest, normalize_tool_name, parse_manifest
from tests.unit.remote_tools.manifests import ABSENT, make_manifest, make_manifest_json


def nest(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"capability": "execute"}, "capability"),
        ({"retryPolicy": {"maxAttempts": 0}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"maxAttempts": 6}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"maxAttempts": 1.5}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"maxAttempts": True}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": {"maxAttempts": "2"}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": {}}, "retryPolicy.maxAttempts"),
        ({"retryPolicy": ABSENT}, "retryPolicy"),
        ({"retryPolicy": {"maxAttempts": 2, "backoffMs": -1}}, "retryPolicy.backoffMs"),
        ({"retryPolicy": {"maxAttempts": 2, "backoff": 1}}, "retryPolicy.backoff"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": 5}, "name"),
        ({"description": ""}, "description"),
        ({"idempotent": "yes"}, "idempotent"),
        ({"idempotent": 1}, "idempotent"),
        ({"enabled": "true"}, "enabled"),
        ({"outputSchema": ABSENT}, "outputSchema"),
        ({"outputSchema": []}, "outputSchema"),
        ({"inputSchema": "object"}, "inputSchema"),
        ({"inputSchema": {"type": "array"}}, "inputSchema"),
        ({"inputSchema": nest(40)}, "inputSchema"),
        ({"timeoutMs": 249}, "timeoutMs"),
        ({"timeoutMs": "3000"}, "timeoutMs"),
        ({"timeoutMs": float("nan")}, "timeoutMs"),
        ({"timeoutMs": True}, "timeoutMs"),
        ({"endpoint": "https://vendor.example"}, "endpoint"),
        ({"description": "x" * 30_000}, "manifest"),
    ],
)
def test_a_wrong_member_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        parse_manifest(make_manifest_json(**changes))
    assert refused.value.field == field
    assert refused.value.details == {"field": field}
    assert refused.value.message.startswith(f"The manifest is invalid: {field} ")


@pytest.mark.parametrize("value", [None, [], "pim.getProduct", 5])
def test_a_manifest_is_an_object(value: Any) -> None:
    with pytest.raises(InvalidManifest, match="manifest has to be an object"):
        parse_manifest(value)


@pytest.mark.parametrize(
    "changes",
    [
        {"retryPolicy": {"maxAttempts": 5, "backoffMs": 150}},
        {"timeoutMs": 250},
        {"timeoutMs": 250.5},
        {"enabled": False},
        {"capability": "write"},
        {"outputSchema": {}},
        {"inputSchema": nest(10)},
    ],
)
def test_a_valid_manifest_is_read_and_written_alike(changes: dict[str, Any]) -> None:
    manifest = make_manifest(**changes)
    assert parse_manifest(manifest.to_wire()) == manifest


def test_a_timeout_without_bound_is_accepted_and_counts_as_the_longest_allowed() -> None:
    assert make_manifest(timeoutMs=9_999_999).timeout_seconds == MAX_TIMEOUT_MS / 1000


def test_whole_numbers_are_written_as_such() -> None:
    assert '"timeoutMs": 3000,' in json.dumps(make_manifest().to_wire())


def test_names_are_compared_without_case_and_blanks() -> None:
    assert normalize_tool_name(" Pim.GetProduct ") == normalize_tool_name("pim.getproduct")
    assert make_manifest(name=" pim.getProduct ").name == "pim.getProduct"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": []}, "$.properties has to be an object"),
        ({"properties": {"a": 1}}, "$.properties.a has to be a schema"),
        ({"properties": {"a": {"type": "strng"}}}, "$.properties.a.type has to be one or several of"),
        ({"properties": {"a": {"type": []}}}, "$.properties.a.type"),
        ({"properties": {"a": {"items": {"type": None}}}}, "$.properties.a.items.type"),
        ({"properties": {"a": {"items": [True, 1]}}}, "$.properties.a.items[1] has to be a schema"),
        ({"properties": {"a": {"enum": []}}}, "$.properties.a.enum"),
        ({"additionalProperties": {"required": "a"}}, "$.additionalProperties.required has to be a list of names"),
        ({"required": [1]}, "$.required"),
        ({"anyOf": []}, "$.anyOf has to be a list of at least one schema"),
        ({"oneOf": [{"type": "objekt"}]}, "$.oneOf[0].type"),
    ],
)
@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
def test_a_schema_that_providers_would_refuse_with_the_whole_prompt_is_refused(
    schema: dict[str, Any], problem: str, member: str
) -> None:
    with pytest.raises(InvalidManifest) as refused:
        make_manifest(**{member: schema})
    assert (refused.value.field, problem in refused.value.message) == (member, True)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}, "b": True}, "required": ["a"]},
        {"properties": {"a": {"type": "array", "items": [{"type": "number"}]}}, "$ref": "#/x", "pattern": "("},
        {"additionalProperties": {"type": "string"}, "allOf": [{"required": []}]},
    ],
)
def test_any_json_schema_is_accepted(schema: dict[str, Any]) -> None:
    assert make_manifest(inputSchema=schema).input_schema == schema


@pytest.mark.parametrize("name", ["a\nb", "\u200b", "a\u202eb", "a\u0000b"])
def test_a_name_with_characters_that_nobody_can_see_is_refused(name: str) -> None:
    with pytest.raises(InvalidManifest, match="name has characters that nobody can see"):
        make_manifest(name=name)
