"""Arguments are coerced where their meaning is plain, and refused with errors that a model can act on."""

import copy
import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from fermata.tools.schema.coercion import InvalidToolInput, coerce_arguments
from fermata.tools.schema.json_schema import build_json_schema
from fermata.tools.schema.validation import iter_schema_errors, matches_schema
from fermata.tools.tool import ToolInput
from tests.unit.tools.builders import SITE_INPUT_MODELS, SITE_TOOL_CONTRACT, contract_cases, get_site_tool


def make_object_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(("case", "case_input", "expected"), contract_cases("toolInputValidation"))
def test_tool_input_is_validated_like_the_editor_validates_it(case: str, case_input: Any, expected: Any) -> None:
    schema = SITE_INPUT_MODELS[case_input["tool"]]
    if isinstance(expected, dict):
        arguments = coerce_arguments(get_site_schema(case_input["tool"]), case_input["input"])
        assert {key: arguments[key] for key in expected} == expected, case
        assert schema.from_wire(arguments).to_wire().keys() == arguments.keys()
    else:
        member = expected.split("'")[1]
        with pytest.raises(InvalidToolInput, match=member):
            coerce_arguments(get_site_schema(case_input["tool"]), case_input["input"])


def get_site_schema(prefixed: str) -> dict[str, Any]:
    return build_json_schema(SITE_INPUT_MODELS[prefixed])


def test_the_error_names_every_wrong_member_and_its_error() -> None:
    with pytest.raises(InvalidToolInput) as error_info:
        coerce_arguments(get_site_tool("insertHtml").input_schema, {"parentId": "", "index": -1})
    assert str(error_info.value) == (
        "html: Expected required property; parentId: Expected string length greater or equal to 1; "
        "index: Expected integer to be greater or equal to 0, got -1"
    )


def test_the_error_names_a_member_inside_the_intended_variant() -> None:
    with pytest.raises(InvalidToolInput, match=r"^document\.id: Expected required property$"):
        coerce_arguments(get_site_tool("read_document").input_schema, {"document": {"type": "page"}})


def test_the_error_lists_the_variants_of_a_union() -> None:
    with pytest.raises(InvalidToolInput, match=r'Expected union value \(one of "colors", "typography", .*got "Colors"'):
        coerce_arguments(get_site_tool("list_tokens").input_schema, {"family": "Colors"})


def test_all_errors_of_a_nested_input_are_named_at_once() -> None:
    sent = {"tokens": [{"slug": "", "lightValue": 7}, {"darkModeEnabled": "maybe"}, 3]}
    with pytest.raises(InvalidToolInput) as error_info:
        coerce_arguments(get_site_tool("set_color_tokens").input_schema, sent)
    assert str(error_info.value).split("; ") == [
        "tokens[0].slug: Expected string length greater or equal to 1",
        "tokens[1].slug: Expected required property",
        "tokens[1].lightValue: Expected required property",
        'tokens[1].darkModeEnabled: Expected boolean, got "maybe"',
        "tokens[2]: Expected object, got 3",
    ]


def test_an_error_repeated_very_often_is_counted_instead_of_listed() -> None:
    schema = make_object_schema(items={"type": "array", "items": {"type": "integer"}})
    with pytest.raises(InvalidToolInput, match=r"items\[99\]: .*; and 3 more$"):
        coerce_arguments(schema, {"items": ["a"] * 103})


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(InvalidToolInput) as error_info:
        coerce_arguments(make_object_schema(n={"type": "integer"}), {"n": "x" * 10_000})
    assert len(str(error_info.value)) < 120


def test_a_list_of_arguments_is_refused() -> None:
    ((_, _, arguments),) = [case for case in contract_cases("parseToolArguments") if case[0] == "C042"]
    with pytest.raises(InvalidToolInput, match="Expected object"):
        coerce_arguments(get_site_tool("getNodeHtml").input_schema, arguments)


@pytest.mark.parametrize("member", ["index", "part", "family", "document"])
def test_null_is_not_the_same_as_absent(member: str) -> None:
    for contract in SITE_TOOL_CONTRACT:
        if member in contract["inputSchema"]["properties"]:
            assert any(
                expected_error.startswith(f"{member}: Expected")
                for expected_error in iter_schema_errors(contract["inputSchema"], {member: None})
            )


