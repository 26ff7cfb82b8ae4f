"""Values are checked against the fields of their model: errors keep content from being written, warnings do not."""

from typing import Any

import pytest

from fermata.content.fields import NUMBER_TYPES, FieldDefinition, FieldType
from fermata.content.validation.content_problem import is_valid
from fermata.content.validation.script_addresses import find_script_links
from fermata.content.validation.unique_values import UniqueValues
from fermata.content.validation.validate_content import MAX_NESTED_FIELDS, validate_content, validate_dictionary


def read_fields(fields: dict[str, Any]) -> dict[str, FieldDefinition]:
    return {name: FieldDefinition.from_wire(definition) for name, definition in fields.items()}


def find_problems(
    content: dict[str, Any],
    fields: dict[str, Any],
    entries: dict[str, dict[str, Any]] | None = None,
    entry_id: str = "",
) -> list[tuple[str, str, str]]:
    known = read_fields(fields)
    unique = UniqueValues(entries, known) if entries is not None else None
    problems = validate_content(content, known, entry_id=entry_id, unique_values=unique)
    assert all(problem.message for problem in problems)
    return [(problem.field, problem.severity, problem.kind) for problem in problems]


G110_ENTRIES: dict[str, dict[str, Any]] = {"entry-1": {"title": "Hello", "slug": "hello-world"}, "entry-2": {}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str, str]]]] = {
    "g112-estimated types and broken patterns only warn": (
        {"email": "not-an-email", "website": "ftp://example.com", "code": "ABC-123"},
        {"email": {"type": "email"}, "website": {"type": "url"}, "code": {"type": "code", "pattern": "["}},
        [("email", "warning", "email"), ("website", "warning", "url"), ("code", "warning", "bad_pattern")],
    ),
    "g114-one of several models": (
        {"related": "entry-1"},
        {"related": {"type": "relation", "model": ["posts", "products"]}},
        [("related", "error", "relation_shape")],
    ),
    "g115-too few relations": (
        {"rel": ["a"]},
        {"rel": {"type": "relations", "model": "posts", "min": 2, "max": 3}},
        [("rel", "error", "count")],
    ),
    "g116-relations are a list": (
        {"rel": "a"},
        {"rel": {"type": "relations", "model": "posts"}},
        [("rel", "error", "array")],
    ),
    "g117-too short": ({"t": "a"}, {"t": {"type": "string", "min": 3}}, [("t", "error", "range")]),
    "g120-another pattern": (
        {"c": "abc"},
        {"c": {"type": "string", "pattern": "^[A-Z]+$"}},
        [("c", "error", "pattern")],
    ),
    "g121-a secret": ({"t": "key sk_live_abcdefghijklmnop"}, {"t": {"type": "text"}}, [("t", "error", "secret")]),
    "g122-absent": ({}, {"t": {"type": "text", "max": 5}}, []),
    "g123-a member without a field": ({"zzz": 1}, {"t": {"type": "text"}}, []),
    "g126-a required relation": (
        {},
        {"r": {"type": "relation", "model": "a", "required": True}},
        [("r", "error", "required")],
    ),
    "a relation to another model": (
        {"r": {"model": "authors", "ref": "x"}},
        {"r": {"type": "relation", "model": ["posts", "products"]}},
        [("r", "error", "relation_target")],
    ),
    "a relation that is a number": (
        {"r": 7},
        {"r": {"type": "relation", "model": "a"}},
        [("r", "error", "relation_shape")],
    ),
    "one wrong relation of several": (
        {"r": ["a", 7]},
        {"r": {"type": "relations", "model": "a"}},
        [("r[1]", "error", "relation_shape")],
    ),
    "not one of the options": (
        {"s": "red"},
        {"s": {"type": "select", "options": ["green", "blue"]}},
        [("s", "error", "options")],
    ),
    "a slug with blanks": ({"s": "A b"}, {"s": {"type": "slug"}}, [("s", "error", "slug")]),
    "a date that no calendar has": ({"d": "2026-02-30"}, {"d": {"type": "date"}}, [("d", "error", "date")]),
    "a time without a date": ({"d": "yesterday"}, {"d": {"type": "datetime"}}, [("d", "error", "datetime")]),
    "half of a whole number": ({"i": 1.5}, {"i": {"type": "integer"}}, [("i", "error", "type")]),
    "more than all": ({"p": 101}, {"p": {"type": "percent"}}, [("p", "error", "percent")]),
    "a rating below its scale": ({"r": 0}, {"r": {"type": "rating", "min": 1, "max": 5}}, [("r", "error", "range")]),
    "a boolean that is a text": ({"b": "true"}, {"b": {"type": "boolean"}}, [("b", "error", "type")]),
    "a number that is a boolean": ({"n": True}, {"n": {"type": "number"}}, [("n", "error", "type")]),
    "a colour of a kind": ({"c": "#12"}, {"c": {"type": "color"}}, [("c", "warning", "color")]),
    "a phone number of words": ({"p": "call me"}, {"p": {"type": "phone"}}, [("p", "warning", "phone")]),
    "another kind of file": (
        {"f": "/a/b.PNG?v=1"},
        {"f": {"type": "image", "accept": "image/webp,.avif"}},
        [("f", "warning", "accept")],
    ),
    "a file of an unknown kind": ({"f": "/a/b.xyz"}, {"f": {"type": "file", "accept": "image/*"}}, []),
    "items of an array": (
        {"a": ["x", 1]},
        {"a": {"type": "array", "items": "string"}},
        [("a[1]", "error", "type")],
    ),
    "members of items": (
        {"a": [{"b": ""}]},
        {"a": {"type": "array", "items": {"type": "object", "fields": {"b": {"type": "string", "required": True}}}}},
        [("a[0].b", "error", "required")],
    ),
    "members of an object": (
        {"o": {"p": "x"}},
        {"o": {"type": "object", "fields": {"p": {"type": "number"}}}},
        [("o.p", "error", "type")],
    ),
    "too many items": ({"a": [1, 2]}, {"a": {"type": "array", "max": 1}}, [("a", "error", "range")]),
    "a secret in a list": (
        {"a": ["ghp_abcdef"]},
        {"a": {"type": "array", "items": "string"}},
        [("a[0]", "error", "secret")],
    ),
    "a pattern that looks ahead": (
        {"c": "a"},
        {"c": {"type": "string", "pattern": "(?=a)a"}},
        [("c", "warning", "bad_pattern")],
    ),
    "words that only look like secrets": ({"t": "the task_list names your api key"}, {"t": {"type": "text"}}, []),
}


