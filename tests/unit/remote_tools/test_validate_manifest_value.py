"""Values are validated against the keywords that manifests may rely on; the first violation is named by its path."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from fermata.tools.schema.validate_manifest_value import find_schema_violation, measure_schema_depth
from tests.growth.measure_growth import MAX_GROWTH, measure_growth

CLOSED_QUERY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("schema", "value", "path"),
    [
        (CLOSED_QUERY, {"query": "m", "extra": True}, "$.extra"),
        (CLOSED_QUERY, {"foo": 1}, "$.query"),
        (CLOSED_QUERY, {"query": "m", "limit": "3"}, "$.limit"),
        (CLOSED_QUERY, {"query": "m", "limit": True}, "$.limit"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1], "$[1]"),
        ({"type": "string", "enum": ["a", "b"]}, "x", "$"),
        ({"enum": [1]}, True, "$"),
        ({"type": "object"}, None, "$"),
        ({"type": "object"}, [], "$"),
        ({"type": ["string", "null"]}, 5, "$"),
        ({"type": "integer"}, 1.5, "$"),
        ({"type": "integer"}, float("inf"), "$"),
        ({"required": [["a"], {}, None, 7, "a"]}, {}, "$.a"),
        ({"properties": {"a": {"items": {"required": ["b"]}}}}, {"a": [{"b": 1}, {}]}, "$.a[1].b"),
    ],
)
def test_a_violation_is_named_by_its_path(schema: dict[str, Any], value: Any, path: str) -> None:
    violation = find_schema_violation(schema, value)
    assert violation is not None
    assert violation.path == path


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, 5),
        ({"type": "string", "minLength": 3}, ""),
        ({"type": "string", "pattern": "("}, "x"),
        ({"minimum": "not a number", "$ref": "#/nowhere", "allOf": 5}, 1),
        ({"type": "integer"}, 3.0),
        ({"type": "integer"}, 10**400),
        ({"type": ["string", "null"]}, None),
        ({"type": "unheard of"}, 1),
        ({"enum": [1]}, 1.0),
        ({"required": "query", "properties": [], "items": False, "enum": "abc"}, {"query": []}),
        ({"additionalProperties": True, "properties": {"a": True}}, {"a": 1, "b": 2}),
    ],
)
def test_other_keywords_are_ignored(schema: dict[str, Any], value: Any) -> None:
    assert find_schema_violation(schema, value) is None


def test_depth_is_measured_up_to_the_limit() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    assert measure_schema_depth({"a": [1]}) == 2
    assert measure_schema_depth(value, 10) == 11


def test_twice_the_items_take_about_twice_the_time() -> None:
    def measure(count: int) -> float:
        value = [{"query": "m"}] * count
        started = time.process_time()
        assert find_schema_violation({"items": CLOSED_QUERY}, value) is None
        return time.process_time() - started

    small = min(measure(5_000) for _ in range(5))
    assert min(measure(10_000) for _ in range(5)) < 4 * small


@pytest.mark.parametrize(
    "prepare",
    [
        lambda size: ({"items": {"enum": list(range(size))}}, [size - 1] * size),
        lambda size: ({"items": {"type": ["null"] * size + ["integer"]}}, [None] * size),
        lambda size: ({"items": {"enum": [{"n": number} for number in range(size)]}}, [{"n": size - 1}] * size),
        lambda size: ({"properties": {"n" * size: {"items": {"type": "integer"}}}}, {"n" * size: [1] * size}),
        lambda size: ({"properties": {"a": {"enum": [[number] for number in range(size)]}}}, {"a": [size - 1]}),
    ],
    ids=["numbers", "types", "objects", "names", "once"],
)
def test_a_schema_and_a_value_that_are_twice_as_large_take_twice_the_time(prepare: Any) -> None:
    def prepare_work(size: int) -> Callable[[], object]:
        schema, value = prepare(size)
        return lambda: find_schema_violation(schema, value)

    assert measure_growth(prepare_work, 500, 16_000) <= MAX_GROWTH


@pytest.mark.parametrize(
    ("choices", "value", "fits"),
    [
        ([1], 1.0, True),
        ([1], True, False),
        ([True], 1, False),
        ([{"a": [1]}], {"a": [1.0]}, True),
        ([{"a": [1]}], {"a": [True]}, False),
        ([["a", "b"]], ["b", "a"], False),
        ([None], None, True),
        (["1"], 1, False),
        ([], None, False),
    ],
)
def test_values_are_compared_as_json_compares_them(choices: list[Any], value: Any, fits: bool) -> None:
    assert (find_schema_violation({"enum": choices}, value) is None) == fits
