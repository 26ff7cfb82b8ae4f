"""Posts begin as drafts, are published by approval, and are listed by status and category together."""

from typing import Any

import pytest

from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.model_store import put_model
from tests.unit.content.conftest import RECIPE
from tests.unit.tools.cms.conftest import AUTHOR, SPACE, CmsAgent

POST: dict[str, Any] = {"collectionSlug": "post", "slug": "rye", "title": "Rye", "content": {"body": "Bread"}}


def test_a_post_is_written_read_and_changed(agent: CmsAgent) -> None:
    made = agent.data("cms_createPost", **POST, category="bread", author="Ada", excerpt="Dark")["post"]
    assert (made["slug"], made["status"]) == ("rye", "draft")
    cover = {"url": "/rye.webp", "alt": "Rye"}
    agent.data("cms_updatePost", postSlug="rye", updates={"title": "Dark rye", "content": {"cover": cover}})
    agent.data("cms_updatePost", postSlug="rye", localeCode="de", updates={"content": {"body": "Brot"}})
    post = agent.data("cms_getPost", postSlug="rye")["post"]
    assert (post["title"], post["author"], post["featuredImage"]) == ("Dark rye", "Ada", "/rye.webp")
    assert post["content"] == {"body": "Bread", "cover": cover}
    assert post["collection"] == {"slug": "post", "name": "Posts"}
    assert agent.data("cms_getPost", postSlug="rye", localeCode="de")["post"]["content"] == {"body": "Brot"}


def test_creating_a_slug_that_is_taken_overwrites_nothing(agent: CmsAgent) -> None:
    agent.data("cms_createPost", **POST)
    taken = agent.call("cms_createPost", **{**POST, "title": "Other"})
    assert taken.data["errorCode"] == "CONFLICT"
    assert agent.data("cms_getPost", postSlug="rye")["post"]["title"] == "Rye"


def test_status_and_category_hold_together(agent: CmsAgent) -> None:
    for slug, category in (("rye", "bread"), ("spelt", "bread"), ("tart", "cake")):
        agent.data("cms_createPost", **{**POST, "slug": slug}, category=category)
    agent.data("cms_publishPost", postSlug="spelt")

    def list_slugs(**arguments: str) -> set[str]:
        listed = agent.data("cms_listPosts", collectionSlug="post", **arguments)["posts"]
        return {post["slug"] for post in listed}

    assert list_slugs() == {"spelt"}
    assert list_slugs(status="draft") == {"rye", "tart"}
    assert list_slugs(status="draft", category="bread") == {"rye"}
    assert list_slugs(status="all", category="bread") == {"rye", "spelt"}
    assert agent.call("cms_getPosts", collectionSlug="page").data["errorCode"] == "NOT_FOUND"


def test_the_first_publication_sets_the_time_for_good(agent: CmsAgent, clock: Any) -> None:
    agent.data("cms_createPost", **POST)
    first = agent.data("cms_publishPost", postSlug="rye")["post"]["publishedAt"]
    agent.data("cms_archivePost", postSlug="rye")
    clock.advance(60)
    again = agent.data("cms_publishPost", postSlug="rye")["post"]
    assert (again["status"], again["publishedAt"]) == ("published", first)


def test_the_status_that_a_call_gives_is_that_of_all_languages_of_a_post(agent: CmsAgent) -> None:
    key = half_publish_post(agent)
    for _ in range(2):
        agent.data("cms_publishPost", postSlug="rye")
    version = read_document(agent.resources, SPACE, key)
    assert version.content is not None
    assert all(map(version.content.is_published_in, ("en", "de")))
    assert version.version == 5, "The second call had nothing to publish."
    agent.data("cms_archivePost", postSlug="rye")
    content = read_document(agent.resources, SPACE, key).content
    assert content is not None
    assert {content.get_status(locale).value for locale in ("en", "de")} == {"archived"}


def test_a_post_whose_published_language_says_nothing_more_is_listed_as_what_is_left(agent: CmsAgent) -> None:
    key = half_publish_post(agent)
    agent.data("cms_updateEntry", entryId=f"{key.model}.{key.id}", localeCode="en", content={"body": None})
    content = read_document(agent.resources, SPACE, key).content
    assert content is not None
    assert (content.status.value, content.list_spoken_locales()) == ("draft", ["de"])


def half_publish_post(agent: CmsAgent) -> DocumentKey:
    """Make a post that is published in English and a draft in German, and return its key. It is at version 4."""
    made = agent.data("cms_createPost", **POST)["post"]
    agent.data("cms_updatePost", postSlug="rye", localeCode="de", updates={"content": {"body": "Brot"}})
    agent.data("cms_publishPost", postSlug="rye")
    key = DocumentKey(*made["id"].split("."))
    update_document(agent.resources, SPACE, key, AUTHOR, lambda post: post.with_statuses(None, {"de": "draft"}))
    return key


def test_a_post_is_deleted_once_also_if_the_call_is_repeated(agent: CmsAgent) -> None:
    agent.data("cms_createPost", **POST)
    for _ in range(2):
        assert agent.data("cms_deletePost", postSlug="rye", effect="turn-1/5/0")["success"] is True
    assert agent.call("cms_deletePost", postSlug="rye").data["errorCode"] == "NOT_FOUND"


def test_a_slug_in_two_collections_is_not_guessed(agent: CmsAgent) -> None:
    put_model(agent.resources, SPACE, RECIPE, AUTHOR)
    agent.data("cms_createPost", **POST)
    recipe = {"collectionId": "recipe", "slug": "rye", "title": "Rye", "content": {"title": "Rye"}}
    agent.data("cms_createEntry", **recipe)
    refused = agent.call("cms_publishPost", postSlug="rye")
    assert refused.data["errorCode"] == "VALIDATION_FAILED"
    assert "post, recipe" in str(refused.error)


@pytest.mark.parametrize("slug", ["ghost", "", "/"])
def test_a_post_that_does_not_exist_is_not_found(agent: CmsAgent, slug: str) -> None:
    for name in ("cms_getPost", "cms_publishPost", "cms_archivePost", "cms_deletePost"):
        assert agent.call(name, postSlug=slug).data["errorCode"] == "NOT_FOUND"
