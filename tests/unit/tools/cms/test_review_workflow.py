"""The CMS agent changes a site whose workflow is review: in the change set of its conversation, which sees it."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content import working_documents
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_store import discard_change_set, list_change_sets, read_change_set
from fermata.content.change_sets.conversation_change_set import open_conversation_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.change_document import create_document, update_document
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY, read_document, read_newest_version
from fermata.content.files.read_project import PROJECT_MODEL
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import put_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import TextEmbedder, index_documents
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import Forbidden
from fermata.domain.tools import ToolOutput
from tests.images import make_image
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.builders import make_context
from tests.unit.tools.cms.conftest import AUTHOR, RIGHTS, SPACE, CmsAgent, call_tool

__all__ = ["clock", "resources", "shared_resources"]
MAIN_PAGE = DocumentContent(slug="home", title="Home")


class ReviewedAgent(CmsAgent):
    """Works for somebody whose changes are reviewed. One page is there already."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        create_document(resources, SPACE, "page", AUTHOR, MAIN_PAGE, document_id="home")
        put_model(resources, SPACE, PROJECT_MODEL.to_wire(), AUTHOR)
        config = DocumentContent().with_fields(DEFINITION_LOCALE, {"config": {"workflow": "review"}})
        create_document(resources, SPACE, PROJECT_KEY.model, AUTHOR, config, document_id=PROJECT_KEY.id)

    def open(self, *, conversation: str = "conversation-1", effect: str = "") -> OpenedSpace:
        self.calls += 1
        effect = effect or f"turn-1/{self.calls}/0"
        return OpenedSpace(self.resources, SPACE, AUTHOR, effect, conversation=conversation, is_reviewed=True)

    def call(self, tool: str, /, *, effect: str = "", talk: str = "conversation-1", **arguments: Any) -> ToolOutput:
        access = self.open(conversation=talk, effect=effect)
        context = make_context(capabilities=RIGHTS, open_content=lambda: access)
        return call_tool(self.resources, context, tool, arguments)

    @property
    def waiting(self) -> list[ChangeSet]:
        return [one for one in list_change_sets(self.resources, SPACE) if one.status == "open"]

    def is_live(self, page: str) -> bool:
        version = read_newest_version(self.resources, SPACE, DocumentKey("page", page))
        return version is not None and not version.is_deleted


@pytest.fixture
def agent(resources: Resources) -> ReviewedAgent:
    return ReviewedAgent(resources)


def test_the_settings_of_a_project_are_no_entry(agent: ReviewedAgent) -> None:
    settings = f"{PROJECT_KEY.model}.{PROJECT_KEY.id}"
    config = {"config": {"workflow": "auto-merge"}}
    for name, arguments in (
        ("cms_updateEntry", {"entryId": settings, "content": config}),
        ("cms_deleteEntry", {"entryId": settings, "confirmed": True}),
        ("cms_createEntry", {"collectionId": PROJECT_KEY.model, "slug": "x", "title": "x", "content": config}),
    ):
        refused = agent.call(name, **arguments)
        assert (refused.ok, refused.data["errorCode"]) == (False, "NOT_FOUND")
    assert agent.waiting == []


def test_in_a_project_without_reviews_who_manages_content_publishes_posts(agent: ReviewedAgent) -> None:
    def set_config(config: dict[str, Any]) -> None:
        update_document(
            agent.resources, SPACE, PROJECT_KEY, AUTHOR, lambda old: old.with_fields("data", {"config": config})
        )

    set_config({"workflow": "auto-merge"})
    agent.data("cms_createPost", collectionSlug="post", slug="rye", title="Rye", content={"body": "Bread"})
    refused = agent.call("cms_publishPost", postSlug="rye")
    assert (refused.data["errorCode"], "ai.content.manage publishes" in str(refused.error)) == (
        "PERMISSION_DENIED",
        True,
    )
    manager = OpenedSpace(agent.resources, SPACE, AUTHOR, "turn-2/1/0")
    context = make_context(capabilities=RIGHTS, open_content=lambda: manager)
    assert call_tool(agent.resources, context, "cms_publishPost", {"postSlug": "rye"}).ok
    assert agent.data("cms_publishPost", postSlug="rye")["post"]["status"] == "published", "It is already."
    key = DocumentKey(*agent.data("cms_getPost", postSlug="rye")["post"]["id"].split("."))
    update_document(
        agent.resources,
        SPACE,
        key,
        AUTHOR,
        lambda post: post.with_fields("de", {"body": "Brot"}).with_locale_status("de", ContentStatus.DRAFT),
    )
    assert agent.call("cms_publishPost", postSlug="rye").data["errorCode"] == "PERMISSION_DENIED", "a further language"
    agent.data("cms_archivePost", postSlug="rye")
    set_config({"workflow": "auto-merge", "autoPublish": True})
    assert agent.data("cms_publishPost", postSlug="rye")["post"]["status"] == "published"