@pytest.mark.parametrize(
    ("kind", "sent", "expected"),
    [
        ("integer", "2", 2),
        ("integer", " -7 ", -7),
        ("integer", 2.7, 2),
        ("integer", "2.7", 2),
        ("integer", "1e2", 100),
        ("integer", True, 1),
        ("number", "2.50", 2.5),
        ("number", 3, 3),
        ("string", 7, "7"),
        ("string", 7.0, "7"),
        ("string", 2.5, "2.5"),
        ("string", False, "false"),
        ("boolean", "TRUE", True),
        ("boolean", "0", False),
        ("boolean", 1, True),
        ("boolean", 0.0, False),
    ],
)
def test_scalars_are_coerced_to_the_type_of_the_schema(kind: str, sent: Any, expected: Any) -> None:
    coerced = coerce_arguments(make_object_schema(x={"type": kind}), {"x": sent})["x"]
    assert (coerced, type(coerced)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("integer", "2px"),
        ("integer", ""),
        ("integer", "0x10"),
        ("integer", "9e999"),
        ("integer", "1" * 5000),
        ("integer", float("nan")),
        ("integer", []),
        ("number", "Infinity"),
        ("number", float("inf")),
        ("string", None),
        ("string", {"a": 1}),
        ("boolean", "yes"),
        ("boolean", 2),
        ("array", None),
        ("object", "{"),
        ("object", "[1]"),
    ],
)
def test_a_value_that_cannot_be_coerced_is_refused(kind: str, sent: Any) -> None:
    with pytest.raises(InvalidToolInput, match=f"x: Expected {kind}"):
        coerce_arguments(make_object_schema(x={"type": kind}), {"x": sent})


def test_a_single_value_becomes_a_list_of_one() -> None:
    schema = make_object_schema(ids={"type": "array", "items": {"type": "string"}})
    assert coerce_arguments(schema, {"ids": 5}) == {"ids": ["5"]}


def test_a_constant_is_recognised_by_its_text() -> None:
    schema = make_object_schema(level={"anyOf": [{"const": 1, "type": "integer"}, {"const": 2, "type": "integer"}]})
    assert coerce_arguments(schema, {"level": "2"}) == {"level": 2}


def test_a_value_that_fits_a_union_is_not_changed() -> None:
    schema = make_object_schema(ratio={"anyOf": [{"type": "number"}, {"type": "string"}]})
    assert coerce_arguments(schema, {"ratio": "1.25"}) == {"ratio": "1.25"}


def test_defaults_are_added_for_absent_members() -> None:
    class Page(ToolInput):
        limit: Annotated[int, Field(ge=1)] = 25

    assert coerce_arguments(build_json_schema(Page), {}) == {"limit": 25}
    assert coerce_arguments(build_json_schema(Page), {"limit": "3"}) == {"limit": 3}