@pytest.mark.parametrize(("content", "fields", "problems"), CASES.values(), ids=CASES)
def test_a_value_has_these_problems(content: dict[str, Any], fields: dict[str, Any], problems: list[Any]) -> None:
    assert find_problems(content, fields) == problems


def test_g110_a_required_and_a_unique_field() -> None:
    fields = {
        name: {"type": kind, "required": True, "unique": True} for name, kind in (("title", "string"), ("slug", "slug"))
    }
    problems = find_problems({"title": "", "slug": "hello-world"}, fields, G110_ENTRIES, "entry-2")
    assert problems == [("title", "error", "required"), ("slug", "error", "unique")]
    assert find_problems(G110_ENTRIES["entry-1"], fields, G110_ENTRIES, "entry-1") == []


@pytest.mark.parametrize(("value", "stored"), [("42", 42), (42, "42"), (42.0, 42), (True, "true")])
def test_g124_unique_values_are_compared_as_texts(value: Any, stored: Any) -> None:
    fields = {"n": {"type": "number" if isinstance(value, int | float) else "string", "unique": True}}
    fields["n"]["type"] = "boolean" if isinstance(value, bool) else fields["n"]["type"]
    assert find_problems({"n": value}, fields, {"a": {"n": stored}, "b": {}}, "b") == [("n", "error", "unique")]


def test_g127_a_dictionary_has_texts() -> None:
    problems = validate_dictionary({"hello": 1, "key": "sk_live_abc", "ok": "x"})
    assert [(problem.field, problem.kind) for problem in problems] == [("hello", "type"), ("key", "secret")]
    assert not is_valid(problems)


@pytest.mark.parametrize("field_type", FieldType)
def test_every_type_refuses_what_is_no_value_of_it_and_takes_one_that_is(field_type: FieldType) -> None:
    good = {
        "slug": "a-b",
        "date": "2026-01-31",
        "datetime": "2026-01-31T10:00:00Z",
        "email": "a@b.example",
        "url": "/x",
    }
    good |= {"boolean": False, "relations": [], "array": [], "object": {}, "phone": "+49 (30) 123-45", "color": "red"}
    value: Any = 5 if field_type in NUMBER_TYPES else good.get(field_type, "text")
    assert find_problems({"f": value}, {"f": {"type": field_type}}) == []
    wrong: Any = "text" if not isinstance(value, str) else ["text"]
    assert [severity for _, severity, _ in find_problems({"f": wrong}, {"f": {"type": field_type}})] == ["error"]


def test_what_is_nested_too_deeply_is_refused_and_not_read() -> None:
    definition: dict[str, Any] = {"type": "array"}
    value: list[Any] = []
    for _ in range(MAX_NESTED_FIELDS + 5):
        definition, value = {"type": "array", "items": definition}, [value]
    (problem,) = find_problems({"f": value}, {"f": definition})
    assert problem[1:] == ("error", "depth")


def test_a_field_keeps_members_that_another_program_has_added() -> None:
    stored = {"type": "string", "required": True, "x-hint": "of a plugin"}
    assert FieldDefinition.from_wire(stored).model_dump(mode="json", by_alias=True, exclude_unset=True) == stored


SCRIPTS = [
    *("javascript:alert(1)", " JavaScript:alert(1)", "java\n\tscript:alert(1)", "\x01javascript:1"),
    *("vbscript:x", "data:text/html,<b>", " " * 1000 + "javascript:1", "java" + "\t" * 1000 + "script:1"),
]
ADDRESSES = [
    *("/prices", "#top", "https://a.example/?q=javascript:1", "mailto:a@b.example", "tel:+49", "javascripting"),
    *("?data:x", ""),
]


def find_bad_links(address: str) -> list[tuple[str, str, str]]:
    content = {"data": {"items": [{"label": "x", "href": address}]}, "en": {"s1": {"href": address}}}
    return sorted((one.field, one.severity, one.kind) for one in find_script_links(content))


@pytest.mark.parametrize("address", SCRIPTS)
def test_an_address_that_runs_a_script_is_refused_in_links_and_in_fields_of_addresses(address: str) -> None:
    assert find_bad_links(address) == [("data.items[0].href", "error", "url"), ("en.s1.href", "error", "url")]
    assert find_problems({"f": address}, {"f": {"type": "url"}}) == [("f", "error", "url")]


@pytest.mark.parametrize("address", ADDRESSES)
def test_other_addresses_of_links_are_taken(address: str) -> None:
    assert find_bad_links(address) == []