def test_a_page_is_built_in_the_change_set_of_the_conversation_which_alone_sees_it(agent: ReviewedAgent) -> None:
    made = agent.data("cms_createPage", name="About us")
    page = made["page"]["id"]
    [waiting] = agent.waiting
    assert (made["changeSet"], made["waitsForReview"]) == (waiting.id, True)
    assert made["message"].endswith("live when somebody has reviewed and merged that.")
    section = agent.data("cms_addPageSection", pageId=page, sectionDefId="hero")["pageSectionId"]
    agent.data("cms_syncSectionContent", pageSectionId=section, content={"title": "Bakers since 1902"})
    shown = agent.data("cms_getPage", slug="about-us", includeContent=True)["page"]
    assert [one["content"] for one in shown["sections"]] == [{"title": "Bakers since 1902"}]
    listed = agent.data("cms_getPages")
    assert ([one["slug"] for one in listed["pages"]], listed["total"]) == (["home", "about-us"], 2)
    assert not agent.is_live(page)
    elsewhere = agent.call("cms_getPage", talk="conversation-2", id=page)
    assert elsewhere.data["errorCode"] == "NOT_FOUND"
    merge_change_set(agent.resources, SPACE, waiting.id, AUTHOR)
    assert agent.data("cms_getPage", talk="conversation-2", id=page)["page"]["sectionCount"] == 1
    agent.data("cms_updatePage", id=page, name="Who we are")
    assert [one.id for one in agent.waiting] != [waiting.id], "the next change begins another change set"


def test_what_is_changed_renamed_or_deleted_in_it_is_so_for_the_conversation_only(agent: ReviewedAgent) -> None:
    agent.data("cms_updatePage", id="home", slug="start")
    assert agent.data("cms_getPage", slug="start")["page"]["id"] == "home"
    assert agent.call("cms_getPage", slug="home").data["errorCode"] == "NOT_FOUND"
    assert agent.data("cms_createPage", name="Other", slug="home")["page"]["slug"] == "home", "it is free in there"
    taken = agent.call("cms_createPage", name="Third", slug="start")
    assert (taken.data["errorCode"], taken.conflict) == ("CONFLICT", True)
    assert agent.data("cms_deletePage", id="home", confirmed=True)["waitsForReview"]
    assert [one["slug"] for one in agent.data("cms_getPages")["pages"]] == ["home"]
    assert read_document(agent.resources, SPACE, DocumentKey("page", "home")).content == MAIN_PAGE


def test_a_slug_of_the_site_is_refused_before_the_merge(agent: ReviewedAgent) -> None:
    assert agent.call("cms_createPage", name="Home").data["errorCode"] == "CONFLICT"
    assert [one.documents for one in agent.waiting] == [0]


def test_a_repeated_call_changes_the_change_set_once(agent: ReviewedAgent) -> None:
    first = agent.call("cms_createPage", effect="turn-1/7/0", name="About").data["page"]["id"]
    assert agent.call("cms_createPage", effect="turn-1/7/0", name="About").data["page"]["id"] == first
    for _ in range(2):
        agent.call("cms_toggleNavigationItem", effect="turn-1/8/0", label="Blog")
    [blog] = [one for one in agent.data("cms_getNavigation")["navigationItems"] if one["label"] == "Blog"]
    assert blog["visible"] is False
    [waiting] = agent.waiting
    assert len(read_change_set(agent.resources, SPACE, waiting.id).documents) == 2
    discard_change_set(agent.resources, SPACE, waiting.id)
    assert agent.call("cms_createPage", effect="turn-1/7/0", name="About").data["errorCode"] == "NOT_FOUND"


