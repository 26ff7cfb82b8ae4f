"""What the content tools answer: from the tenant's content system, from the snapshot, and when neither can tell."""

import threading
from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.content.toolset import CONTENT_TOOLSET
from tests.scripted_host import ScriptedHost
from tests.unit.tools.builders import make_call, make_context
from tests.unit.tools.content_samples import LOST, OPEN, PEOPLE, POSTS, RYE, SPELT, TABLES, WORKSPACE

ALL = frozenset({permission for tool in CONTENT_TOOLSET.tools for permission in tool.permissions} | {"ai.tools.write"})
NO_HOST = "none is set up for it. An administrator does that with: fermata tenant host tenant-1 --url https://…"


def answer(name: str, arguments: Any = None, **situation: Any) -> ToolOutput:
    """As the pipeline runs it; waits between attempts are not waited."""
    where = make_context(scope="content", capabilities=ALL, **situation)
    admitted = admit_call(CONTENT_TOOLSET, make_call(name, arguments), where)
    assert isinstance(admitted, AdmittedCall), admitted
    return run_tool(admitted, where, sleep=lambda _seconds: None)


def data(name: str, arguments: Any = None, **situation: Any) -> Any:
    output = answer(name, arguments, **situation)
    assert output.ok, output.error
    return output.data


def error(name: str, arguments: Any = None, **situation: Any) -> str:
    output = answer(name, arguments, **situation)
    assert not output.ok
    return output.error or ""


