"""Content tools answer from the content system or, where it has none, from the snapshot."""

import threading
from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.content.toolset import CONTENT_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import SleeplessClock, make_call, make_context, run_tool
from tests.unit.tools.content_samples import LOST, OPEN, PEOPLE, POSTS, RYE, SPELT, TABLES, WORKSPACE

CAPABILITIES = frozenset(
    {permission for tool in CONTENT_TOOLSET.tools for permission in tool.permissions} | {"ai.tools.write"}
)
MISSING_HOST_ERROR = (
    "none is set up for it. An administrator does that with: "
    "fermata tenant host tenant-1 --url https://… or content:site/environment"
)


def call_tool(name: str, arguments: Any = None, **situation: Any) -> ToolOutput:
    """Call a tool like the pipeline does, without the waits between attempts."""
    context = make_context(scope="content", capabilities=CAPABILITIES, **situation)
    admitted = admit_call(CONTENT_TOOLSET, make_call(name, arguments), context)
    assert isinstance(admitted, AdmittedCall), admitted
    return run_tool(admitted, context, clock=SleeplessClock())


def read_data(name: str, arguments: Any = None, **situation: Any) -> Any:
    output = call_tool(name, arguments, **situation)
    assert output.ok, output.error
    return output.data


def read_error(name: str, arguments: Any = None, **situation: Any) -> str:
    output = call_tool(name, arguments, **situation)
    assert not output.ok
    return output.error or ""


def test_collections_are_the_tables_whose_rows_are_content(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    posts = {"id": "t-posts", "slug": "posts", "label": "Posts", "kind": "postType", "rowCount": 3}
    pages = {"id": "t-pages", "slug": "pages", "label": "Page", "kind": "page", "rowCount": 1}
    assert read_data("list_collections", open_host=host.open_client) == {
        "collections": [posts | {"primaryFieldId": "title"}, pages | {"primaryFieldId": None}]
    }


def test_a_collection_schema_describes_what_each_field_accepts(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    assert read_data("get_collection_schema", {"tableId": "t-posts"}, open_host=host.open_client) == {
        "collection": {
            "id": "t-posts",
            "slug": "posts",
            "label": "Posts",
            "kind": "postType",
            "rowCount": 3,
            "primaryFieldId": "title",
            "fields": [
                {"id": "title", "label": "Title", "type": "text", "required": True, "builtIn": True},
                {
                    "id": "mood",
                    "label": "Mood",
                    "type": "select",
                    "required": False,
                    "builtIn": False,
                    "options": [{"value": "calm", "label": "Calm"}],
                },
                {
                    "id": "cover",
                    "label": "Cover",
                    "type": "media",
                    "required": False,
                    "builtIn": False,
                    "mediaKind": "image",
                    "allowMultiple": False,
                },
                {
                    "id": "author",
                    "label": "By",
                    "type": "relation",
                    "required": False,
                    "builtIn": False,
                    "targetTableId": "t-people",
                    "allowMultiple": True,
                },
            ],
        }
    }


def test_the_schema_of_a_relations_target_can_be_read(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    result = read_data("get_collection_schema", {"tableId": "t-people"}, open_host=host.open_client)
    assert result["collection"]["label"] == "People"


def test_an_unknown_collection_is_not_found(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    assert (
        read_error("get_collection_schema", {"tableId": "t-9"}, open_host=host.open_client)
        == "Collection t-9 not found."
    )
    assert read_error("list_documents", {"tableId": "t-9"}, open_host=host.open_client) == "Collection t-9 not found."


def test_documents_are_listed_25_at_a_time_with_their_total(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"total": 2, "documents": [RYE, SPELT]})
    assert read_data("list_documents", {"tableId": "t-posts"}, open_host=host.open_client) == {
        "total": 2,
        "offset": 0,
        "limit": 25,
        "documents": [
            {
                "id": "d-rye",
                "tableId": "t-posts",
                "title": "Rye",
                "slug": "rye",
                "status": "published",
                "authorUserId": "u-ada",
                "updatedAt": "2026-01-02T08:00:00Z",
            },
            {
                "id": "d-spelt",
                "tableId": "t-posts",
                "title": "spelt",
                "slug": "spelt",
                "status": "draft",
                "authorUserId": None,
                "updatedAt": None,
            },
        ],
    }
    assert host.requests[0].query == {"tableId": "t-posts", "limit": "25", "offset": "0"}


def test_filters_and_offset_are_forwarded_and_a_longer_answer_is_cut(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"total": 40, "documents": [RYE, SPELT]})
    arguments = {"tableId": "t-posts", "status": "draft", "authorUserId": "u-ada", "limit": 1, "offset": 30}
    result = read_data("list_documents", arguments, open_host=host.open_client)
    assert (result["total"], result["offset"], result["limit"], len(result["documents"])) == (40, 30, 1, 1)
    assert host.requests[0].query == {name: str(value) for name, value in arguments.items()}


def test_a_document_is_read_with_all_its_members(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    assert read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client) == {
        "document": {
            "id": "d-rye",
            "tableId": "t-posts",
            "title": "Rye",
            "slug": "rye",
            "status": "published",
            "authorUserId": "u-ada",
            "createdAt": "2026-01-01T08:00:00Z",
            "updatedAt": "2026-01-02T08:00:00Z",
            "publishedAt": "2026-01-02T08:00:00Z",
            "scheduledPublishAt": None,
            "fields": {"title": "Rye", "body": "Dark and sour."},
        }
    }


@pytest.mark.parametrize("name", ["d-9", ".."])
def test_an_unknown_document_is_not_found(host: ScriptedHost, name: str) -> None:
    assert read_error("get_document", {"documentId": name}, open_host=host.open_client) == f"Document {name} not found."


def test_the_open_document_is_read_with_its_unsaved_changes_and_a_note(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    result = read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client, snapshot=WORKSPACE)
    assert "unsaved changes included" in result["note"]
    assert "saved later" not in result["note"]
    shown = {"title": "Rye bread", "status": "draft", "fields": OPEN["fields"], "scheduledPublishAt": None}
    stored = {name: value for name, value in RYE.items() if name != "deletedAt"}
    assert result["document"] == stored | shown


def test_a_note_reports_a_version_saved_after_the_editor_opened_the_document(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE | {"updatedAt": "2026-01-02T11:00:00+01:00"}})
    result = read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client, snapshot=WORKSPACE)
    assert "saved later, at 2026-01-02T11:00:00+01:00" in result["note"]
    assert result["document"]["fields"] == OPEN["fields"]


