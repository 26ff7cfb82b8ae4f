"""What a model is told about the content workspace and the plugin editor, from turn to turn."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.tools.registry import build_situation
from tests.unit.tools.content_samples import OPEN, WORKSPACE

PLUGIN: dict[str, Any] = {
    "localId": "pl-1",
    "pluginId": "opening-hours",
    "files": [{"id": "f1", "path": "plugin.json"}, {"id": "f2", "path": "src/index.ts"}],
    "activeFile": "f2",
    "state": "draft",
    "activeVersion": None,
    "declaredPermissions": ["pages.read", "network"],
    "grantedPermissions": ["pages.read"],
    "latestDiagnostics": [{"file": "src/index.ts", "message": "Cannot find name 'x'."}],
    "currentUser": {"id": "u-ada"},
}


def opened(**changes: Any) -> list[str]:
    """The lines of the active document."""
    lines = build_situation("content", WORKSPACE | {"activeDocument": OPEN | changes}).splitlines()
    return lines[3:]


def field(line_id: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith(f"- {line_id}")]
    return line.split(": ", 1)[1]


def test_the_lines_say_who_asks_what_there_is_and_what_is_open() -> None:
    assert build_situation("content", WORKSPACE).splitlines() == [
        "User: Ada (u-ada)",
        'Collections: [t-posts="Posts" (posts, postType, 3 documents), t-people="people" (people, data, 8 documents)]',
        'Active collection: t-posts="Posts" (posts, postType, 3 documents)',
        'Active document: d-rye="Rye bread" (collection t-posts, slug rye, status draft, updated 2026-01-02T08:00:00Z)',
        "- title (text, required): Rye bread",
        "- mood (select: calm): (empty)",
        "- author (relation to people): (empty)",
        "- body: Darker still.",
    ]


@pytest.mark.parametrize("posted", [None, 3, [], {}, {"collections": "none"}, {"activeDocument": {"title": "No id"}}])
def test_a_workspace_that_cannot_be_read_is_an_empty_one(posted: Any) -> None:
    assert build_situation("content", posted).splitlines() == [
        "User: Anonymous",
        "Collections: [(none)]",
        "Active collection: none",
        "Active document: none",
    ]


def test_an_active_collection_that_is_not_listed_is_still_named() -> None:
    lines = build_situation("content", WORKSPACE | {"activeTableId": "t-new", "activeDocument": None}).splitlines()
    assert lines[2:] == ["Active collection: t-new", "Active document: none"]


@pytest.mark.parametrize(
    ("field_id", "kind", "most"),
    [("body", "text", 200), ("lead", "longText", 200), ("text", "richText", 200), ("title", "text", 120)],
)
def test_whole_texts_are_cut_at_200_characters_and_others_at_120(field_id: str, kind: str, most: int) -> None:
    value = "x" * most
    schema = [{"id": field_id, "label": "Field", "type": kind}]
    assert field(field_id, opened(schema=schema, fields={field_id: value})) == value
    assert field(field_id, opened(schema=schema, fields={field_id: f"{value}y"})) == f"{value}…"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "(empty)"),
        ("", "(empty)"),
        ([], "(empty)"),
        (0, "0"),
        (False, "false"),
        (["a", "b"], '["a", "b"]'),
        ({"src": "/a.jpg", "alt": "Ä"}, '{"alt": "Ä", "src": "/a.jpg"}'),
        ("two\n\nlines\u2028here", "two lines here"),
    ],
)
def test_a_value_is_told_on_its_own_line_whatever_it_is(value: Any, told: str) -> None:
    assert field("own", opened(schema=[{"id": "own", "type": "any"}], fields={"own": value})) == told


def test_many_collections_fields_and_options_are_cut_with_a_count() -> None:
    options = [{"id": f"o{n}", "label": "An option"} for n in range(20)]
    schema = [{"id": "pick", "type": "select", "options": options}] + [{"id": f"f{n}"} for n in range(70)]
    lines = opened(schema=schema, fields={})
    assert lines[-1] == "- +11 more fields"
    assert "o11, +8 more)" in lines[1]
    collections = [{"id": f"c{n}"} for n in range(60)]
    told = build_situation("content", WORKSPACE | {"collections": collections}).splitlines()[1]
    assert told.endswith(", +10 more]")


def test_the_users_mail_address_stays_here() -> None:
    assert "@" not in build_situation("content", WORKSPACE)


def test_the_plugin_that_is_open_is_told_with_its_files_and_its_last_build() -> None:
    assert build_situation("plugin", PLUGIN).splitlines() == [
        "Plugin: pl-1 (id opening-hours, state draft)",
        "Files: [f1=plugin.json, f2=src/index.ts]",
        "Open file: f2",
        "Asks for: [pages.read, network]",
        "May: [pages.read]",
        'Last build: [{"file": "src/index.ts", "message": "Cannot find name \'x\'."}]',
    ]


@pytest.mark.parametrize(
    ("active", "told"), [({"id": "f2", "path": "src/index.ts"}, "src/index.ts"), ({"id": "f2"}, "f2"), (None, "none")]
)
def test_the_open_file_may_be_posted_in_several_ways(active: Any, told: str) -> None:
    assert f"Open file: {told}" in build_situation("plugin", PLUGIN | {"activeFile": active}).splitlines()


@pytest.mark.parametrize("posted", [None, 3, {"files": 3}, {"localId": {}}])
def test_a_plugin_editor_that_cannot_be_read_is_an_empty_one(posted: Any) -> None:
    lines = build_situation("plugin", posted).splitlines()
    assert lines[:3] == ["Plugin: none", "Files: [(none)]", "Open file: none"]


MEMBERS = ["activeDocument", "collections", "id", "fields", "schema", "title", "files", "localId", "options", "tableId"]
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(posted=json_values | st.fixed_dictionaries({"activeDocument": json_values, "collections": json_values}))
@pytest.mark.parametrize(("scope", "begins"), [("content", "User: "), ("plugin", "Plugin: ")])
def test_no_snapshot_can_break_the_lines(scope: str, begins: str, posted: Any) -> None:
    assert build_situation(scope, posted).startswith(begins)
