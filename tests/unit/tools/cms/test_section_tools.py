"""Pages are made of sections: added, read one by one, changed field by field, deleted all or none."""

import pytest

from tests.unit.tools.cms.conftest import CmsAgent


@pytest.fixture
def page_id(agent: CmsAgent) -> str:
    return str(agent.data("cms_createPage", name="About")["page"]["id"])


def test_a_page_with_sections_and_content_is_created_at_once(agent: CmsAgent) -> None:
    sections = [{"sectionKey": "hero", "content": {"title": "Hello"}}, {"definitionId": "hero"}]
    made = agent.data("cms_createPageWithContent", title="About us", sections=sections)
    assert [section["sectionKey"] for section in made["page"]["sections"]] == ["hero", "hero"]
    assert made["previewUrl"] == "/pages/about-us?locale=en"
    first = made["page"]["sections"][0]["id"]
    assert agent.data("cms_getSectionContent", pageSectionId=first)["content"] == {"title": "Hello"}


def test_a_page_has_one_hero_that_says_its_name_unless_sections_are_named(agent: CmsAgent) -> None:
    made = agent.data("cms_createPageWithContent", name="Pricing")
    [section] = made["page"]["sections"]
    assert agent.data("cms_getSectionContent", pageSectionId=section["id"])["content"] == {"title": "Pricing"}
    assert agent.data("cms_createPageWithContent", name="Empty", sections=[])["page"]["sections"] == []


def test_with_a_section_that_is_refused_there_is_no_page(agent: CmsAgent) -> None:
    for bad, code in (({"sectionKey": "ghost"}, "NOT_FOUND"), ({"content": {}}, "VALIDATION_FAILED")):
        refused = agent.call("cms_createPageWithContent", name="About", sections=[{"sectionKey": "hero"}, bad])
        assert refused.data["errorCode"] == code
    assert agent.data("cms_getPages")["total"] == 0


def test_a_section_is_added_filled_in_two_languages_and_read_alone(agent: CmsAgent, page_id: str) -> None:
    added = agent.data("cms_addSectionToPage", pageId=page_id, sectionDefId="hero")["pageSectionId"]
    before = agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero", sortOrder=0, status="unpublished")
    agent.data("cms_syncPageContent", pageSectionId=added, content={"title": "A", "ctaLink": "/c"})
    agent.data("cms_syncSectionContent", pageSectionId=added, localeCode="de", content={"title": "Ä"})
    synced = agent.data("cms_syncSectionContent", pageSectionId=added, content={"title": "B"})["result"]
    assert synced["content"] == {"title": "B", "ctaLink": {"href": "/c", "type": "url"}}
    shown = agent.data("cms_getPageSections", pageId=page_id)
    assert [(one["id"], one["sortOrder"], one["status"]) for one in shown["sections"]] == [
        (before["pageSectionId"], 0, "unpublished"),
        (added, 1, "published"),
    ]
    assert "content" not in shown["sections"][0]
    german = agent.data("cms_getPageSections", pageId=page_id, includeContent=True, localeCode="de")
    assert [one["content"] for one in german["sections"]] == [{}, {"title": "Ä"}]


def test_content_of_another_language_or_type_changes_nothing(agent: CmsAgent, page_id: str) -> None:
    section = agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero")["pageSectionId"]
    for arguments in ({"localeCode": "fr", "content": {"title": "A"}}, {"content": {"title": 5}}):
        assert agent.call("cms_syncSectionContent", pageSectionId=section, **arguments).data["errorCode"] == (
            "VALIDATION_FAILED"
        )
    assert agent.data("cms_getSectionContent", pageSectionId=section)["message"] == "no content"


def test_a_repeated_call_adds_one_section(agent: CmsAgent, page_id: str) -> None:
    first = agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero", effect="turn-1/9/0")
    assert agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero", effect="turn-1/9/0") == first
    assert agent.data("cms_getPageSections", pageId=page_id)["count"] == 1


def test_definitions_list_their_slots(agent: CmsAgent) -> None:
    assert [one["key"] for one in agent.data("cms_listSectionTemplates")["sectionDefs"]] == ["hero"]
    [row] = agent.data("cms_getSectionFields", key="hero")["sectionDef"]["elementsStructure"]
    assert [(slot["key"], slot["type"], slot["required"]) for slot in row["slots"]] == [
        ("title", "string", True),
        ("ctaLink", "object", False),
    ]
    for key in ("page", "ghost"):
        assert agent.call("cms_getSectionDef", key=key).data["errorCode"] == "NOT_FOUND"


def test_sections_are_deleted_all_or_none(agent: CmsAgent, page_id: str) -> None:
    one, two, three = (
        agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero")["pageSectionId"] for _ in range(3)
    )
    missing = agent.call("cms_deletePageSections", pageSectionIds=[one, f"{page_id}.ghost"], confirmed=True)
    assert missing.data["errorCode"] == "NOT_FOUND"
    elsewhere = agent.call("cms_deletePageSections", pageSectionIds=[one], pageId="other", confirmed=True)
    assert elsewhere.data["errorCode"] == "VALIDATION_FAILED"
    asked = agent.data("cms_deletePageSections", pageSectionIds=[one, two])
    assert (asked["requiresConfirmation"], asked["sectionCount"]) == (True, 2)
    assert agent.data("cms_getPageSections", pageId=page_id)["count"] == 3
    assert agent.data("cms_deletePageSections", pageSectionIds=[one, two], confirmed=True)["deletedCount"] == 2
    assert agent.call("cms_deletePageSection", pageSectionId=one, confirmed=True).data["errorCode"] == "NOT_FOUND"
    agent.data("cms_deletePageSection", pageSectionId=three, confirmed=True)
    assert agent.data("cms_getPageSections", pageId=page_id)["count"] == 0