def test_collections_are_the_tables_whose_rows_are_content(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    posts = {"id": "t-posts", "slug": "posts", "label": "Posts", "kind": "postType", "rowCount": 3}
    pages = {"id": "t-pages", "slug": "pages", "label": "Page", "kind": "page", "rowCount": 1}
    assert data("list_collections", host=host.open_client) == {
        "collections": [posts | {"primaryFieldId": "title"}, pages | {"primaryFieldId": None}]
    }


def test_a_schema_tells_of_each_field_what_it_accepts(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    assert data("get_collection_schema", {"tableId": "t-posts"}, host=host.open_client) == {
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


def test_the_schema_of_what_a_relation_points_to_can_be_read_too(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    found = data("get_collection_schema", {"tableId": "t-people"}, host=host.open_client)
    assert found["collection"]["label"] == "People"


def test_a_collection_that_is_not_there_is_not_found(host: ScriptedHost) -> None:
    host.script_response("GET tables", TABLES)
    assert error("get_collection_schema", {"tableId": "t-9"}, host=host.open_client) == "Collection t-9 not found."
    assert error("list_documents", {"tableId": "t-9"}, host=host.open_client) == "Collection t-9 not found."


def test_documents_come_25_at_a_time_with_their_total(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"total": 2, "documents": [RYE, SPELT]})
    assert data("list_documents", {"tableId": "t-posts"}, host=host.open_client) == {
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


def test_filters_and_pages_are_passed_on_and_a_longer_answer_is_cut(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"total": 40, "documents": [RYE, SPELT]})
    wanted = {"tableId": "t-posts", "status": "draft", "authorUserId": "u-ada", "limit": 1, "offset": 30}
    found = data("list_documents", wanted, host=host.open_client)
    assert (found["total"], found["offset"], found["limit"], len(found["documents"])) == (40, 30, 1, 1)
    assert host.requests[0].query == {name: str(value) for name, value in wanted.items()}


def test_a_document_comes_whole(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    assert data("get_document", {"documentId": "d-rye"}, host=host.open_client) == {
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
def test_a_document_that_is_not_there_is_not_found(host: ScriptedHost, name: str) -> None:
    assert error("get_document", {"documentId": name}, host=host.open_client) == f"Document {name} not found."


def test_the_open_document_comes_as_its_user_sees_it_and_says_so(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    found = data("get_document", {"documentId": "d-rye"}, host=host.open_client, snapshot=WORKSPACE)
    assert "unsaved changes included" in found["note"]
    assert "saved later" not in found["note"]
    shown = {"title": "Rye bread", "status": "draft", "fields": OPEN["fields"], "scheduledPublishAt": None}
    stored = {name: value for name, value in RYE.items() if name != "deletedAt"}
    assert found["document"] == stored | shown


def test_a_version_saved_after_the_editor_opened_the_document_is_pointed_out(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE | {"updatedAt": "2026-01-02T11:00:00+01:00"}})
    found = data("get_document", {"documentId": "d-rye"}, host=host.open_client, snapshot=WORKSPACE)
    assert "saved later, at 2026-01-02T11:00:00+01:00" in found["note"]
    assert found["document"]["fields"] == OPEN["fields"]


def test_a_document_that_was_never_saved_is_read_from_the_editor(host: ScriptedHost) -> None:
    found = data("get_document", {"documentId": "d-rye"}, host=host.open_client, snapshot=WORKSPACE)
    assert found["document"]["fields"] == OPEN["fields"]
    assert found["document"]["createdAt"] is None


def test_while_the_content_system_is_down_the_open_document_can_be_read_all_the_same(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-rye", {"error": "down for repairs"}, status=503)
    found = data("get_document", {"documentId": "d-rye"}, host=host.open_client, snapshot=WORKSPACE)
    assert found["document"]["fields"] == OPEN["fields"]
    assert found["note"].endswith("failed (503): down for repairs.")


def test_another_document_than_the_open_one_is_the_content_systems(host: ScriptedHost) -> None:
    host.script_response("GET documents/d-spelt", {"document": SPELT})
    found = data("get_document", {"documentId": "d-spelt"}, host=host.open_client, snapshot=WORKSPACE)
    assert found == {"document": found["document"]}
    assert found["document"]["title"] == "spelt"


@pytest.mark.parametrize("snapshot", ["nonsense", {"activeDocument": {"id": 7}}, {"collections": "all"}, None])
def test_a_broken_snapshot_keeps_nobody_from_what_the_content_system_says(host: ScriptedHost, snapshot: Any) -> None:
    host.script_response("GET documents/d-rye", {"document": RYE})
    host.script_response("GET tables", TABLES)
    found = data("get_document", {"documentId": "d-rye"}, host=host.open_client, snapshot=snapshot)
    assert found["document"]["title"] == "Rye"
    assert len(data("list_collections", host=host.open_client, snapshot=snapshot)["collections"]) == 2


def test_a_search_names_the_collections_and_passes_over_what_is_no_content(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"documents": [RYE, LOST, SPELT]})
    host.script_response("GET tables", TABLES)
    assert data("search_documents", {"query": "r", "limit": 1}, host=host.open_client) == {
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


def test_a_search_finds_25_when_nothing_is_said(host: ScriptedHost) -> None:
    host.script_response("GET documents", {"documents": [SPELT | {"id": f"d{n}"} for n in range(30)]})
    host.script_response("GET tables", TABLES)
    assert len(data("search_documents", {"query": "spelt"}, host=host.open_client)["results"]) == 25
    assert host.requests[0].query["limit"] == "25"


def test_users_and_media_are_listed_as_far_as_tools_need_them(host: ScriptedHost) -> None:
    ada = {"id": "u-ada", "email": "ada@bakery.example", "displayName": "Ada", "roleSlug": "owner", "roleName": "Owner"}
    host.script_response("GET users", {"users": [ada | {"passwordHash": "never passed on"}]})
    assert data("list_users", host=host.open_client) == {"users": [ada]}
    oven = {"id": "m1", "filename": "oven.jpg", "publicPath": "/m/oven.jpg", "mimeType": "image/jpeg"}
    host.script_response("GET media", {"total": 60, "media": [oven | {"width": 800, "exif": {}}] * 30})
    found = data("list_media", {"query": "oven", "mimeType": "image"}, host=host.open_client)
    assert (found["total"], len(found["media"])) == (60, 25)
    assert found["media"][0] == oven | {"altText": None, "width": 800, "height": None}
    assert host.requests[-1].query == {"query": "oven", "mimeType": "image", "limit": "25"}


def test_without_a_content_system_the_snapshot_tells_what_it_holds() -> None:
    posts = {"id": "t-posts", "slug": "posts", "label": "Posts", "kind": "postType", "rowCount": 3}
    people = {"id": "t-people", "slug": "people", "label": "people", "kind": "data", "rowCount": 8}
    unknown = {"primaryFieldId": None}
    assert data("list_collections", snapshot=WORKSPACE) == {"collections": [posts | unknown, people | unknown]}
    found = data("get_collection_schema", {"tableId": "t-posts"}, snapshot=WORKSPACE)["collection"]
    assert {name: found[name] for name in posts} == posts
    assert found["fields"][1]["options"] == [{"value": "calm", "label": "Calm"}]
    assert found["fields"][2]["targetTableId"] == "t-people"
    document = data("get_document", {"documentId": "d-rye"}, snapshot=WORKSPACE)
    assert document["document"]["fields"] == OPEN["fields"]
    assert document["document"]["publishedAt"] is None


def test_tables_that_the_snapshot_carries_stand_in_for_the_content_system() -> None:
    snapshot = {"dataTables": [POSTS, PEOPLE]}
    assert [one["id"] for one in data("list_collections", snapshot=snapshot)["collections"]] == ["t-posts"]
    found = data("get_collection_schema", {"tableId": "t-people"}, snapshot=snapshot)
    assert found["collection"]["rowCount"] == 8
    assert error("get_collection_schema", {"tableId": "t-9"}, snapshot=snapshot) == "Collection t-9 not found."


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
def test_what_nobody_can_tell_is_refused_with_the_setting_that_is_missing(name: str, arguments: Any) -> None:
    snapshot = None if name == "list_collections" else WORKSPACE
    assert error(name, arguments, snapshot=snapshot).endswith(NO_HOST)


def test_a_collection_the_snapshot_does_not_know_is_not_found() -> None:
    assert error("get_collection_schema", {"tableId": "t-9"}, snapshot=WORKSPACE) == "Collection t-9 not found."


@pytest.mark.parametrize(
    ("wish", "said", "name", "arguments", "path"),
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
def test_an_answer_that_is_nonsense_is_refused_with_the_path_that_is_wrong(
    host: ScriptedHost, wish: str, said: Any, name: str, arguments: Any, path: str
) -> None:
    host.script_response(wish, said)
    told = error(name, arguments, host=host.open_client)
    assert told.startswith(f"The content system's answer cannot be understood: {path}")


def test_a_read_is_asked_again_where_the_content_system_was_only_busy(host: ScriptedHost) -> None:
    host.script_response("GET users", {"error": "busy"}, status=429)
    host.script_response("GET users", {"error": "still busy"}, status=503)
    host.script_response("GET users", {"users": []})
    assert data("list_users", host=host.open_client) == {"users": []}
    assert len(host.requests) == 3


def test_a_content_system_that_took_all_its_time_is_not_asked_again(host: ScriptedHost) -> None:
    host.stall_seconds, hold = 0.2, threading.Event()
    host.script_response("GET users", {"users": []}, completed_by=hold)
    told = error("list_users", host=host.open_client)
    hold.set()
    assert "gave no answer within" in told
    assert len(host.requests) == 1


@pytest.mark.parametrize(("status", "asked"), [(503, 3), (403, 1)])
def test_what_stays_refused_is_told_with_the_content_systems_reason(
    host: ScriptedHost, status: int, asked: int
) -> None:
    host.script_response("GET users", {"error": "Ask the owner"}, status=status)
    assert error("list_users", host=host.open_client).endswith(": Ask the owner.")
    assert len(host.requests) == asked