def test_an_unsaved_document_is_read_from_the_snapshot(host: ScriptedHost) -> None:
    result = read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client, snapshot=WORKSPACE)
    assert result["document"]["fields"] == OPEN["fields"]
    assert result["document"]["createdAt"] is None


def test_the_open_document_can_be_read_while_the_content_system_is_down(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"error": "down for repairs"}, status=503)
    result = read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client, snapshot=WORKSPACE)
    assert result["document"]["fields"] == OPEN["fields"]
    assert result["note"].endswith("failed (503): down for repairs.")


def test_a_document_that_is_not_open_is_read_from_the_content_system(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-spelt", {"document": SPELT})
    result = read_data("get_document", {"documentId": "d-spelt"}, open_host=host.open_client, snapshot=WORKSPACE)
    assert result == {"document": result["document"]}
    assert result["document"]["title"] == "spelt"


@pytest.mark.parametrize("snapshot", ["nonsense", {"activeDocument": {"id": 7}}, {"collections": "all"}, None])
def test_a_broken_snapshot_does_not_hide_the_content_systems_answer(host: ScriptedHost, snapshot: Any) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    host.script_response("GET tables", TABLES)
    result = read_data("get_document", {"documentId": "d-rye"}, open_host=host.open_client, snapshot=snapshot)
    assert result["document"]["title"] == "Rye"
    assert len(read_data("list_collections", open_host=host.open_client, snapshot=snapshot)["collections"]) == 2


def test_a_search_names_the_collections_and_skips_tables_without_content(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"documents": [RYE, LOST, SPELT]})
    host.script_response("GET tables", TABLES)
    assert read_data("search_documents", {"query": "r", "limit": 1}, open_host=host.open_client) == {
        "query": "r",
        "results": [
            {
                "id": "d-rye",
                "tableId": "t-posts",
                "tableSlug": "posts",
                "tableName": "Post",
                "slug": "rye",
                "status": "published",
                "updatedAt": "2026-01-02T08:00:00Z",
            }
        ],
    }
    assert host.requests[0].query == {"query": "r", "limit": "1"}


def test_a_search_returns_25_results_by_default(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"documents": [SPELT | {"id": f"d{n}"} for n in range(30)]})
    host.script_response("GET tables", TABLES)
    assert len(read_data("search_documents", {"query": "spelt"}, open_host=host.open_client)["results"]) == 25
    assert host.requests[0].query["limit"] == "25"


def test_users_and_media_are_listed_with_the_members_that_tools_need(host: ScriptedHost) -> None:
    ada = {"id": "u-ada", "email": "ada@bakery.example", "displayName": "Ada", "roleSlug": "owner", "roleName": "Owner"}
    host.script_response("GET users", {"users": [ada | {"passwordHash": "never passed on"}]})
    assert read_data("list_users", open_host=host.open_client) == {"users": [ada]}
    oven = {"id": "m1", "filename": "oven.jpg", "publicPath": "/m/oven.jpg", "mimeType": "image/jpeg"}
    host.script_response("GET media", {"total": 60, "media": [oven | {"width": 800, "exif": {}}] * 30})
    result = read_data("list_media", {"query": "oven", "mimeType": "image"}, open_host=host.open_client)
    assert (result["total"], len(result["media"])) == (60, 25)
    assert result["media"][0] == oven | {"altText": None, "width": 800, "height": None}
    assert host.requests[-1].query == {"query": "oven", "mimeType": "image", "limit": "25"}


