"""Change sets over HTTP page by page, what the caller may do with them, and the rights that a list of spaces names."""

import pytest

from fermata.aws.resources import Resources
from fermata.content.change_sets import changed_document_pages
from tests.tenant_tokens import make_tenant
from tests.unit.functions.test_content import MANAGER, ContentClient, store_workflow

READER, WRITER = ["ai.content.read"], ["ai.content.write"]
REVIEWER = ["ai.content.read", "ai.content.review"]
LIST = "shop/main/change-sets"


@pytest.fixture
def manager(resources: Resources, deployed: None) -> ContentClient:
    client = ContentClient(make_tenant(resources, "bakery"), MANAGER)
    assert client.send("POST", "spaces", {"site": "shop", "locales": ["en", "de"]}).status == 201
    for model in ("faq", "faq-old"):
        body = {"kind": "collection", "fields": {"text": {"type": "text"}}}
        assert client.send("PUT", f"shop/main/models/{model}", body).status == 200
    assert client.send("POST", "shop/main/documents/faq", {"id": "b", "title": "Before"}).status == 201
    return client


def begin(client: ContentClient, *names: str, **headers: str) -> str:
    """Begin a change set with documents, and return its path."""
    path = f"{LIST}/{client.send('POST', LIST, {}, **headers).body['changeSet']['id']}"
    for name in names:
        assert client.send("PATCH", f"{path}/documents/{name}", {"title": f"New {name}"}).status == 200
    return path


def test_a_page_has_each_document_beside_what_it_has_begun_with(manager: ContentClient) -> None:
    path = begin(manager, "faq/a", "faq/b", "faq/b-2", "faq-old/a")
    manager.send("PATCH", "shop/main/documents/faq/b", {"title": "Meanwhile"})
    first = manager.send("GET", f"{path}?limit=2").body
    assert [(one["id"], one.get("base", {}).get("title")) for one in first["documents"]] == [
        ("a", None),
        ("b", "Before"),
    ]
    assert (first["documentsByModel"], first["nextCursor"]) == ({"faq": 3, "faq-old": 1}, "faq/b")
    second = manager.send("GET", f"{path}?limit=2&cursor=faq/b").body
    assert [f"{one['model']}/{one['id']}" for one in second["documents"]] == ["faq/b-2", "faq-old/a"]
    assert "nextCursor" not in second
    of_model = manager.send("GET", f"{path}?limit=9&model=faq-old").body
    assert [one["id"] for one in of_model["documents"]] == ["a"]
    assert manager.send("GET", f"{path}?limit=0").body["documents"] == []
    assert len(manager.send("GET", path).body["documents"]) == 4
    assert manager.send("GET", f"{path}?limit=9&model=faq&cursor=faq-old/a").body["documents"] == [], "of another model"


@pytest.mark.parametrize("query", ["limit=101", "limit=2&cursor=faq", "limit=2&cursor=faq/..", "limit=2&model=a/b"])
def test_what_is_no_page_is_refused(manager: ContentClient, query: str) -> None:
    assert manager.send("GET", f"{begin(manager, 'faq/a')}?{query}").status == 400


