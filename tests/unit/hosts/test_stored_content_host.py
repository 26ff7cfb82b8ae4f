"""The content store as a tenant's host: the same cases as of a server, and what only the store can refuse."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey, mark_space_deleted
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentContent
from fermata.content.model_store import create_space, put_model
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import TextEmbedder, index_documents
from fermata.content.space_members import SpaceMember, put_member
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.hosts import registry, stored_content_reader
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.client import HostClient
from fermata.hosts.content_host import ContentHost
from fermata.hosts.errors import HostError
from fermata.hosts.open_content_host import open_content_host
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.content.toolset import CONTENT_TOOLSET
from local.demo_host.demo_content import DemoContent
from local.demo_host.server import DemoHostServer
from tests.scripted_host import HOST_SECRET, ScriptedHost
from tests.tenant_tokens import make_tenant
from tests.unit.tools.builders import SleeplessClock, make_call, make_context, run_tool

ADA = ContentAuthor("ada")
SHOP = SpaceKey("bakery", "shop", "main")
READER = HostCaller("bakery", "ada", frozenset({"ai.chat", "ai.content.read"}), "content", "turn-1")
EDITOR_RIGHTS = frozenset(
    {permission for tool in CONTENT_TOOLSET.tools for permission in tool.permissions} | {"ai.content.read"}
)
TEAM = {
    "id": "team",
    "kind": "collection",
    "title": "Team",
    "fields": {
        "name": {"type": "string", "required": True},
        "role": {"type": "select", "options": ["baker", "seller"]},
        "photo": {"type": "image"},
        "boss": {"type": "relation", "model": "team"},
        "author": {"type": "string"},
    },
}
PEOPLE = [
    {"slug": "bea", "title": "Bea", "status": "published", "author": "ada", "role": "baker"},
    {"slug": "carl", "title": "Carl", "status": "draft", "author": "ben", "role": "seller"},
]
TEAM_FIELDS = [
    {"id": "title", "label": "Title", "type": "text", "required": True, "builtIn": True},
    {"id": "slug", "label": "Slug", "type": "text", "builtIn": True},
    {"id": "name", "label": "name", "type": "text", "required": True},
    {
        "id": "role",
        "label": "role",
        "type": "select",
        "options": [{"id": "baker", "label": "baker"}, {"id": "seller", "label": "seller"}],
    },
    {"id": "photo", "label": "photo", "type": "media", "mediaKind": "image"},
    {"id": "boss", "label": "boss", "type": "relation", "targetTableId": "team", "allowMultiple": False},
    {"id": "author", "label": "author", "type": "text"},
]
ASSET_FIELDS = {"filename": "rye.webp", "mediaType": "image/webp", "sha256": "0" * 64, "alt": "A loaf of rye"}
TIMES = ("createdAt", "updatedAt", "publishedAt")


def make_person(person: dict[str, str]) -> DocumentContent:
    content = DocumentContent(slug=person["slug"], title=person["title"], status=ContentStatus(person["status"]))
    return content.with_fields("data", {"name": person["title"], "role": person["role"], "author": person["author"]})


def make_server_content() -> DemoContent:
    """Return what the space says, as a server of a tenant has it."""
    documents = [
        {
            "id": f"team.{person['slug']}",
            "tableId": "team",
            "slug": person["slug"],
            "title": person["title"],
            "status": person["status"],
            "authorUserId": person["author"],
            "updatedAt": f"2026-01-0{9 - place}T00:00:00Z",
            "fields": {"title": person["title"], "slug": person["slug"], "name": person["title"]}
            | {"role": person["role"], "author": person["author"]},
        }
        for place, person in enumerate(PEOPLE)
    ]
    table = {"id": "team", "slug": "team", "name": "Team", "kind": "postType", "primaryFieldId": "title"}
    path = "/admin/api/ai/content/shop/main/assets/rye/files/large"
    media = {"id": "rye", "filename": "rye.webp", "publicPath": path, "mimeType": "image/webp"}
    return DemoContent(
        {
            "tables": [table | {"fields": TEAM_FIELDS}],
            "documents": documents,
            "users": [{"id": "ada", "roleSlug": "editor", "roleName": "Editor"}],
            "media": [media | {"altText": "A loaf of rye"}],
            "plugins": [],
        }
    )


@pytest.fixture
def shop(resources: Resources) -> SpaceKey:
    forget_catalogues()
    make_tenant(resources, "bakery")
    create_space(resources, SHOP, ContentSpace(locales=("en", "de")), ADA)
    put_model(resources, SHOP, TEAM, ADA)
    keys = [
        create_document(resources, SHOP, "team", ADA, make_person(one), document_id=one["slug"]).version.key
        for one in PEOPLE
    ]
    asset = DocumentContent(title="Rye", status=ContentStatus.PUBLISHED).with_fields("data", ASSET_FIELDS)
    keys.append(create_document(resources, SHOP, "asset", ADA, asset, document_id="rye").version.key)
    put_member(resources, SHOP, SpaceMember("ada", "editor"))
    index_documents(resources, SHOP, keys, TextEmbedder())
    registry.register_host(resources, "bakery", "content:shop")
    return SHOP


@pytest.fixture(params=["store", "server"])
def open_host(request: pytest.FixtureRequest, resources: Resources, host: ScriptedHost) -> Iterator[Any]:
    if request.param == "store":
        request.getfixturevalue("shop")
        yield lambda: open_content_host(resources, READER)
        return
    with DemoHostServer(make_server_content(), "bakery", HOST_SECRET) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield lambda: HostClient(
            server.url, lambda: sign_host_token(READER, HOST_SECRET, "k", time.time()), host.pool_for
        )
        server.shutdown()
        thread.join()


def call_tool(open_host: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Return the data of a tool's result without its times, or its error."""
    context = make_context(scope="content", capabilities=EDITOR_RIGHTS, open_host=open_host)
    admitted = admit_call(CONTENT_TOOLSET, make_call(name, arguments), context)
    assert isinstance(admitted, AdmittedCall), admitted
    output = run_tool(admitted, context, clock=SleeplessClock())
    return without_times(output.data) if output.ok else output.error


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(member) for name, member in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


