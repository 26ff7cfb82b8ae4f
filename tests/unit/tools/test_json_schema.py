"""The JSON Schemas of tool inputs are built from pydantic models."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from fermata.agents.registry import get_toolset
from fermata.domain.agent_ids import SCOPES
from fermata.tools.schema.json_schema import build_json_schema
from fermata.tools.site.definitions.design_tokens import SetTypeScaleInput
from fermata.tools.site.definitions.pages import SetPageTemplateInput
from fermata.tools.tool import NoInput, ToolInput
from tests.unit.tools.builders import SITE_TOOL_CONTRACT, get_site_tool
from tests.unit.tools.pydantic_schema import build_pydantic_schema


@pytest.mark.parametrize("contract", SITE_TOOL_CONTRACT, ids=lambda contract: contract["name"])
def test_each_site_tool_has_exactly_the_schema_of_the_editor(contract: dict[str, Any]) -> None:
    schema = get_site_tool(contract["name"]).input_schema
    assert schema == contract["inputSchema"]
    assert list(schema["properties"]) == contract["propertyOrder"]


@pytest.mark.parametrize("scope", sorted({*SCOPES} - {"cms", "studio"}))  # whose schemas are those of their contract
def test_every_schema_equals_pydantics_schema_of_the_same_model(scope: str) -> None:
    for tool in get_toolset(scope).tools:
        assert tool.input_schema == build_pydantic_schema(tool.input_model), tool.name


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Spot(ToolInput):
    x: Annotated[float, Field(gt=0, lt=1)]
    y: Annotated[int, Field(ge=-1, le=1)] = 0


class Everything(ToolInput):
    text: Annotated[str, Field(min_length=1, max_length=9, pattern="^a", description="A text.")]
    optional: Annotated[str, Field(max_length=3)] | None = None
    bounded: Annotated[int | None, Field(ge=0)] = None
    on: bool = False
    colour: Colour = Colour.RED
    mixed: Literal["a", 1, True] | None = None
    either: float | str
    spot: Annotated[Spot, Field(description="Where.")]
    spots: Annotated[tuple[Spot, ...], Field(min_length=1, max_length=5)]
    tags: set[str] = Field(default_factory=set)
    sizes: list[Annotated[int, Field(ge=1)]] = Field(default_factory=list)
    map: dict[str, Annotated[str, Field(min_length=1)]]
    anything: Any
    rest: dict[str, Any] | None = None
    steps: tuple[str, ...] = ("s", "m")
    unique: Annotated[tuple[str, ...], Field(json_schema_extra={"uniqueItems": True})] = ()


def test_a_model_with_every_kind_of_member_has_pydantics_schema() -> None:
    assert build_json_schema(Everything) == build_pydantic_schema(Everything)


def test_a_type_without_a_plain_schema_is_refused_by_its_name() -> None:
    class Odd(ToolInput):
        when: datetime

    with pytest.raises(TypeError, match=r"cannot hold a .*datetime"):
        build_json_schema(Odd)


def test_a_tool_without_input_takes_an_empty_object() -> None:
    assert build_json_schema(NoInput) == {"type": "object", "properties": {}}


def test_nested_models_are_inlined_and_unions_are_any_of() -> None:
    kind = {"const": "postTypes", "type": "string"}
    slugs = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
    targets = build_json_schema(SetPageTemplateInput)["properties"]["target"]["anyOf"]
    assert targets[1] == {
        "type": "object",
        "properties": {"kind": kind, "tableSlugs": slugs},
        "required": ["kind", "tableSlugs"],
    }


def test_a_union_of_plain_types_keeps_its_order() -> None:
    end = build_json_schema(SetTypeScaleInput)["properties"]["min"]
    assert end["properties"]["scaleRatio"] == {"anyOf": [{"type": "number"}, {"type": "string"}]}


def test_a_map_becomes_pattern_properties() -> None:
    class Patch(ToolInput):
        patch: dict[str, Any]
        sizes: dict[str, int]

    assert build_json_schema(Patch)["properties"] == {
        "patch": {"type": "object", "patternProperties": {"^(.*)$": {}}},
        "sizes": {"type": "object", "patternProperties": {"^(.*)$": {"type": "integer"}}},
    }


def test_descriptions_and_defaults_of_members_are_in_the_schema_but_docstrings_are_not() -> None:
    class Inner(ToolInput):
        """For readers of the code."""

        a: int

    class Outer(ToolInput):
        """For readers of the code."""

        inner: Annotated[Inner, Field(description="Where.")]
        level: Annotated[Literal["h1", "h2"], Field(description="Which.")] = "h2"

    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "description": "Where."}
    level = {"anyOf": [{"const": "h1", "type": "string"}, {"const": "h2", "type": "string"}]}
    assert build_json_schema(Outer) == {
        "type": "object",
        "properties": {"inner": inner, "level": {**level, "description": "Which.", "default": "h2"}},
        "required": ["inner"],
    }


class Branch(BaseModel):
    children: list["Branch"] = []


def test_a_model_that_contains_itself_has_no_schema() -> None:
    with pytest.raises(TypeError, match="cannot contain itself: Branch"):
        build_json_schema(Branch)


def test_a_tuple_of_fixed_length_has_no_schema() -> None:
    class Pair(ToolInput):
        pair: tuple[int, str]

    with pytest.raises(TypeError, match="list or an object"):
        build_json_schema(Pair)
