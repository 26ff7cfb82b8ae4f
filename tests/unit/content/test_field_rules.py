"""The 27 types of fields, each with values that it takes, refuses and only warns of, as the contract has them."""

from typing import Any

import pytest

from fermata.content.fields import FieldDefinition, FieldType
from fermata.content.validation.validate_content import validate_content

TEXTS = (
    "string", "text", "email", "url", "slug", "color", "phone", "code", "icon", "markdown", "richtext", "date",
    "datetime", "image", "video", "file", "select", "relation",
)  # fmt: skip
NUMBERS = ("number", "integer", "decimal", "percent", "rating")
TAKEN: dict[str, tuple[Any, ...]] = {
    "string": ("a", "İıŞ 😀", "x" * 100_000),
    "text": ("two\nlines",),
    "email": ("ada@example.com", "ada+x@mail.example.co.uk"),
    "url": ("https://example.com/ş?q=1#a", "http://localhost:3000", "/about"),
    "slug": ("rye-bread-2", "a"),
    "color": ("#fff", "#ffffff80", "rgb(1, 2, 3)", "hsl(120 50% 50%)", "tomato"),
    "phone": ("+90 (212) 555-01-02",),
    "code": ("if (a < b) { }",),
    "icon": ("lucide:bread",),
    "markdown": ("# Bread\n\n- rye",),
    "richtext": ("<p>Bread</p>",),
    "number": (0, -1.5, 10**15, 1e21),
    "integer": (0, -7, 3.0, 10**400),
    "decimal": (0.1, 2),
    "percent": (0, 100, 12.5),
    "rating": (0, 4.5),
    "boolean": (True, False),
    "date": ("2028-02-29",),
    "datetime": ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00+03:00", "2026-01-31T09:30:00.123Z"),
    "image": ("media/original/abc.webp", "asset:1"),
    "video": ("media/a.mp4",),
    "file": ("media/a.pdf",),
    "relation": ("a1b2c3d4e5f6",),
    "relations": ([], ["a"], ["a", "b"]),
    "select": ("red",),
    "array": ([], ["a"], [None]),
    "object": ({}, {"a": 1, "more": "b"}),
}
REFUSED: dict[str, tuple[tuple[Any, str], ...]] = {
    "url": (("javascript:alert(1)", "url"), (" JAVA\nscript:alert(1)", "url")),
    "slug": (("Rye Bread", "slug"), ("-a", "slug"), ("a--b", "slug"), ("ş", "slug")),
    "integer": ((1.5, "type"),),
    "percent": ((-0.1, "percent"), (101, "percent")),
    "date": (("2026-02-29", "date"), ("31.01.2026", "date"), ("2026-1-1", "date")),
    "datetime": (("yesterday", "datetime"), ("2026-01-31T25:00:00Z", "datetime")),
    "relation": (({"model": "m", "ref": "a"}, "relation_shape"), (["a"], "relation_shape"), (1, "relation_shape")),
    "relations": (("a", "array"), ({}, "array"), ([1], "relation_shape")),
    "select": (("green", "options"), ("Red", "options")),
    "array": (("a", "type"), ({}, "type")),
    "object": (([], "type"), ("a", "type")),
}
WARNED: dict[str, tuple[tuple[Any, str], ...]] = {
    "email": (("ada", "email"), ("a@b", "email"), ("a b@example.com", "email")),
    "url": (("example.com", "url"), ("ftp://example.com", "url")),
    "color": (("#ff", "color"), ("12", "color")),
    "phone": (("call me", "phone"), ("+1", "phone")),
}
EXTRA: dict[str, dict[str, Any]] = {
    "select": {"options": ["red", "blue"]},
    "relation": {"model": "m"},
    "relations": {"model": "m"},
    "object": {"fields": {"a": {"type": "number"}}},
}


def check(type_name: str, value: Any, **definition: Any) -> list[tuple[str, str, str]]:
    said = {"type": type_name, **EXTRA.get(type_name, {}), **definition}
    problems = validate_content({"f": value}, {"f": FieldDefinition.from_wire(said)})
    assert all(problem.message.endswith((".", "]", ")")) or problem.kind == "pattern" for problem in problems)
    return [(problem.field, problem.severity, problem.kind) for problem in problems]


def test_the_table_has_every_type() -> None:
    assert set(TAKEN) == {one.value for one in FieldType}
    assert len(TAKEN) == 27


@pytest.mark.parametrize("type_name", TAKEN)
def test_a_type_takes_its_values_and_a_required_one_needs_one(type_name: str) -> None:
    for value in TAKEN[type_name]:
        assert check(type_name, value) == check(type_name, value, required=True) == [], value
    assert check(type_name, None) == []
    for nothing in (None, ""):
        assert check(type_name, nothing, required=True) == [("f", "error", "required")]
    if type_name in TEXTS:
        assert check(type_name, "") == []