BEA = {"id": "team.bea", "tableId": "team", "title": "Bea", "slug": "bea", "status": "published", "authorUserId": "ada"}
CARL = {"id": "team.carl", "tableId": "team", "title": "Carl", "slug": "carl", "status": "draft", "authorUserId": "ben"}
BEAS_FIELDS = {"title": "Bea", "slug": "bea", "name": "Bea", "role": "baker", "author": "ada"}
FOUND_BEA = {"id": "team.bea", "tableId": "team", "tableSlug": "team", "tableName": "Team", "slug": "bea"}
LOAF = {"id": "rye", "filename": "rye.webp", "publicPath": "/admin/api/ai/content/shop/main/assets/rye/files/large"}
NO_MEDIA: dict[str, Any] = {"total": 0, "media": []}


def page_of(*documents: dict[str, Any], total: int | None = None, offset: int = 0, limit: int = 25) -> dict[str, Any]:
    count = len(documents) if total is None else total
    return {"total": count, "offset": offset, "limit": limit, "documents": list(documents)}


CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("list_documents", {"tableId": "team"}, page_of(BEA, CARL)),
    ("list_documents", {"tableId": "team", "limit": 1, "offset": 1}, page_of(CARL, total=2, offset=1, limit=1)),
    ("list_documents", {"tableId": "team", "offset": 7}, page_of(total=2, offset=7)),
    ("list_documents", {"tableId": "team", "status": "draft"}, page_of(CARL)),
    ("list_documents", {"tableId": "team", "authorUserId": "ada"}, page_of(BEA)),
    ("list_documents", {"tableId": "team", "status": "scheduled"}, page_of()),
    ("list_documents", {"tableId": "hero"}, "Collection hero not found."),
    (
        "get_document",
        {"documentId": "team.bea"},
        {"document": {**BEA, "scheduledPublishAt": None, "fields": BEAS_FIELDS}},
    ),
    ("get_document", {"documentId": "team.nobody"}, "Document team.nobody not found."),
    ("get_document", {"documentId": "bea"}, "Document bea not found."),
    ("get_document", {"documentId": "../team/bea"}, "Document ../team/bea not found."),
    ("search_documents", {"query": "bea"}, {"query": "bea", "results": [{**FOUND_BEA, "status": "published"}]}),
    ("search_documents", {"query": "zzz"}, {"query": "zzz", "results": []}),
    (
        "list_users",
        {},
        {"users": [{"id": "ada", "email": "", "displayName": "", "roleSlug": "editor", "roleName": "Editor"}]},
    ),
    (
        "list_media",
        {"query": "LOAF", "mimeType": "image"},
        {
            "total": 1,
            "media": [{**LOAF, "mimeType": "image/webp", "altText": "A loaf of rye", "width": None, "height": None}],
        },
    ),
    ("list_media", {"query": "spelt"}, NO_MEDIA),
    ("list_media", {"mimeType": "video"}, NO_MEDIA),
]


