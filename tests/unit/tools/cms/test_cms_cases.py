"""The shared cases of the CMS's rules and confirmations, one after the other."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentStatus, DocumentContent
from fermata.tools.cms.navigation_tools import suggest_location
from tests.shared_cases.cms_cases import read_cms_cases
from tests.unit.tools.cms.conftest import AUTHOR, SPACE, CmsAgent

CASES = {case["id"]: case for area in ("cms_rules", "confirmation") for case in read_cms_cases(area)}


def check_first_publication(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G285: what was published before keeps its time."""
    known = case["input"]["existing_publishedAt"]
    content = DocumentContent(slug="rye", title="Rye", status=ContentStatus.ARCHIVED, published_at=known)
    create_document(agent.resources, SPACE, "post", AUTHOR, content)
    post = agent.data(case["input"]["tool"], postSlug="rye")["post"]
    assert {name: post[name] for name in case["expected"]} == case["expected"]


def check_duplicate_slug(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G288: the second page with a slug is refused."""
    agent.data("cms_createPage", name="About", slug="about")
    refused = agent.call(case["input"]["tool"], name="Other", slug="about")
    assert refused.data["errorCode"] == case["expected"]["error"]


def check_slug_form(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G289: a slug of another form is invalid input, and creates nothing."""
    refused = agent.call("cms_createPage", name="About", slug=case["input"]["slug"])
    assert refused.data["errorCode"] == "VALIDATION_FAILED"
    assert agent.data("cms_getPages")["total"] == 0


def make_section(agent: CmsAgent) -> str:
    page_id = agent.data("cms_createPage", name="About")["page"]["id"]
    return str(agent.data("cms_addPageSection", pageId=page_id, sectionDefId="hero")["pageSectionId"])


def check_shallow_merge(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G290: fields are merged one by one, and links become objects."""
    section = make_section(agent)
    for content in (case["input"]["existing"], case["input"]["content"]):
        result = agent.data("cms_syncSectionContent", pageSectionId=section, content=content)["result"]
    assert result["content"] == case["expected"]["stored"]


def check_missing_translation(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G292: a language without content reads as empty."""
    locale = case["input"]["localeCode"]
    read = agent.data(case["input"]["tool"], pageSectionId=make_section(agent), localeCode=locale)
    assert {name: read[name] for name in case["expected"]} == case["expected"]


def check_status_with_category(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G294 tells of a hole of the original, which ignores the status: here both conditions hold."""
    post = {"collectionSlug": "post", "title": "Rye", "content": {"body": "Bread"}, "category": "x"}
    for slug in ("draft-post", "public-post"):
        agent.data("cms_createPost", slug=slug, **post)
    agent.data("cms_publishPost", postSlug="public-post")
    wanted = {"category": case["input"]["category"], "status": case["input"]["status"]}
    listed = agent.data(case["input"]["tool"], collectionSlug="post", **wanted)["posts"]
    assert [one["slug"] for one in listed] == ["draft-post"]


def check_suggested_location(_agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G300 to G304: where a page belongs in the navigation."""
    suggested = suggest_location(case["input"]["name"], case["input"]["slug"])
    assert suggested["suggestedLocation"] == case["expected"]["location"]


def check_confirmation(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G276 and G277: only a confirmed call deletes."""
    agent.data("cms_createPage", name="About", slug="about")
    answer = agent.data(case["input"]["tool"], **case["input"]["input"])
    expected = dict(case["expected"])
    assert (agent.data("cms_getPages")["total"] == 0) == expected.pop("deleted")
    assert {name: answer[name] for name in expected} == expected


def check_bulk_delete(agent: CmsAgent, case: Mapping[str, Any]) -> None:
    """G279: with one section that does not exist, none is deleted."""
    section = make_section(agent)
    page_id = section.partition(".")[0]
    ids = [section, f"{page_id}.missing"]
    refused = agent.call(case["input"]["tool"], pageSectionIds=ids, confirmed=True)
    assert refused.data["errorCode"] == "NOT_FOUND"
    assert agent.data("cms_getPageSections", pageId=page_id)["count"] == 1 - case["expected"]["deleted"]


CHECKS: dict[str, Callable[[CmsAgent, Mapping[str, Any]], None]] = {
    "G276": check_confirmation,
    "G277": check_confirmation,
    "G279": check_bulk_delete,
    "G285": check_first_publication,
    "G288": check_duplicate_slug,
    "G289": check_slug_form,
    "G290": check_shallow_merge,
    "G292": check_missing_translation,
    "G294": check_status_with_category,
    **dict.fromkeys(("G300", "G301", "G302", "G303", "G304"), check_suggested_location),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_of_the_cms_holds(agent: CmsAgent, case: str) -> None:
    CHECKS[case](agent, CASES[case])
