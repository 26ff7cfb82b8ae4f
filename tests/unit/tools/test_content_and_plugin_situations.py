"""The situations of the content workspace and the plugin editor."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.agents.registry import open_agent
from tests.quick_suite_samples import count_examples
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


def list_document_lines(**changes: Any) -> list[str]:
    """List the lines of the active document."""
    lines = open_agent("content").build_situation(WORKSPACE | {"activeDocument": OPEN | changes}).splitlines()
    return lines[3:]


def find_field_value(line_id: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith(f"- {line_id}")]
    return line.split(": ", 1)[1]


def test_the_situation_lists_the_user_the_collections_and_the_open_document() -> None:
    assert open_agent("content").build_situation(WORKSPACE).splitlines() == [
        "User: Ada (u-ada)",
        'Collections: [t-posts="Posts" (posts, postType, 3 documents), t-people="people" (people, data, 8 documents)]',
        'Active collection: t-posts="Posts" (posts, postType, 3 documents)',
        'Active document: d-rye="Rye bread" (collection t-posts, slug rye, status draft, updated 2026-01-02T08:00:00Z)',
        "- title (text, required): Rye bread",
        "- mood (select: calm): (empty)",
        "- author (relation to people): (empty)",
        "- body: Darker still.",
    ]


@pytest.mark.parametrize("snapshot", [None, 3, [], {}, {"collections": "none"}, {"activeDocument": {"title": "No id"}}])
def test_a_workspace_that_cannot_be_read_counts_as_empty(snapshot: Any) -> None:
    assert open_agent("content").build_situation(snapshot).splitlines() == [
        "User: Anonymous",
        "Collections: [(none)]",
        "Active collection: none",
        "Active document: none",
    ]


def test_an_active_collection_that_is_not_listed_is_still_named() -> None:
    lines = (
        open_agent("content")
        .build_situation(WORKSPACE | {"activeTableId": "t-new", "activeDocument": None})
        .splitlines()
    )
    assert lines[2:] == ["Active collection: t-new", "Active document: none"]


@pytest.mark.parametrize(
    ("field_id", "kind", "max_chars"),
    [("body", "text", 200), ("lead", "longText", 200), ("text", "richText", 200), ("title", "text", 120)],
)
def test_long_texts_are_cut_at_200_characters_and_other_values_at_120(field_id: str, kind: str, max_chars: int) -> None:
    value = "x" * max_chars
    schema = [{"id": field_id, "label": "Field", "type": kind}]
    assert find_field_value(field_id, list_document_lines(schema=schema, fields={field_id: value})) == value
    assert find_field_value(field_id, list_document_lines(schema=schema, fields={field_id: f"{value}y"})) == f"{value}…"


@pytest.mark.parametrize(
    ("value", "formatted"),
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
def test_a_value_of_any_type_is_formatted_on_one_line(value: Any, formatted: str) -> None:
    assert (
        find_field_value("own", list_document_lines(schema=[{"id": "own", "type": "any"}], fields={"own": value}))
        == formatted
    )


def test_long_lists_of_collections_fields_and_options_are_cut_with_a_count() -> None:
    options = [{"id": f"o{n}", "label": "An option"} for n in range(20)]
    schema = [{"id": "pick", "type": "select", "options": options}] + [{"id": f"f{n}"} for n in range(70)]
    lines = list_document_lines(schema=schema, fields={})
    assert lines[-1] == "- +11 more fields"
    assert "o11, +8 more)" in lines[1]
    collections = [{"id": f"c{n}"} for n in range(60)]
    formatted = open_agent("content").build_situation(WORKSPACE | {"collections": collections}).splitlines()[1]
    assert formatted.endswith(", +10 more]")


def test_the_mail_address_of_the_user_is_not_sent_to_the_model() -> None:
    assert "@" not in open_agent("content").build_situation(WORKSPACE)


def test_the_situation_lists_the_open_plugin_with_its_files_and_its_last_build() -> None:
    assert open_agent("plugin").build_situation(PLUGIN).splitlines() == [
        "Plugin: pl-1 (id opening-hours, state draft)",
        "Files: [f1=plugin.json, f2=src/index.ts]",
        "Open file: f2",
        "Asks for: [pages.read, network]",
        "May: [pages.read]",
        'Last build: [{"file": "src/index.ts", "message": "Cannot find name \'x\'."}]',
    ]


@pytest.mark.parametrize(
    ("active", "formatted"),
    [({"id": "f2", "path": "src/index.ts"}, "src/index.ts"), ({"id": "f2"}, "f2"), (None, "none")],
)
def test_the_open_file_may_be_posted_in_several_ways(active: Any, formatted: str) -> None:
    assert (
        f"Open file: {formatted}" in open_agent("plugin").build_situation(PLUGIN | {"activeFile": active}).splitlines()
    )


@pytest.mark.parametrize("snapshot", [None, 3, {"files": 3}, {"localId": {}}])
def test_a_plugin_editor_that_cannot_be_read_counts_as_empty(snapshot: Any) -> None:
    lines = open_agent("plugin").build_situation(snapshot).splitlines()
    assert lines[:3] == ["Plugin: none", "Files: [(none)]", "Open file: none"]


MEMBERS = ["activeDocument", "collections", "id", "fields", "schema", "title", "files", "localId", "options", "tableId"]
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=count_examples(60))
@given(snapshot=json_values | st.fixed_dictionaries({"activeDocument": json_values, "collections": json_values}))
@pytest.mark.parametrize(("scope", "begins"), [("content", "User: "), ("plugin", "Plugin: ")])
def test_no_snapshot_breaks_the_situation(scope: str, begins: str, snapshot: Any) -> None:
    assert open_agent(scope).build_situation(snapshot).startswith(begins)