def test_a_server_and_the_store_answer_tools_alike(open_host: Any) -> None:
    assert [call_tool(open_host, name, arguments) for name, arguments, _ in CASES] == [answer for *_, answer in CASES]


def test_a_server_and_the_store_describe_a_collection_alike(open_host: Any) -> None:
    schema = call_tool(open_host, "get_collection_schema", {"tableId": "team"})["collection"]
    listed = call_tool(open_host, "list_collections", {})["collections"]
    own = {"id": "team", "slug": "team", "label": "Team", "kind": "postType", "rowCount": 2, "primaryFieldId": "title"}
    assert own in listed
    assert {name: value for name, value in schema.items() if name != "fields"} == own
    assert [(field["id"], field["type"], field["required"]) for field in schema["fields"]] == [
        (field["id"], field["type"], field.get("required", False)) for field in TEAM_FIELDS
    ]
    assert schema["fields"][3]["options"][0] == {"value": "baker", "label": "baker"}
    assert schema["fields"][5]["targetTableId"] == "team"


@pytest.mark.parametrize("plugin", ["seo", ".."])
def test_a_server_and_the_store_have_no_such_plugin(open_host: Any, plugin: str) -> None:
    assert open_host().list_plugins() == {"plugins": []}
    for act in (open_host().validate_plugin, lambda name: open_host().activate_plugin(name, effect_key="t/1/0")):
        with pytest.raises(HostError) as caught:
            act(plugin)
        assert (caught.value.status, caught.value.is_transient) in ((404, False), (403, False))


def open_store(resources: Resources, **changes: Any) -> ContentHost:
    opened = open_content_host(resources, READER if not changes else HostCaller(**{**vars(READER), **changes}))
    assert opened is not None
    return opened


def get_refusal(host: ContentHost, table: str = "team", **members: Any) -> HostError:
    wanted = {"status": None, "author": None, "limit": 25, "offset": 0} | members
    with pytest.raises(HostError) as caught:
        host.list_documents(table, **wanted)
    return caught.value


def test_the_store_is_read_with_a_right_on_content_and_by_members_only(resources: Resources, shop: SpaceKey) -> None:
    refusal = get_refusal(open_store(resources, capabilities=frozenset({"content.manage"})))
    assert (refusal.status, str(refusal)) == (
        403,
        "The content system (content:shop/main) does not let this user do that: a content space needs ai.content.read.",
    )
    assert "not a member of shop/main" in str(get_refusal(open_store(resources, user="mallory")))


