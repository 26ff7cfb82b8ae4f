"""Members of a space over HTTP: who is on the list, and what the others are refused."""

import pytest

from fermata.aws.resources import Resources
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.functions.test_content import MANAGER, ContentClient, store_workflow

WRITER = ["ai.content.write"]


@pytest.fixture
def manager(resources: Resources, deployed: None) -> ContentClient:
    client = ContentClient(make_tenant(resources, "bakery"), MANAGER)
    assert client.send("POST", "spaces", {"site": "shop", "locales": ["en", "de"]}).status == 201
    for model in ("recipe", "faq"):
        body = {"kind": "collection", "fields": {"text": {"type": "text"}}}
        assert client.send("PUT", f"shop/main/models/{model}", body).status == 200
        assert client.send("POST", f"shop/main/documents/{model}", {"id": "one"}).status == 201
    return client


def make_writer(signer: TokenSigner) -> tuple[ContentClient, str]:
    """Return a client of the same tenant with fewer rights, and the path of its row."""
    return ContentClient(signer, WRITER), "shop/main/members/ada"


def test_a_list_is_begun_changed_and_deleted(manager: ContentClient) -> None:
    writer, row = make_writer(manager.signer)
    assert manager.send("GET", "shop/main/members").body == {"isListed": False, "members": []}
    assert writer.send("GET", "shop/main/documents/recipe/one").status == 200
    added = manager.send("PUT", "shop/main/members/bob@bakery.example", {"role": "editor"})
    assert (added.status, added.body) == (200, {"member": {"user": "bob@bakery.example", "role": "editor"}})
    refused = writer.send("GET", "shop/main/documents/recipe/one")
    assert (refused.status, "not a member of shop/main" in refused.body["error"]) == (403, True)
    assert manager.send("PUT", row, {"role": "viewer"}).status == 200
    assert writer.send("GET", "shop/main/documents/recipe/one").status == 200
    assert writer.send("PATCH", "shop/main/documents/recipe/one", {"title": "x"}).status == 403
    manager.send("PUT", row, {"role": "editor"})
    assert writer.send("PATCH", "shop/main/documents/recipe/one", {"title": "x"}).status == 200
    assert manager.send("DELETE", row).status == 200
    assert manager.send("DELETE", row).status == 404
    assert writer.send("PATCH", "shop/main/documents/recipe/one", {"title": "y"}).status == 403
    assert manager.send("DELETE", "shop/main/members").status == 200
    assert writer.send("PATCH", "shop/main/documents/recipe/one", {"title": "y"}).status == 200


def test_a_member_of_some_models_sees_no_others(manager: ContentClient) -> None:
    writer, row = make_writer(manager.signer)
    manager.send("PUT", row, {"role": "editor", "models": ["faq"]})
    assert writer.send("GET", "shop/main/documents/faq/one").status == 200
    for path in ("documents/recipe/one", "documents/recipe", "models", "models/recipe", "change-sets", "export"):
        assert (path, writer.send("GET", f"shop/main/{path}").status) == (path, 403)
    manager.send("PUT", row, {"role": "editor", "locales": ["de"]})
    refused = writer.send("GET", "shop/main/documents/faq/one")
    assert (refused.status, "The studio's agent" in refused.body["error"]) == (403, True)


def test_only_reviewers_merge_in_a_space_with_members(manager: ContentClient) -> None:
    writer, row = make_writer(manager.signer)
    manager.send("PUT", row, {"role": "editor"})
    begun = writer.send("POST", "shop/main/change-sets", {}).body["changeSet"]["id"]
    writer.send("PATCH", f"shop/main/change-sets/{begun}/documents/faq/one", {"title": "New"})
    assert writer.send("POST", f"shop/main/change-sets/{begun}/merge").status == 403
    manager.send("PUT", row, {"role": "reviewer"})
    assert writer.send("POST", f"shop/main/change-sets/{begun}/merge").status == 200


def test_who_decides_about_changes_has_the_right_to_review_and_a_row_only_narrows_it(
    manager: ContentClient, resources: Resources
) -> None:
    store_workflow(resources, "review")
    writer, row = make_writer(manager.signer)
    reviewer = ContentClient(manager.signer, ["ai.content.read", "ai.content.review"])
    both = ContentClient(manager.signer, [*WRITER, "ai.content.review"])

    bob = manager.signer.bearer_headers("bob", MANAGER)

    def begin() -> str:
        made = manager.send("POST", "shop/main/change-sets", {}, **bob).body["changeSet"]["id"]
        return f"shop/main/change-sets/{made}"

    waiting = begin()
    for client, role, statuses in (
        (writer, "reviewer", (403, 403)),
        (both, "editor", (403, 403)),
        (ContentClient(manager.signer, ["ai.content.review"]), "reviewer", (403, 403)),
        (reviewer, "reviewer", (200, 200)),
    ):
        manager.send("PUT", row, {"role": role})
        merged = client.send("POST", f"{waiting}/merge")
        discarded = client.send("DELETE", begin())
        assert (client.capabilities, merged.status, discarded.status) == (client.capabilities, *statuses)
    assert reviewer.send("PATCH", "shop/main/documents/faq/one", {"title": "x"}).status == 403


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_only_managers_see_and_change_the_list(manager: ContentClient, method: str) -> None:
    writer, row = make_writer(manager.signer)
    manager.send("PUT", row, {"role": "editor"})
    assert writer.send(method, "shop/main/members").status == 403
    assert writer.send("PUT", row, {"role": "editor"}).status == 403


def test_a_role_that_is_none_is_refused(manager: ContentClient) -> None:
    assert manager.send("PUT", "shop/main/members/bob", {"role": "owner"}).status == 400
    assert manager.send("PUT", "shop/main/members/bob", {"role": "viewer", "locales": ["fr"]}).status == 400
    assert manager.send("PUT", "none/main/members/bob", {"role": "viewer"}).status == 404
    assert manager.send("GET", "none/main/members").status == 404
