"""Content over HTTP: spaces, models, documents by version, lists, restore, change sets, and who may do what."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import change_document
from fermata.content.documents.document import ContentAuthor, DocumentContent
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.files.read_project import PROJECT_MODEL
from fermata.content.model_store import put_model
from fermata.domain.caller import Caller
from fermata.domain.use_limits import CallerLimits
from fermata.wire.http.routing import RequestContext
from functions.api import app
from functions.redraw_images import app as redraw_images
from tests.images import make_image
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.uploads import put_upload

MANAGER = ["ai.content.manage"]
PAGES = "shop/main/documents/page"


class Answer(NamedTuple):
    status: int
    body: Any
    etag: str


class ContentClient:
    """Sends requests of somebody with some capabilities."""

    def __init__(self, signer: TokenSigner, capabilities: list[str]) -> None:
        self.signer, self.capabilities = signer, capabilities

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = self.signer.bearer_headers(capabilities=self.capabilities) | own
        path, _, query = path.partition("?")
        event = make_proxy_event(method, f"/admin/api/ai/content/{path}", sent, body)
        event["queryStringParameters"] = dict(parse_qsl(query))
        answer = app.handler(event, None)
        given = {name.lower(): value for name, value in answer["headers"].items()}
        return Answer(answer["statusCode"], json.loads(answer["body"] or "null"), given.get("etag", ""))


@pytest.fixture
def client(resources: Resources, deployed: None) -> ContentClient:
    client = ContentClient(make_tenant(resources, "bakery"), MANAGER)
    assert client.send("POST", "spaces", {"site": "shop", "locales": ["en", "de"]}).status == 201
    assert client.send("PUT", "shop/main/models/hero", {"kind": "section"}).body["model"]["version"] == 1
    return client


def create_page(client: ContentClient, slug: str = "about", **headers: str) -> Answer:
    sections = [{"id": f"{slug}.s1", "model": "hero"}]
    page = {"id": slug, "slug": slug, "title": "About", "locales": {"data": {"sections": sections}}}
    return client.send("POST", PAGES, page, **headers)


def test_a_page_is_created_changed_read_and_listed(client: ContentClient) -> None:
    created = create_page(client)
    assert (created.status, created.etag, created.body["document"]["parts"]) == (201, '"1"', {"hero": 1})
    texts = {"de": {"about.s1": {"title": "Über uns"}}}
    changed = client.send("PATCH", f"{PAGES}/about", {"locales": texts}, if_match='"1"')
    assert (changed.status, changed.etag) == (200, '"2"')
    shown = client.send("GET", f"{PAGES}/about")
    assert shown.body["document"]["locales"]["de"] == texts["de"]
    assert client.send("GET", f"{PAGES}/about", if_none_match='"2"') == (304, None, '"2"')
    listed = client.send("GET", PAGES).body
    assert [(one["id"], one["version"]) for one in listed["documents"]] == [("about", 2)]
    assert listed["total"] == 1


def test_a_change_of_something_else_than_was_seen_is_refused(client: ContentClient) -> None:
    create_page(client)
    client.send("PATCH", f"{PAGES}/about", {"title": "B"})
    late = client.send("PATCH", f"{PAGES}/about", {"title": "A"}, if_match='"1"')
    assert (late.status, late.body["version"]) == (412, 2)
    assert client.send("DELETE", f"{PAGES}/about", if_match='"1"').status == 412
    assert client.send("PATCH", f"{PAGES}/about", {"title": "A"}, if_match="yesterday").status == 400


def test_a_slug_that_is_taken_is_refused_with_its_owner(client: ContentClient) -> None:
    create_page(client)
    again = client.send("POST", PAGES, {"slug": "about", "title": "Second"})
    assert (again.status, again.body["owner"], again.body["field"]) == (409, "page/about", "slug")
    assert create_page(client).status == 409, "the same id"


def test_a_repeated_request_is_carried_out_once(client: ContentClient) -> None:
    first = create_page(client, idempotency_key="k1")
    assert create_page(client, idempotency_key="k1") == first
    client.send("PATCH", f"{PAGES}/about", {"title": "B"}, idempotency_key="k2")
    client.send("PATCH", f"{PAGES}/about", {"title": "C"})
    client.send("PATCH", f"{PAGES}/about", {"title": "B"}, idempotency_key="k2")
    assert client.send("GET", f"{PAGES}/about").body["document"]["title"] == "C"


def test_a_deleted_page_is_restored_from_its_versions(client: ContentClient) -> None:
    create_page(client)
    assert client.send("DELETE", f"{PAGES}/about").status == 200
    assert client.send("GET", f"{PAGES}/about").status == 404
    versions = client.send("GET", f"{PAGES}/about/versions").body["versions"]
    assert [(one["version"], one["deleted"], one["user"]) for one in versions] == [(2, True, "ada"), (1, False, "ada")]
    assert client.send("POST", f"{PAGES}/about/versions/2/restore").status == 404
    assert client.send("POST", f"{PAGES}/about/versions/1/restore").body["document"]["version"] == 3
    found = client.send("GET", f"{PAGES}?slug=about").body["documents"]
    assert [(one["id"], one["version"]) for one in found] == [("about", 3)]
    assert client.send("GET", f"{PAGES}?slug=other").body["documents"] == []
    older = client.send("GET", f"{PAGES}/about/versions?limit=2").body
    assert older["nextBefore"] == 2


def test_what_breaks_the_rules_of_a_model_is_refused_with_its_problems(client: ContentClient) -> None:
    refused = client.send("POST", PAGES, {"title": "About", "locales": {"fr": {}}})
    assert refused.status == 400
    assert refused.body["code"] == "contentInvalid"
    assert [one["kind"] for one in refused.body["problems"]] == ["required", "locale"]
    broken = {"slug": "x-y", "locales": {"data": {"sections": [{"id": 7}]}}}
    assert client.send("POST", PAGES, broken).status == 400
    assert client.send("POST", "shop/main/documents/model", {"title": "M"}).status == 400
    assert client.send("PATCH", f"{PAGES}/about", {"locales": {"data": {"sections": "none"}}}).status == 404


def test_a_change_set_is_seen_when_it_is_merged_and_says_its_conflicts(client: ContentClient) -> None:
    create_page(client)
    name = client.send("POST", "shop/main/change-sets", {"title": "Spring"}).body["changeSet"]["id"]
    path = f"shop/main/change-sets/{name}"
    assert client.send("PATCH", f"{path}/documents/page/about", {"title": "Ours"}).status == 200
    assert client.send("GET", f"{PAGES}/about").body["document"]["title"] == "About"
    client.send("PATCH", f"{PAGES}/about", {"title": "Theirs"})
    refused = client.send("POST", f"{path}/merge")
    assert (refused.status, refused.body["code"]) == (409, "mergeConflict")
    assert refused.body["conflicts"][0]["fields"] == [
        {"field": "title", "base": "About", "theirs": "Theirs", "ours": "Ours"}
    ]
    assert client.send("POST", f"{path}/merge", {"prefer": "ours"}).body["changeSet"]["status"] == "merged"
    assert client.send("GET", f"{PAGES}/about").body["document"]["title"] == "Ours"
    assert client.send("GET", path).body["documents"] == []
    assert client.send("DELETE", path).status == 409


def test_the_health_of_a_space_names_what_is_wrong_in_its_models_and_counts_what_waits(client: ContentClient) -> None:
    create_page(client)
    fields = {"author": {"type": "relation", "model": "nobody"}, "level": {"type": "select"}}
    client.send("PUT", "shop/main/models/recipe", {"kind": "collection", "title": "Recipes", "fields": fields})
    client.send("POST", "shop/main/change-sets", {"title": "Spring"})
    health = client.send("GET", "shop/main/health").body
    found = {(one["model"], one["field"], one["kind"], one["severity"]) for one in health["warnings"]}
    assert {
        ("recipe", "author", "relation_target", "critical"),
        ("recipe", "level", "select_options", "error"),
    } <= found
    assert (health["valid"], health["healthScore"] < 70) == (False, True)
    assert {model for model, *_ in found} <= {"recipe", "hero", "page"}
    assert health["changeSets"] == {"status": "ok", "open": 1, "warnFrom": 50, "refuseFrom": 80}
    assert client.send("GET", "nowhere/main/health").status == 404


def test_a_model_is_changed_at_the_version_that_was_seen_and_not_deleted_while_it_is_used(
    client: ContentClient,
) -> None:
    create_page(client)
    assert client.send("DELETE", "shop/main/models/hero").status == 409
    assert client.send("PUT", "shop/main/models/hero", {"kind": "section", "title": "H"}, if_match='"1"').etag == '"2"'
    assert client.send("PUT", "shop/main/models/hero", {"kind": "section"}, if_match='"1"').status == 412
    assert client.send("POST", "shop/main/documents/model/hero/versions/1/restore").body["document"]["version"] == 3


def test_a_model_that_was_shown_is_put_again_as_it_is(client: ContentClient) -> None:
    definition = {"kind": "collection", "domain": "shop-window", "fields": {"title": {"type": "string"}}}
    shown = client.send("PUT", "shop/main/models/recipe", definition).body["model"]
    assert shown["domain"] == "shop-window"
    own = {name: value for name, value in shown.items() if name not in ("id", "builtIn", "version", "documents")}
    again = client.send("PUT", "shop/main/models/recipe", own)
    assert (again.status, again.body["model"] | {"version": 1}) == (200, shown)


def test_a_model_whose_documents_may_not_fit_any_more_is_refused_if_that_is_asked_for(client: ContentClient) -> None:
    path, fields = "shop/main/models/recipe", {"title": {"type": "string"}, "servings": {"type": "integer"}}
    other = {"title": {"type": "text", "required": True}}
    client.send("PUT", path, {"kind": "collection", "fields": other})
    assert client.send("PUT", f"{path}?breaking=refuse", {"kind": "collection", "fields": fields}).status == 200
    client.send("POST", "shop/main/documents/recipe", {"locales": {"data": {"title": "Rye"}}})
    changed = {"kind": "collection", "fields": other}
    refused = client.send("PUT", f"{path}?breaking=refuse", changed)
    assert (refused.status, refused.body["code"]) == (409, "breakingChanges")
    assert refused.body["breakingChanges"] == {"recipe": ["title: type", "servings: removed", "title: required"]}
    assert client.send("PUT", f"{path}?breaking=no", changed).status == 400
    assert client.send("PUT", path, changed).body["model"]["fields"]["title"]["type"] == "text"


def test_documents_that_say_nothing_in_a_language_are_listed(client: ContentClient) -> None:
    definition = {"kind": "collection", "i18n": True, "fields": {"name": {"type": "string"}}}
    client.send("PUT", "shop/main/models/bread", definition)
    path = "shop/main/documents/bread"
    for name, locales in (("a", ["en", "de"]), ("b", ["en"]), ("c", ["en"])):
        client.send("POST", path, {"id": name, "locales": {locale: {"name": name} for locale in locales}})
    first = client.send("GET", f"{path}?missing=de&limit=1").body
    assert ([one["id"] for one in first["documents"]], first["total"]) == (["b"], 3)
    second = client.send("GET", f"{path}?missing=de&limit=1&cursor={first['nextCursor']}").body
    assert ([one["id"] for one in second["documents"]], second.get("nextCursor")) == (["c"], None)


def test_members_that_an_import_has_brought_stay_in_a_model_and_no_others_come(
    client: ContentClient, resources: Resources
) -> None:
    definition = {"kind": "collection", "fields": {"name": {"type": "string"}}}
    imported = definition | {"id": "bread", "title_field": "name"}
    put_model(resources, SpaceKey("bakery", "shop"), imported, ContentAuthor("ada", "import"))
    path = "shop/main/models/bread"
    for body in (definition, definition | {"title_field": "name", "title": "Breads"}):
        assert client.send("PUT", path, body).body["model"]["title_field"] == "name"
    refused = client.send("PUT", path, definition | {"feilds": {}})
    assert (refused.status, refused.body["error"]) == (400, "Invalid request body. 'feilds' is not known here.")


def test_a_model_needs_a_domain_that_can_name_a_folder(client: ContentClient) -> None:
    refused = client.send("PUT", "shop/main/models/recipe", {"kind": "collection", "domain": "../secrets"})
    assert refused.status == 400
    assert "domain" in refused.body["error"]


@pytest.mark.parametrize(
    ("capability", "reads", "writes", "manages"),
    [("ai.content.read", 200, 403, 403), ("ai.content.write", 200, 200, 403), ("ai.chat", 403, 403, 403)],
)
def test_rights_are_to_read_to_write_and_to_manage(
    client: ContentClient, capability: str, reads: int, writes: int, manages: int
) -> None:
    create_page(client)
    other = ContentClient(client.signer, [capability])
    assert other.send("GET", f"{PAGES}/about").status == reads
    assert other.send("PATCH", f"{PAGES}/about", {"title": "T"}).status == writes
    assert other.send("PUT", "shop/main/models/hero", {"kind": "section"}).status == manages
    client.send("PUT", "shop/main/models/hero", {"kind": "section", "title": "Hero"})
    assert other.send("POST", "shop/main/documents/model/hero/versions/1/restore").status == 403


def test_a_translated_model_is_defined_as_the_page_about_content_shows(client: ContentClient) -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "content.md"
    (definition,) = re.findall(r"models/recipe .*?-d '(.*?)'", page.read_text(encoding="utf-8"), re.DOTALL)
    (document,) = re.findall(r"documents/recipe -d '(.*?)'", page.read_text(encoding="utf-8"))
    model = client.send("PUT", "shop/main/models/recipe", json.loads(definition)).body["model"]
    assert (model["i18n"], list(model["fields"])) == (True, ["title", "code"])
    assert client.send("POST", "shop/main/documents/recipe", json.loads(document)).status == 201


def test_another_tenant_finds_nothing(client: ContentClient, resources: Resources) -> None:
    create_page(client)
    florist = ContentClient(make_tenant(resources, "florist"), MANAGER)
    for path in (PAGES, f"{PAGES}/about", "shop/main/models", f"{PAGES}/about/versions", "shop/main/change-sets"):
        assert florist.send("GET", path).status == 404
    assert florist.send("GET", "spaces").body == {"spaces": []}


LONG_TEXT = {"en": {"about.s1": {"title": "Bread " * 20_000}}}


@pytest.fixture
def admitted_bytes(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a user store a large page twice a day, and half of it once more."""
    allowed = 300_000
    limits = CallerLimits()
    limits = replace(limits, user=replace(limits.user, bytes_per_day=allowed))
    monkeypatch.setattr(RequestContext, "caller_limits", property(lambda _context: limits))
    return allowed