def test_a_member_sees_the_models_and_the_language_of_their_row(resources: Resources, shop: SpaceKey) -> None:
    put_member(resources, SHOP, SpaceMember("ada", "viewer", frozenset({"post", "team"}), frozenset({"de"})))
    put_member(resources, SHOP, SpaceMember("bob", "viewer", frozenset({"post"})))
    texts = {"en": {"excerpt": "Rye"}, "de": {"excerpt": "Roggen"}}
    create_document(resources, SHOP, "post", ADA, DocumentContent(slug="rye", locales=texts), document_id="rye")
    ada, bob = open_store(resources), open_store(resources, user="bob")
    assert ada.get_document("post.rye")["document"]["fields"]["excerpt"] == "Roggen"
    assert bob.get_document("post.rye")["document"]["fields"]["excerpt"] == "Rye"
    assert {table["id"] for table in ada.list_tables()["tables"]} == {"post", "team"}
    assert ada.list_media(query=None, mime_type=None, limit=5) == NO_MEDIA
    assert get_refusal(bob).status == 404
    assert bob.search_documents("bea", limit=5) == {"documents": []}
    with pytest.raises(HostError, match=r"There is no document 'team\.bea'"):
        bob.get_document("team.bea")


def test_a_space_that_is_deleted_in_mid_turn_is_gone_and_not_a_missing_document(
    resources: Resources, shop: SpaceKey
) -> None:
    opened = open_store(resources)
    mark_space_deleted(resources, SHOP)
    refusal = get_refusal(opened)
    assert (refusal.status, refusal.is_transient) == (410, False)
    assert str(refusal).endswith("(410): There is no site shop with an environment main.")
    error = call_tool(lambda: opened, "get_document", {"documentId": "team.bea"})
    assert "no site shop" in error


def test_a_host_of_a_tenant_is_always_a_space_of_that_tenant(resources: Resources, shop: SpaceKey) -> None:
    make_tenant(resources, "smithy")
    for address in ("content:shop/main", "content:shop"):
        with pytest.raises(NotFound, match="no site shop"):
            registry.register_host(resources, "smithy", address)
    for address in ("content:", "content:../bakery", "content:shop/main/x", "content:bakery#s#shop", "content:Shop"):
        with pytest.raises(InvalidRequest, match="lower-case letters"):
            registry.register_host(resources, "bakery", address)
    create_space(resources, SpaceKey("smithy", "shop", "main"), ContentSpace(), ADA)
    registry.register_host(resources, "smithy", "content:shop")
    foreign = open_store(resources, tenant="smithy")
    assert get_refusal(foreign).status == 404


def test_a_tenant_moves_between_a_server_and_the_store(resources: Resources, shop: SpaceKey) -> None:
    stored = registry.read_host(resources, "bakery")
    assert stored is not None
    assert (stored.url, stored.secrets) == ("content:shop/main", ())
    with pytest.raises(InvalidRequest, match="no"):
        registry.rotate_host_secret(resources, "bakery")
    moved, secret = registry.register_host(resources, "bakery", "https://8.8.8.8/cms")
    assert secret
    assert len(moved.secrets) == 1
    assert isinstance(open_content_host(resources, READER), HostClient)
    back, no_secret = registry.register_host(resources, "bakery", "content:shop/main")
    assert (back.secrets, no_secret) == ((), None)


def test_lists_say_when_they_would_read_too_much(
    resources: Resources, shop: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_content_reader, "MAX_LISTED_HEADS", 1)
    for members in ({"offset": 1}, {"status": "draft"}):
        refusal = get_refusal(open_store(resources), **members)
        assert (refusal.status, "the first 1 documents" in str(refusal)) == (422, True)
    monkeypatch.setattr(stored_content_reader, "MAX_LISTED_HEADS", 9)
    monkeypatch.setattr(stored_content_reader, "MAX_READ_DOCUMENTS", 1)
    assert "Ask for fewer" in str(get_refusal(open_store(resources), author="ada"))


def test_an_aborted_answer_reads_nothing_further(
    resources: Resources, shop: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_store(resources)
    read_versions = stored_content_reader.list_documents

    def abort_and_list(*arguments: Any, **options: Any) -> Any:
        opened.abort()
        return read_versions(*arguments, **options)

    monkeypatch.setattr(stored_content_reader, "list_documents", abort_and_list)
    assert "was not waited for: the turn is over" in str(get_refusal(opened))
    monkeypatch.undo()
    assert opened.list_documents("team", status=None, author=None, limit=1, offset=0)["total"] == 2