@pytest.mark.parametrize("limit", ["", "limit=3&"])
def test_a_page_of_large_documents_ends_early(
    manager: ContentClient, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    path = begin(manager, "faq/a", "faq/b", "faq/c")
    monkeypatch.setattr(changed_document_pages, "_MAX_PAGE_BYTES", 1)
    found, cursor = [], ""
    for _ in range(3):
        page = manager.send("GET", f"{path}?{limit}{cursor}").body
        found += [one["id"] for one in page["documents"]]
        cursor = f"cursor={page.get('nextCursor')}"
    assert (found, cursor) == (["a", "b", "c"], "cursor=None")


def test_a_page_of_deleted_documents_ends_with_what_they_said(
    manager: ContentClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "c"):
        said = {"id": name, "locales": {"data": {"text": "\u00e9" * 100}}}
        assert manager.send("POST", "shop/main/documents/faq", said).status == 201
    path = begin(manager)
    for name in ("a", "c"):
        assert manager.send("PATCH", f"{path}/documents/faq/{name}", {"deleted": True}).status == 200
    monkeypatch.setattr(changed_document_pages, "_MAX_PAGE_BYTES", 1200)
    page = manager.send("GET", f"{path}?limit=3").body
    assert ([one["id"] for one in page["documents"]], page["nextCursor"]) == (["a"], "faq/a")
    assert len(manager.send("GET", path).body["documents"]) == 2


def test_who_sees_a_change_set_is_told_what_the_merge_and_the_discard_would_say(
    manager: ContentClient, resources: Resources
) -> None:
    callers = {
        name: ContentClient(manager.signer, rights)
        for name, rights in {"reader": READER, "writer": WRITER, "reviewer": REVIEWER, "manager": MANAGER}.items()
    }
    bob = manager.signer.bearer_headers("bob", MANAGER)
    for workflow, role in (("auto-merge", None), ("review", None), ("review", "reviewer")):
        store_workflow(resources, workflow)
        if role:
            manager.send("PUT", "shop/main/members/ada", {"role": role})
        for name, caller in callers.items():
            path = begin(caller if name == "writer" and role is None else manager, **({} if name == "writer" else bob))
            told = caller.send("GET", f"{path}?limit=1").body["may"]
            merged = caller.send("POST", f"{path}/merge").status == 200
            path = path if not merged else begin(manager, **bob)
            may_discard = "discard" in caller.send("GET", path).body["may"]
            discarded = caller.send("DELETE", path).status == 200
            assert (workflow, role, name, "merge" in told, may_discard) == (workflow, role, name, merged, discarded)
    assert manager.send("GET", path).body["may"] == []


def test_a_list_of_spaces_says_what_the_caller_may_do_in_each(manager: ContentClient) -> None:
    def rights_of(capabilities: list[str]) -> list[str]:
        [space] = ContentClient(manager.signer, capabilities).send("GET", "spaces").body["spaces"]
        return [*space["rights"]]

    everything = [*MANAGER, "ai.keys.manage"]
    assert rights_of(everything) == ["read", "write", "review", "manage", "keys", "plan"]
    assert rights_of(MANAGER) == ["read", "write", "review", "manage", "plan"]
    assert rights_of([*WRITER, "ai.keys.manage"]) == ["read", "write"]
    assert rights_of([*WRITER, "ai.audit.read"]) == ["read", "write", "plan"]
    assert rights_of(REVIEWER) == ["read", "review"]
    manager.send("PUT", "shop/main/members/bob", {"role": "editor"})
    assert (rights_of(WRITER), rights_of(MANAGER)[:2]) == ([], ["read", "write"])
    for role, expected in (("viewer", ["read"]), ("editor", ["read", "write"]), ("reviewer", ["read", "review"])):
        manager.send("PUT", "shop/main/members/ada", {"role": role})
        assert rights_of([*WRITER, "ai.content.review"]) == expected
    manager.send("PUT", "shop/main/members/ada", {"role": "editor", "locales": ["de"]})
    [space] = ContentClient(manager.signer, WRITER).send("GET", "spaces").body["spaces"]
    assert (space["rights"], space["member"]) == ([], {"user": "ada", "role": "editor", "locales": ["de"]})


def test_documents_that_are_named_are_listed(manager: ContentClient) -> None:
    manager.send("POST", "shop/main/documents/faq", {"id": "a", "title": "First"})
    listed = manager.send("GET", "shop/main/documents/faq?ids=b,none,a,b").body
    assert [(one["id"], one["title"]) for one in listed["documents"]] == [("b", "Before"), ("a", "First")]
    assert manager.send("GET", "shop/main/documents/faq?ids=..").status == 400
    assert manager.send("GET", f"shop/main/documents/faq?ids={','.join(map(str, range(101)))}").status == 400
