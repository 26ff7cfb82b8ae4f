"""The CMS's tools for search and images, from the call of a model to what is stored."""

from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.media.asset_store import AssetTexts, store_asset
from fermata.content.model_store import put_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import PageSection, add_page_section
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import TextEmbedder, index_documents
from fermata.content.sent_image import SentImage
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import ProviderError
from fermata.tools.cms.toolset import CMS_TOOLSET
from fermata.tools.tool import Approval
from tests.images import make_image
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.tools.builders import make_context
from tests.unit.tools.cms.test_cms_tools import AUTHOR, RIGHTS, SPACE, CmsAgent, call_tool

__all__ = ["clock", "resources", "shared_resources"]
BANNER = {
    "id": "banner",
    "kind": "section",
    "fields": {"photo": {"type": "image"}, "photoAlt": {"type": "string"}, "title": {"type": "string"}},
}


class ImageAgent(CmsAgent):
    """Works on a page with a banner, and two images."""

    def __init__(self, resources: Resources) -> None:
        super().__init__(resources)
        forget_catalogues()
        put_model(resources, SPACE, BANNER, AUTHOR)
        self.rye = self._store(make_image(40), "rye.jpg", "A loaf of rye bread")
        self.team = self._store(make_image(50), "team.jpg", "Our bakers at work")
        self.page = self.data("cms_createPage", name="About")["page"]["id"]
        self.section = f"{self.page}.s1"
        section = PageSection(id=self.section, model="banner")
        key = DocumentKey("page", self.page)
        options = OpenedSpace(resources, SPACE, AUTHOR).build_options("banner")
        update_document(resources, SPACE, key, AUTHOR, lambda it: add_page_section(it, section), options)
        index_documents(resources, SPACE, [key, DocumentKey("model", "banner")], TextEmbedder())

    def _store(self, raw: bytes, filename: str, alt: str) -> str:
        version = store_asset(WorkingDocuments(self.resources, SPACE, AUTHOR), raw, AssetTexts(filename, alt)).version
        index_documents(self.resources, SPACE, [version.key], TextEmbedder())
        return version.id

    def read_section(self) -> dict[str, object]:
        content = read_document(self.resources, SPACE, DocumentKey("page", self.page)).content
        assert content is not None
        return dict(content.get_locale("en")[self.section])


@pytest.fixture
def agent(resources: Resources) -> ImageAgent:
    return ImageAgent(resources)


def test_pages_sections_and_images_are_found(agent: ImageAgent) -> None:
    found = agent.data("cms_findResource", query="abuot")
    assert (found["matches"][0]["id"], found["count"]) == (agent.page, 1)
    assert agent.data("cms_findResource", query="baner", resourceType="section")["matches"][0]["id"] == "banner"
    assert agent.data("cms_searchPages", query="about")["matches"][0]["score"] == 1
    assert [one["id"] for one in agent.data("search_vector", query="banner")["results"]] == ["banner"]
    assert agent.data("search_vector", query="rye bread")["results"] == []
    image = agent.data("cms_findImage", description="rye bread")["image"]
    assert (image["id"], image["filename"], image["altText"]) == (agent.rye, "rye.jpg", "A loaf of rye bread")
    images = agent.data("cms_searchImages", query="bakers at work", limit=1)["images"]
    assert [(one["id"], one["relevance"]) for one in images] == [(agent.team, "strong")]
    assert agent.data("cms_listAllImages")["count"] == 2
    assert agent.data("cms_listAllImages", status="failed")["images"] == []


@pytest.mark.parametrize("field", ["imageField", "fieldName"])
def test_an_image_is_put_into_an_image_field_with_its_alternative_text(agent: ImageAgent, field: str) -> None:
    tool = "cms_updateSectionImage" if field == "imageField" else "cms_addImageToSection"
    used = agent.data(tool, pageSectionId=agent.section, imageId=agent.rye, **{field: "photo"})
    assert used["altText"] == "A loaf of rye bread"
    assert used["imageUrl"].endswith(f"/assets/{agent.rye}/files/large")
    assert agent.read_section() == {"photo": f"asset:{agent.rye}", "photoAlt": "A loaf of rye bread"}
    refused = agent.call(tool, pageSectionId=agent.section, imageId=agent.rye, **{field: "title"})
    assert "Its image fields: photo" in str(refused.error)
    missing = agent.call(tool, pageSectionId=agent.section, imageId="gone", **{field: "photo"})
    assert missing.data["errorCode"] == "NOT_FOUND"