def store_long_page(client: ContentClient) -> None:
    create_page(client)
    assert client.send("PATCH", f"{PAGES}/about", {"locales": LONG_TEXT}).status == 200
    assert client.send("PATCH", f"{PAGES}/about", {"title": "Bread"}).status == 200


def test_a_small_change_of_a_large_document_counts_the_version_that_it_stores(
    client: ContentClient, admitted_bytes: int
) -> None:
    store_long_page(client)
    assert client.send("PATCH", f"{PAGES}/about", {"title": "Bread"}).status == 200, (
        "what changes nothing stores nothing"
    )
    refused = client.send("PATCH", f"{PAGES}/about", {"title": "Rye"})
    assert (refused.status, refused.body["error"].startswith("You may store 300,000 bytes a day")) == (429, True)
    assert client.send("GET", f"{PAGES}/about").body["document"]["title"] == "Bread"


def test_a_restoration_counts_the_version_that_it_stores(client: ContentClient, admitted_bytes: int) -> None:
    store_long_page(client)
    assert client.send("POST", f"{PAGES}/about/versions/1/restore").status == 200
    assert client.send("POST", f"{PAGES}/about/versions/2/restore").status == 429
    assert client.send("GET", f"{PAGES}/about").etag == '"4"'


def test_a_change_set_counts_what_it_keeps_and_what_it_merges(client: ContentClient, admitted_bytes: int) -> None:
    create_page(client)
    path = f"shop/main/change-sets/{client.send('POST', 'shop/main/change-sets', {}).body['changeSet']['id']}"
    changed = {"locales": LONG_TEXT}
    assert client.send("PATCH", f"{path}/documents/page/about", changed).status == 200
    assert client.send("PATCH", f"{PAGES}/about", {"locales": {"de": LONG_TEXT["en"]}}).status == 200
    assert client.send("POST", f"{path}/merge").status == 429
    assert client.send("GET", path).body["changeSet"]["status"] == "open"


