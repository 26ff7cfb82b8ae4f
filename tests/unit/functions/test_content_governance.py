"""Writers of a project publish no further languages over HTTP; large change sets are shown in parts."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from tests.tenant_tokens import make_tenant
from tests.unit.functions.test_content import MANAGER, ContentClient, store_workflow

POST = "shop/main/documents/post"
GERMAN = {"locales": {"de": {"excerpt": "Brot"}}}


@pytest.fixture
def manager(resources: Resources, deployed: None) -> ContentClient:
    """Somebody who manages content, in a project with a post that is published in English."""
    client = ContentClient(make_tenant(resources, "bakery"), MANAGER)
    assert client.send("POST", "spaces", {"site": "shop", "locales": ["en", "de"]}).status == 201
    store_workflow(resources, "auto-merge")
    post = {"id": "news", "slug": "news", "status": "published", "locales": {"en": {"excerpt": "Bread"}}}
    assert client.send("POST", POST, post).status == 201
    return client


def begin_change_set(client: ContentClient) -> str:
    return f"shop/main/change-sets/{client.send('POST', 'shop/main/change-sets', {}).body['changeSet']['id']}"


def read_meta(client: ContentClient) -> dict[str, Any]:
    document = client.send("GET", f"{POST}/news").body["document"]
    assert document["status"] == "published"
    return {locale: known["status"] for locale, known in document["meta"].items() if "status" in known}


@pytest.mark.parametrize("door", ["document", "change set", "import"])
def test_what_a_writer_says_in_a_further_language_is_a_draft_by_every_door(manager: ContentClient, door: str) -> None:
    writer = ContentClient(manager.signer, ["ai.content.write"])
    published = GERMAN | {"statuses": {"de": "published"}}
    if door == "document":
        assert writer.send("PATCH", f"{POST}/news", published).status == 403
        assert writer.send("PATCH", f"{POST}/news", GERMAN).status == 200
    elif door == "change set":
        path = begin_change_set(writer)
        assert writer.send("PATCH", f"{path}/documents/post/news", published).status == 403
        assert writer.send("PATCH", f"{path}/documents/post/news", GERMAN).status == 200
        assert writer.send("POST", f"{path}/merge").status == 200
    else:
        known = {"model": "post", "id": "news", "slug": "news", "status": "published"}
        locales = {"en": {"excerpt": "Bread"}, **GERMAN["locales"]}
        refused = {"documents": [known | {"locales": locales, "statuses": {"de": "published"}}]}
        assert writer.send("POST", "shop/main/import", refused).status == 403
        imported = writer.send("POST", "shop/main/import", {"documents": [known | {"locales": locales}]})
        assert imported.body["items"][0]["outcome"] == "changed"
    assert read_meta(manager) == {"de": "draft"}
    assert writer.send("PATCH", f"{POST}/news", {"statuses": {"de": "published"}}).status == 403
    assert manager.send("PATCH", f"{POST}/news", {"statuses": {"de": "published"}}).status == 200
    assert read_meta(manager) == {}
    again = {"locales": {"de": {"excerpt": "Neu"}}, "statuses": {"de": "published"}}
    assert writer.send("PATCH", f"{POST}/news", again).status == 200, "what is published may be changed"


def test_a_writer_merges_no_language_that_a_manager_has_published_in_the_change_set(manager: ContentClient) -> None:
    writer = ContentClient(manager.signer, ["ai.content.write"])
    path = begin_change_set(manager)
    assert manager.send("PATCH", f"{path}/documents/post/news", GERMAN).status == 200
    refused = writer.send("POST", f"{path}/merge")
    assert (refused.status, "publishes" in refused.body["error"]) == (403, True)
    assert manager.send("POST", f"{path}/merge").status == 200
    assert read_meta(manager) == {}


def test_settings_with_a_preset_that_is_none_are_refused_where_they_are_written(manager: ContentClient) -> None:
    settings = {"locales": {"data": {"config": {"mediaVariants": {"banner": {"wide": {"width": 0}}}}}}}
    refused = manager.send("PATCH", "shop/main/documents/studio-project/main", settings)
    assert (refused.status, "mediaVariants.banner.wide" in refused.body["error"]) == (400, True)
    path = begin_change_set(manager)
    assert manager.send("PATCH", f"{path}/documents/studio-project/main", settings).status == 400


@pytest.mark.parametrize("door", ["new document", "import"])
def test_settings_that_are_new_have_presets_that_are_some_by_every_door(manager: ContentClient, door: str) -> None:
    new = {"id": "main", "locales": {"data": {"config": {"mediaVariants": {"banner": {"wide": {"width": 0}}}}}}}
    if door == "import":
        documents = [new | {"model": "studio-project"}]
        item = manager.send("POST", "shop/main/import", {"documents": documents}).body["items"][0]
        assert (item["outcome"], "mediaVariants.banner.wide" in item["error"]) == ("refused", True)
    else:
        refused = manager.send("POST", "shop/main/documents/studio-project", new)
        assert (refused.status, "mediaVariants.banner.wide" in refused.body["error"]) == (400, True)


def test_a_writer_restores_no_language_that_was_withdrawn_since(manager: ContentClient) -> None:
    writer = ContentClient(manager.signer, ["ai.content.write"])
    both = GERMAN | {"statuses": {"de": "published"}}
    assert manager.send("PATCH", f"{POST}/news", both).status == 200
    assert writer.send("POST", f"{POST}/news/versions/2/restore").status == 200, "what is published stays so"
    assert manager.send("PATCH", f"{POST}/news", {"statuses": {"de": "draft"}}).status == 200
    assert writer.send("POST", f"{POST}/news/versions/2/restore").status == 403
    assert read_meta(manager) == {"de": "draft"}
    assert writer.send("POST", f"{POST}/news/versions/1/restore").status == 200
    assert manager.send("POST", f"{POST}/news/versions/2/restore").status == 200
    assert read_meta(manager) == {}