@pytest.mark.parametrize("type_name", TAKEN)
def test_a_type_refuses_values_of_another_kind_and_warns_of_what_it_can_only_guess(type_name: str) -> None:
    for value, kind in REFUSED.get(type_name, ()):
        assert check(type_name, value) == [("f[0]" if value == [1] else "f", "error", kind)], value
    for value, kind in WARNED.get(type_name, ()):
        assert check(type_name, value) == [("f", "warning", kind)], value
    wrong = {"a": "b"} if type_name != "object" else 7
    assert [one[1] for one in check(type_name, wrong)] == ["error"]
    if type_name in TEXTS and type_name != "relation":
        assert check(type_name, 7) == check(type_name, True) == check(type_name, ["a"]) == [("f", "error", "type")]
    if type_name in NUMBERS:
        assert check(type_name, "7") == check(type_name, True) == check(type_name, [7]) == [("f", "error", "type")]
    if type_name == "boolean":
        assert check(type_name, 1) == check(type_name, "true") == [("f", "error", "type")]


@pytest.mark.parametrize(
    ("type_name", "inside", "below", "above"),
    [
        ("string", ("ab", "😀😀😀"), "a", "abcd"),
        ("markdown", ("ab", "abc"), "a", "abcd"),
        ("number", (2, 3.0), 1.99, 3.01),
        ("rating", (2, 3), 1, 4),
        ("array", ([1, 2], [1, 2, 3]), [1], [1, 2, 3, 4]),
        ("relations", (["a", "b"], ["a", "b", "c"]), ["a"], ["a"] * 4),
    ],
)
def test_bounds_are_of_the_value_its_length_or_its_count(
    type_name: str, inside: tuple[Any, ...], below: Any, above: Any
) -> None:
    kind = "count" if type_name == "relations" else "range"
    assert [check(type_name, value, min=2, max=3) for value in inside] == [[], []]
    assert check(type_name, below, min=2, max=3) == check(type_name, above, min=2, max=3) == [("f", "error", kind)]


def test_paths_name_items_and_members_of_any_depth() -> None:
    definition = {
        "type": "array",
        "items": {"type": "object", "fields": {"a": {"type": "array", "items": "integer"}, "b": {"type": "slug"}}},
    }
    value = [{}, {"a": [1, "2"], "b": "B"}]
    problems = validate_content({"f": value}, {"f": FieldDefinition.from_wire(definition)})
    assert [(one.field, one.kind) for one in problems] == [("f[1].a[1]", "type"), ("f[1].b", "slug")]


SECRETS = {
    "a key of a payment service": "sk_live_abcdefghijklmnop",
    "a key of a model provider": "sk-ant-api03-Zm9vYmFyYmF6cXV4",
    "one of another": "sk-proj-Zm9vYmFyYmF6cXV4",
    "one of a third": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "a token of a code host": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "one of another code host": "glpat-abcdefghij0123456789",
    "a key of a cloud": "AKIAIOSFODNN7EXAMPLE",
    "a token of a chat": "xoxb-123456789012-abcdefghij",
    "a token of a session": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl",
    "a header": "Authorization: Bearer abcdefgh12345678",
    "a private key": "-----BEGIN RSA PRIVATE KEY-----",
    "a database": "postgres://ada:secret@db.example.com/x",
    "a cache": "redis://:secret@cache.example.com:6379",
    "an assignment": "api_key = 'abcdef123456'",
    "a key of this service": "crn_conv_bakery_abcdefghijklmnop",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_refused_wherever_it_is(secret: str) -> None:
    fields = {
        "text": FieldDefinition.from_wire({"type": "text"}),
        "list": FieldDefinition.from_wire({"type": "array"}),
        "object": FieldDefinition.from_wire({"type": "object", "fields": {"a": {"type": "string"}}}),
        "many": FieldDefinition.from_wire({"type": "relations", "model": ["a", "b"]}),
    }
    content = {
        "text": f"use {secret}",
        "list": ["a", {"deep": [secret]}],
        "object": {"a": secret, "other": secret},
        "many": [{"model": "a", "ref": secret}],
        "unknown": {"b": secret},
    }
    found = [(one.field, one.kind) for one in validate_content(content, fields)]
    places = ["text", "list[1].deep[0]", "object.a", "object.other", "many[0].ref", "unknown.b"]
    assert found == [(place, "secret") for place in places]


def test_words_about_secrets_are_none() -> None:
    words = (
        "the sk-learn library, a task_list, ghosts, Bearer of news, your API key: ask us; postgres://localhost/x, "
        "the eyJ of a token, sk-folding-cube, hf_datasets, AIza, an access-token, client secret: none"
    )
    assert check("text", words) == []