def test_changes_of_writers_wait_in_change_sets_where_the_workflow_is_review(
    client: ContentClient, resources: Resources
) -> None:
    create_page(client)
    store_workflow(resources, "review")
    writer = ContentClient(client.signer, ["ai.content.write"])
    version = f"{PAGES}/about/versions/1/restore"
    refused = [
        create_page(writer, "prices"),
        writer.send("PATCH", f"{PAGES}/about", {"title": "Hers"}),
        writer.send("POST", version),
        writer.send("DELETE", f"{PAGES}/about"),
    ]
    assert {(one.status, one.body["code"]) for one in refused} == {(403, "reviewRequired")}
    stale = writer.send("PATCH", f"{PAGES}/about", {"title": "Hers"}, if_match='"9"')
    assert stale.status == 412, "It would not wait as somebody has seen it."
    name = writer.send("POST", "shop/main/change-sets", {"title": "Hers"}).body["changeSet"]["id"]
    path = f"shop/main/change-sets/{name}"
    assert writer.send("PATCH", f"{path}/documents/page/about", {"title": "Hers"}).status == 200
    assert writer.send("PATCH", f"{path}/documents/model/hero", {"title": "Hers"}).status == 403
    assert writer.send("POST", f"{path}/merge").status == 403
    reviewer = ContentClient(client.signer, ["ai.content.write", "ai.content.review"])
    assert reviewer.send("POST", f"{path}/merge").status == 200
    assert client.send("PATCH", f"{PAGES}/about", {"title": "A manager's"}).status == 200
    store_workflow(resources, "auto-merge")
    assert writer.send("PATCH", f"{PAGES}/about", {"title": "Hers"}).status == 200