@pytest.mark.parametrize("page", ["home", "new"])
def test_a_change_set_that_is_closed_while_a_call_runs_is_followed_by_another_one(
    agent: ReviewedAgent, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    agent.data("cms_createPage", name="Before", slug="new")
    [closed] = agent.waiting

    def open_and_discard(*arguments: Any) -> str:
        found = open_conversation_change_set(*arguments)
        if found == closed.id:
            discard_change_set(agent.resources, SPACE, found)
        return found

    monkeypatch.setattr(working_documents, "open_conversation_change_set", open_and_discard)
    updated = agent.call("cms_updatePage", id=agent.data("cms_getPage", slug=page)["page"]["id"], name="Changed")
    assert len(agent.waiting) == 1
    if page == "home":
        assert updated.data["changeSet"] == agent.waiting[0].id != closed.id
    else:
        assert updated.data["errorCode"] == "NOT_FOUND", "the page was in the change set that is discarded"


def test_posts_settings_and_deletions_of_posts_wait_too(agent: ReviewedAgent) -> None:
    agent.data("cms_createPost", collectionSlug="post", slug="rye", title="Rye", content={"body": "Dark"})
    agent.data("cms_updatePost", postSlug="rye", updates={"title": "Dark rye"})
    posts = agent.data("cms_getPosts", collectionSlug="post", status="all")["posts"]
    assert [one["title"] for one in posts] == ["Dark rye"]
    agent.data("cms_updateSiteSettings", settings={"tone": "warm"})
    assert agent.data("cms_getSiteSetting", key="tone")["value"] == "warm"
    [waiting] = agent.waiting
    assert waiting.documents == 2


def test_an_image_waits_once_in_the_change_set_and_is_refused_without_one(agent: ReviewedAgent) -> None:
    raw = make_image(40)
    first = store_asset(agent.open().documents, raw, AssetTexts("rye.jpg", "A loaf"))
    again = store_asset(agent.open().documents, raw, AssetTexts("copy.jpg"))
    assert (first.is_new, again.is_new, again.version.id) == (True, False, first.version.id)
    assert [one["id"] for one in agent.data("cms_listAllImages")["images"]] == [first.version.id]
    folder = f"{SPACE.folder}/media"
    stored = agent.resources.blobs.list_versions(folder)
    with pytest.raises(Forbidden, match="in a change set"):
        store_asset(agent.open(conversation="").documents, make_image(50), AssetTexts("team.jpg"))
    assert agent.resources.blobs.list_versions(folder) == stored, "no file is stored of what is refused"


def test_who_manages_content_changes_the_site_at_once(agent: ReviewedAgent) -> None:
    access = OpenedSpace(agent.resources, SPACE, AUTHOR, "turn-1/99/0", conversation="conversation-1")
    context = make_context(capabilities=RIGHTS, open_content=lambda: access)
    made = call_tool(agent.resources, context, "cms_createPage", {"name": "About"})
    assert agent.is_live(made.data["page"]["id"])
    assert "changeSet" not in made.data
    assert agent.waiting == []


def test_an_image_that_was_deleted_in_it_is_found_no_more_and_hides_no_other_one(agent: ReviewedAgent) -> None:
    forget_catalogues()
    documents = WorkingDocuments(agent.resources, SPACE, AUTHOR)
    gone, other = [
        store_asset(documents, make_image(width=width), AssetTexts("rye.png", f"A loaf of rye {width}")).version
        for width in (30, 40)
    ]
    index_documents(agent.resources, SPACE, [gone.key, other.key], TextEmbedder())
    assert agent.data("cms_findImage", description="loaf of rye 30")["image"]["id"] == gone.id
    for _ in range(2):  # the function died before the first answer was stored
        agent.data("cms_deleteImage", effect="turn-1/5/0", description="A loaf of rye 30")
    assert [one["id"] for one in agent.data("cms_searchImages", query="loaf of rye")["images"]] == [other.id]
    assert agent.data("cms_findImage", description="loaf of rye 30")["image"]["id"] == other.id
    again = agent.call("cms_deleteImage", description="A loaf of rye 30")
    assert again.data["errorCode"] == "NOT_FOUND", "a similar one is not deleted in its place"
    [waiting] = agent.waiting
    assert waiting.documents == 1


def test_a_repeated_deletion_says_again_where_it_waits(agent: ReviewedAgent) -> None:
    said = [agent.data("cms_deletePage", effect="turn-1/9/0", id="home", confirmed=True) for _ in range(2)]
    [waiting] = agent.waiting
    assert [(one["changeSet"], one["waitsForReview"]) for one in said] == [(waiting.id, True)] * 2


def test_a_navigation_item_runs_no_script(agent: ReviewedAgent) -> None:
    refused = agent.call("cms_addNavigationItem", label="Offer", href="java\tscript:alert(1)", location="header")
    assert (refused.data["errorCode"], agent.waiting[0].documents) == ("VALIDATION_FAILED", 0)


def test_what_is_said_in_a_further_language_is_a_draft_where_somebody_else_publishes(agent: ReviewedAgent) -> None:
    resources = agent.resources
    settings = {"config": {"workflow": "auto-merge"}}
    update_document(resources, SPACE, PROJECT_KEY, AUTHOR, lambda content: content.with_fields("data", settings))
    key = DocumentKey("post", "news")
    said = DocumentContent(slug="news", title="News", status=ContentStatus.PUBLISHED, locales={"en": {"body": "Bread"}})
    create_document(resources, SPACE, "post", AUTHOR, said, document_id="news")
    agent.data("cms_updatePost", postSlug="news", localeCode="de", updates={"content": {"body": "Brot"}})
    content = read_document(resources, SPACE, key).content
    assert content is not None
    assert [content.is_published_in(locale) for locale in ("en", "de")] == [True, False]