def test_an_image_of_the_conversation_becomes_one_of_the_site_when_it_is_used(
    agent: ImageAgent, resources: Resources
) -> None:
    sent = SentImage("sent:7:0", "2027-01-15T10:00:00Z", "Our new oven", "image/jpeg", lambda: make_image(60))

    def call(tool: str, effect: str, **arguments: str) -> Any:
        access = OpenedSpace(resources, SPACE, AUTHOR, effect, list_sent_images=lambda: [sent])
        context = make_context(capabilities=RIGHTS, open_content=lambda: access)
        return call_tool(resources, context, tool, arguments).data

    listed = call("cms_listConversationImages", "turn-1/50/0")["images"]
    assert [(one["id"], one["description"], one["filename"]) for one in listed] == [
        ("sent:7:0", "Our new oven", "sent-7-0.jpeg")
    ]
    assert agent.data("cms_listConversationImages")["images"] == []
    chosen = {"pageSectionId": agent.section, "imageField": "photo", "imageId": "sent:7:0"}
    for effect in ("turn-1/51/0", "turn-1/51/0", "turn-1/52/0"):
        used = call("cms_updateSectionImage", effect, **chosen)
    assert used["success"], used
    [new] = {one["id"] for one in agent.data("cms_listAllImages")["images"]} - {agent.rye, agent.team}
    assert agent.read_section()["photo"] == f"asset:{new}"
    assert agent.call("cms_updateSectionImage", **chosen).data["errorCode"] == "VALIDATION_FAILED"


def test_an_image_is_replaced_where_it_is_used_once_however_often_it_is_asked_for(agent: ImageAgent) -> None:
    agent.data("cms_updateSectionImage", pageSectionId=agent.section, imageId=agent.rye, imageField="photo")
    change = {"oldImageDescription": "A loaf of rye bread", "newImageId": agent.team}
    replaced = agent.data("cms_replaceImage", **change)
    assert (replaced["oldImageId"], replaced["replacementCount"]) == (agent.rye, 1)
    assert agent.read_section()["photo"] == f"asset:{agent.team}"
    assert agent.data("cms_replaceImage", **change)["replacementCount"] == 0


def test_what_is_deleted_or_replaced_is_never_a_guess(agent: ImageAgent) -> None:
    refused = agent.call("cms_replaceImage", oldImageDescription="something nice", newImageId=agent.team)
    assert "Name it by its id" in str(refused.error)
    same = agent.call("cms_replaceImage", oldImageDescription="A loaf of rye bread", newImageId=agent.rye)
    assert "same image" in str(same.error)


def test_an_image_is_deleted_after_an_approval_and_a_flag_replaces_none(agent: ImageAgent) -> None:
    tool = CMS_TOOLSET.find_tool("cms_deleteImage")
    assert tool is not None
    assert (tool.approval, tool.confirmation_flag) == (Approval.ALWAYS, None)


def test_a_search_that_fails_is_an_error_of_the_call(agent: ImageAgent) -> None:
    def fail(_texts: object) -> list[list[float]]:
        raise ProviderError("provider_down", "The model does not answer.", retryable=True)

    access = replace(OpenedSpace(agent.resources, SPACE, AUTHOR), open_embedder=lambda: TextEmbedder("c/m", fail))
    context = make_context(capabilities=RIGHTS, open_content=lambda: access)
    output = call_tool(agent.resources, context, "cms_searchPages", {"query": "about"})
    assert (output.ok, output.data["errorCode"]) == (False, "EXTERNAL_SERVICE_ERROR")
    assert "does not answer" in str(output.error)