def test_in_a_project_only_who_manages_content_publishes_and_changes_its_settings(
    client: ContentClient, resources: Resources
) -> None:
    create_page(client)
    writer = ContentClient(client.signer, ["ai.content.write"])
    published, settings = {"status": "published"}, f"shop/main/documents/{PROJECT_KEY.model}/{PROJECT_KEY.id}"
    assert writer.send("PATCH", f"{PAGES}/about", published).status == 200, "It is no project yet."
    assert writer.send("PATCH", f"{PAGES}/about", {"status": "draft"}).status == 200
    store_workflow(resources, "auto-merge")
    path = f"shop/main/change-sets/{writer.send('POST', 'shop/main/change-sets', {}).body['changeSet']['id']}/documents"
    imported = {"model": "page", "id": "prices", "title": "Prices", "slug": "prices"}
    refused = [
        writer.send("PATCH", f"{PAGES}/about", published),
        writer.send("POST", PAGES, {"id": "prices", "title": "Prices", "slug": "prices"} | published),
        writer.send("PATCH", f"{path}/page/about", published),
        writer.send("POST", f"{PAGES}/about/versions/2/restore"),
        writer.send("POST", "shop/main/import", {"documents": [imported | published]}),
    ]
    assert [(one.status, "publishes. Save a draft" in one.body["error"]) for one in refused] == [(403, True)] * 5
    twice = [imported | {"id": "a/b"} | published, imported | published, imported]
    assert writer.send("POST", "shop/main/import", {"documents": twice}).status == 403
    [wrong] = writer.send("POST", "shop/main/import", {"documents": twice[:1]}).body["items"]
    assert wrong["outcome"] == "refused"
    config = {"locales": {"data": {"config": {"autoPublish": True}}}}
    refused = [
        writer.send("PATCH", settings, config),
        writer.send("DELETE", settings),
        writer.send("PATCH", f"{path}/{PROJECT_KEY.model}/{PROJECT_KEY.id}", config),
        writer.send("POST", f"{settings}/versions/1/restore"),
    ]
    assert [(one.status, "settings of a project need" in one.body["error"]) for one in refused] == [(403, True)] * 4
    assert client.send("PATCH", f"{PAGES}/about", published).status == 200
    assert writer.send("PATCH", f"{PAGES}/about", {"title": "Hers"} | published).status == 200, "It was published."
    assert client.send("PATCH", settings, config).status == 200
    assert writer.send("POST", PAGES, {"id": "prices", "title": "Prices", "slug": "prices"} | published).status == 201