def test_members_of_a_map_are_kept_with_any_name() -> None:
    schema = make_object_schema(patch={"type": "object", "patternProperties": {"^(.*)$": {}}})
    assert coerce_arguments(schema, {"patch": {"a": None, "b": [1]}, "c": 1}) == {"patch": {"a": None, "b": [1]}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["2", "page", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
member_names = st.sampled_from(
    ["parentId", "html", "index", "document", "part", "family", "type", "id", "kind", "other"]
)
arguments = json_values | st.dictionaries(
    member_names, json_values | st.dictionaries(member_names, json_values, max_size=3), max_size=4
)


def coerce_or_describe_error(schema: dict[str, Any], sent: Any) -> dict[str, Any] | str:
    try:
        return coerce_arguments(schema, sent)
    except InvalidToolInput as refused:
        return str(refused)


@given(prefixed=st.sampled_from(sorted(SITE_INPUT_MODELS)), sent=arguments)
def test_any_value_either_fits_after_coercion_or_is_refused_with_a_sentence(prefixed: str, sent: Any) -> None:
    schema, before = get_site_schema(prefixed), copy.deepcopy(sent)
    outcome = coerce_or_describe_error(schema, sent)
    if isinstance(outcome, str):
        assert "Expected" in outcome
    else:
        assert matches_schema(schema, outcome)
        assert outcome.keys() <= schema["properties"].keys()
        assert coerce_arguments(schema, outcome) == outcome
        assert SITE_INPUT_MODELS[prefixed].from_wire(outcome)
    assert repr(sent) == repr(before)


@given(node=st.text(min_size=1), html=st.text(min_size=1), index=st.none() | st.integers(min_value=0))
def test_arguments_that_fit_are_not_changed(node: str, html: str, index: int | None) -> None:
    sent = {"parentId": node, "html": html} | ({} if index is None else {"index": index})
    coerced = coerce_arguments(get_site_tool("insertHtml").input_schema, sent)
    assert json.dumps(coerced) == json.dumps(sent)


@pytest.mark.parametrize(
    ("schema", "value", "expected_error"),
    [
        ({"type": "string", "maxLength": 2}, "abc", "Expected string length less or equal to 2"),
        ({"type": "string", "pattern": "^a"}, "b", 'Expected string to match ^a, got "b"'),
        ({"type": "array", "minItems": 1}, [], "Expected array length to be greater or equal to 1"),
        ({"type": "array", "maxItems": 1}, [1, 2], "Expected array length to be less or equal to 1"),
        ({"type": "array", "uniqueItems": True}, [{"a": 1}, {"a": 1}], "Expected array elements to be unique"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "Expected number to be greater than 0, got 0"),
        ({"type": "number", "exclusiveMaximum": 1}, 1, "Expected number to be less than 1, got 1"),
        ({"const": 1, "type": "integer"}, True, "Expected 1, got true"),
        ({"type": "boolean"}, 1, "Expected boolean, got 1"),
    ],
)
def test_every_schema_keyword_has_its_own_error(schema: dict[str, Any], value: Any, expected_error: str) -> None:
    assert list(iter_schema_errors(schema, value)) == [expected_error]


@pytest.mark.parametrize("nothing", [None, []])
def test_no_arguments_may_be_null_or_an_empty_list_for_a_tool_that_requires_none(nothing: Any) -> None:
    assert coerce_arguments(make_object_schema(), nothing) == {}


def test_an_object_or_list_that_is_encoded_as_text_is_read() -> None:
    schema = make_object_schema(
        document=make_object_schema(id={"type": "string"}), tags={"type": "array", "items": {"type": "string"}}
    )
    sent = {"document": '{"id": "index"}', "tags": '["a", "b"]'}
    assert coerce_arguments(schema, sent) == {"document": {"id": "index"}, "tags": ["a", "b"]}
    assert coerce_arguments(schema, {"tags": "[x"}) == {"tags": ["[x"]}


PLAIN_INPUTS: dict[str, tuple[Any, Any]] = {
    "a list of the arguments": ([{"o": {"n": 1}}], {"o": {"n": 1}}),
    "text of a list of the arguments": ('[{"n": 1}]', {"n": 1}),
    "a list of the only object": ({"o": [{"n": 1}]}, {"o": {"n": 1}}),
    "text of an object with apostrophes": ({"o": "{'n': 1}"}, {"o": {"n": 1}}),
    "text of an object that may be something else": ({"u": '{"n": 1}'}, {"u": {"n": 1}}),
    "text of a list": ({"l": '["a", "b"]'}, {"l": ["a", "b"]}),
    "texts of objects in text of a list": ({"lo": '["{\\"n\\": 2}"]'}, {"lo": [{"n": 2}]}),
    "half a character in text of an object": ({"o": '{"s": "\\ud83d"}'}, {"o": {"s": "\ufffd"}}),
    "arguments in a description of the call": ({"name": "x", "arguments": {"n": 1}}, {"n": 1}),
    "arguments as text in a description of the call": ({"type": "function", "parameters": '{"n": 1}'}, {"n": 1}),
    "a member of the tool that is called input": ({"input": {"n": 1}}, {"input": {"n": 1}}),
    **{f"nothing as {nothing!r}": (nothing, {}) for nothing in (None, [], "", "null", "None", " undefined ")},
}


@pytest.mark.parametrize(("name", "sent", "expected"), [(name, *case) for name, case in PLAIN_INPUTS.items()])
def test_arguments_with_a_plain_meaning_are_taken(name: str, sent: Any, expected: Any) -> None:
    inner = make_object_schema(n={"type": "integer"}, s={"type": "string"})
    schema = make_object_schema(
        n={"type": "integer"},
        o=inner,
        u={"anyOf": [{"type": "integer"}, inner]},
        l={"type": "array", "items": {"type": "string"}},
        lo={"type": "array", "items": inner},
        **({"input": inner} if "called input" in name else {}),
    )
    assert coerce_arguments(schema, sent) == expected


@pytest.mark.parametrize("sent", [[{"n": 1}, {"n": 2}], [1], "words", {"arguments": {"n": 1}, "input": {"n": 2}}])
def test_arguments_that_may_mean_several_things_are_refused(sent: Any) -> None:
    with pytest.raises(InvalidToolInput):
        coerce_arguments({**make_object_schema(n={"type": "integer"}), "required": ["n"]}, sent)