def test_without_a_content_system_the_snapshot_answers_as_far_as_it_can() -> None:
    posts = {"id": "t-posts", "slug": "posts", "label": "Posts", "kind": "postType", "rowCount": 3}
    people = {"id": "t-people", "slug": "people", "label": "people", "kind": "data", "rowCount": 8}
    unknown = {"primaryFieldId": None}
    assert read_data("list_collections", snapshot=WORKSPACE) == {"collections": [posts | unknown, people | unknown]}
    result = read_data("get_collection_schema", {"tableId": "t-posts"}, snapshot=WORKSPACE)["collection"]
    assert {name: result[name] for name in posts} == posts
    assert result["fields"][1]["options"] == [{"value": "calm", "label": "Calm"}]
    assert result["fields"][2]["targetTableId"] == "t-people"
    document = read_data("get_document", {"documentId": "d-rye"}, snapshot=WORKSPACE)
    assert document["document"]["fields"] == OPEN["fields"]
    assert document["document"]["publishedAt"] is None


def test_data_tables_in_the_snapshot_replace_the_content_system() -> None:
    snapshot = {"dataTables": [POSTS, PEOPLE]}
    assert [item["id"] for item in read_data("list_collections", snapshot=snapshot)["collections"]] == ["t-posts"]
    result = read_data("get_collection_schema", {"tableId": "t-people"}, snapshot=snapshot)
    assert result["collection"]["rowCount"] == 8
    assert read_error("get_collection_schema", {"tableId": "t-9"}, snapshot=snapshot) == "Collection t-9 not found."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_collections", {}),
        ("get_collection_schema", {"tableId": "t-people"}),
        ("list_documents", {"tableId": "t-posts"}),
        ("get_document", {"documentId": "d-spelt"}),
        ("search_documents", {"query": "rye"}),
        ("list_users", {}),
        ("list_media", {}),
    ],
)
def test_a_query_that_needs_a_content_system_fails_with_the_command_that_registers_one(
    name: str, arguments: Any
) -> None:
    snapshot = None if name == "list_collections" else WORKSPACE
    assert read_error(name, arguments, snapshot=snapshot).endswith(MISSING_HOST_ERROR)


def test_a_collection_that_is_not_in_the_snapshot_is_not_found() -> None:
    assert read_error("get_collection_schema", {"tableId": "t-9"}, snapshot=WORKSPACE) == "Collection t-9 not found."


@pytest.mark.parametrize(
    ("route", "answer", "name", "arguments", "path"),
    [
        ("GET tables", {}, "list_collections", {}, "tables: Expected required property"),
        ("GET tables", [], "list_collections", {}, "the whole value: Expected object"),
        (
            "GET tables",
            {"tables": [POSTS, {"id": "t2"}]},
            "list_collections",
            {},
            "tables[1].slug: Expected",
        ),
        ("GET documents", {"documents": []}, "list_documents", {"tableId": "t"}, "total: Expected required property"),
        (
            "GET documents",
            {"total": 1, "documents": [{"id": 7, "tableId": "t", "status": "draft"}]},
            "list_documents",
            {"tableId": "t"},
            "documents[0].id: Expected string.",
        ),
        ("GET documents/d", {"document": {"id": "d"}}, "get_document", {"documentId": "d"}, "document.tableId: "),
        ("GET users", {"users": None}, "list_users", {}, "users: "),
        ("GET media", {"total": "many", "media": []}, "list_media", {}, "total: Expected integer."),
    ],
)
def test_an_invalid_answer_is_refused_with_the_path_of_the_error(
    host: ScriptedHost, route: str, answer: Any, name: str, arguments: Any, path: str
) -> None:
    host.script_response(route, answer)
    message = read_error(name, arguments, open_host=host.open_client)
    assert message.startswith(f"The content system's answer cannot be understood: {path}")


def test_a_read_is_retried_while_the_content_system_is_busy(host: ScriptedHost) -> None:
    host.script_response("GET users", {"error": "busy"}, status=429)
    host.script_response("GET users", {"error": "still busy"}, status=503)
    host.script_response("GET users", {"users": []})
    assert read_data("list_users", open_host=host.open_client) == {"users": []}
    assert len(host.requests) == 3


def test_a_read_that_timed_out_is_not_retried(host: ScriptedHost) -> None:
    host.stall_seconds = 0.2
    release = threading.Event()
    host.script_response("GET users", {"users": []}, completed_by=release)
    message = read_error("list_users", open_host=host.open_client)
    release.set()
    assert "gave no answer within" in message
    assert len(host.requests) == 1


@pytest.mark.parametrize(("status", "attempts"), [(503, 3), (403, 1)])
def test_a_failed_read_reports_the_content_systems_reason(host: ScriptedHost, status: int, attempts: int) -> None:
    host.script_response("GET users", {"error": "Ask the owner"}, status=status)
    assert read_error("list_users", open_host=host.open_client).endswith(": Ask the owner.")
    assert len(host.requests) == attempts