def test_who_merges_without_being_a_reviewer_needs_the_rights_for_the_changes_themselves(
    client: ContentClient, resources: Resources
) -> None:
    create_page(client)
    store_workflow(resources, "auto-merge")
    writer = ContentClient(client.signer, ["ai.content.write"])
    reviewer = ContentClient(client.signer, ["ai.content.read", "ai.content.review"])

    def begin(document: str, body: dict[str, Any], who: ContentClient = client) -> str:
        path = f"shop/main/change-sets/{who.send('POST', 'shop/main/change-sets', {}).body['changeSet']['id']}"
        assert who.send("PATCH", f"{path}/documents/{document}", body).status == 200
        return path

    published = begin("page/about", {"status": "published"})
    for path in (begin("model/hero", {"title": "Banner"}), published):
        assert writer.send("POST", f"{path}/merge").status == 403
    assert client.send("GET", f"{PAGES}/about").body["document"]["status"] == "draft"
    assert reviewer.send("POST", f"{published}/merge").status == 200
    hers = begin("page/about", {"title": "Hers"}, writer)
    assert client.send("PATCH", f"{PAGES}/about", {"status": "draft"}).status == 200
    assert writer.send("POST", f"{hers}/merge").status == 200, "She publishes nothing."
    document = client.send("GET", f"{PAGES}/about").body["document"]
    assert (document["title"], document["status"]) == ("Hers", "draft")
    assert client.send("PATCH", f"{PAGES}/about", {"status": "published"}).status == 200
    late = begin("page/about", {"title": "Later"}, writer)
    assert client.send("DELETE", f"{PAGES}/about").status == 200
    assert writer.send("POST", f"{late}/merge", {"prefer": "ours"}).status == 403, "It would be published again."
    assert reviewer.send("POST", f"{late}/merge", {"prefer": "ours"}).status == 200


def test_changes_of_others_that_wait_are_discarded_by_who_may_merge_them(
    client: ContentClient, resources: Resources
) -> None:
    store_workflow(resources, "review")
    writer = ContentClient(client.signer, ["ai.content.write"])
    bob = client.signer.bearer_headers("bob", writer.capabilities)
    reviewer = client.signer.bearer_headers("bob", [*writer.capabilities, "ai.content.review"])

    def begin() -> str:
        return f"shop/main/change-sets/{writer.send('POST', 'shop/main/change-sets', {}).body['changeSet']['id']}"

    waiting = begin()
    for headers, own in (({}, True), (bob, False)):
        listed = writer.send("GET", "shop/main/change-sets", **headers).body["changeSets"]
        assert [one["own"] for one in listed] == [own]
    refused = writer.send("DELETE", waiting, **bob)
    assert (refused.status, "are discarded by who has ai.content.review" in refused.body["error"]) == (403, True)
    assert writer.send("GET", waiting).body["changeSet"]["status"] == "open"
    assert writer.send("DELETE", waiting, **reviewer).status == 200
    assert writer.send("DELETE", begin()).status == 200, "It is her own."
    store_workflow(resources, "auto-merge")
    assert writer.send("DELETE", begin(), **bob).status == 200, "Nothing waits for a review here."


def test_images_of_writers_wait_in_a_change_set_where_the_workflow_is_review(
    client: ContentClient, resources: Resources
) -> None:
    store_workflow(resources, "review")
    writer = ContentClient(client.signer, ["ai.content.write"])
    ada = Caller(tenant="bakery", user="ada", capabilities=frozenset(writer.capabilities))
    body = {"uploadRef": put_upload(resources, ada, "image", make_image()), "filename": "rye.jpg"}
    refused = store_image(writer, body)
    assert (refused.status, refused.body["code"]) == (403, "reviewRequired")
    assert refused.body["uploadRef"] == body["uploadRef"], "it is stored in a change set without another upload"
    assert store_image(writer, body | {"changeSet": "none"}).status == 404
    name = writer.send("POST", "shop/main/change-sets", {}).body["changeSet"]["id"]
    stored = [store_image(writer, body | {"changeSet": name}) for _ in range(2)]
    assert [one.status for one in stored] == [201, 200]
    assert {one.body["document"]["changeSet"] for one in stored} == {name}
    file = f"shop/main/assets/{stored[0].body['document']['id']}/files/original"
    assert writer.send("GET", file).status == 404
    assert writer.send("GET", f"{file}?changeSet={name}", accept="application/json").status == 200
    reviewer = ContentClient(client.signer, ["ai.content.write", "ai.content.review"])
    assert reviewer.send("POST", f"shop/main/change-sets/{name}/merge").status == 200
    assert writer.send("GET", file, accept="application/json").status == 200
    other = writer.send("POST", "shop/main/change-sets", {}).body["changeSet"]["id"]
    again = store_image(writer, body | {"changeSet": other})
    assert (again.status, again.body["document"]["changeSet"]) == (200, name), "it is live, and does not wait"


def store_image(client: ContentClient, body: dict[str, Any]) -> Answer:
    sent = client.signer.bearer_headers(capabilities=client.capabilities)
    answer = redraw_images.handler(make_proxy_event("POST", "/admin/api/ai/assets/shop/main", sent, body), None)
    return Answer(answer["statusCode"], json.loads(answer["body"]), "")


def store_workflow(resources: Resources, workflow: str) -> None:
    space, author = SpaceKey("bakery", "shop"), ContentAuthor("ada")
    put_model(resources, space, PROJECT_MODEL.to_wire(), author)
    content = DocumentContent(title="Project").with_fields("data", {"config": {"workflow": workflow}})
    change_document(resources, space, PROJECT_KEY, author, lambda _before, _basis: content)
