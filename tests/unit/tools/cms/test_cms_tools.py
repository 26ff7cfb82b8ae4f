"""The CMS's tools for pages and entries, from the call of a model to what is stored."""

import secrets
from dataclasses import replace

import pytest

from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.document_history import restore_document
from fermata.content.documents.read_document import read_document
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import PageSection, add_page_section, merge_section_content
from fermata.domain.caller import Capability
from fermata.tools.cms.page_tools import make_slug
from tests.unit.tools.builders import make_context
from tests.unit.tools.cms.conftest import AUTHOR, RIGHTS, SPACE, CmsAgent, call_tool


def test_a_page_is_created_found_changed_and_listed(agent: CmsAgent) -> None:
    page = agent.data("cms_createPage", name="Über uns")["page"]
    assert (page["slug"], page["indexing"]) == ("uber-uns", True)
    changed = agent.data("cms_updatePage", id=page["id"], slug="about", meta={"title": "About"})["page"]
    assert changed["meta"] == {"title": "About"}
    assert agent.data("cms_getPage", slug="/about")["page"] == changed
    listed = agent.data("cms_listPages")
    assert (listed["pages"], listed["total"]) == ([{"id": page["id"], "name": "Über uns", "slug": "about"}], 1)


def test_a_page_is_read_in_two_steps(agent: CmsAgent) -> None:
    page_id = agent.data("cms_createPage", name="About")["page"]["id"]
    section = PageSection(id=f"{page_id}.s1", model="hero")
    access = OpenedSpace(agent.resources, SPACE, AUTHOR)
    update_document(
        agent.resources,
        SPACE,
        DocumentKey("page", page_id),
        AUTHOR,
        lambda page: merge_section_content(
            add_page_section(page, section), section.id, "en", {"title": "A", "ctaLink": "/c"}
        ),
        access.build_options("hero"),
    )
    assert agent.data("cms_getPage", id=page_id)["page"]["sectionIds"] == [section.id]
    [shown] = agent.data("cms_getPage", id=page_id, includeContent=True)["page"]["sections"]
    assert shown["content"] == {"title": "A", "ctaLink": {"href": "/c", "type": "url"}}
    [empty] = agent.data("cms_getPage", id=page_id, includeContent=True, localeCode="de")["page"]["sections"]
    assert empty["content"] == {}


def test_a_slug_that_is_taken_is_a_conflict_and_one_of_another_form_is_invalid(agent: CmsAgent) -> None:
    agent.data("cms_createPage", name="About")
    taken = agent.call("cms_createPage", name="About")
    assert not taken.ok
    assert taken.data["errorCode"] == "CONFLICT"
    assert not agent.call("cms_createPage", name="About", slug="About Us").ok
    assert agent.data("cms_getPages")["total"] == 1


def test_a_page_is_deleted_only_when_it_is_confirmed_and_comes_back(agent: CmsAgent) -> None:
    page_id = agent.data("cms_createPage", name="About")["page"]["id"]
    assert agent.data("cms_deletePage", slug="about")["requiresConfirmation"] is True
    assert agent.data("cms_getPages")["total"] == 1
    assert agent.data("cms_deletePage", slug="about", confirmed=True)["success"] is True
    assert agent.call("cms_getPage", slug="about").data["errorCode"] == "NOT_FOUND"
    restore_document(agent.resources, SPACE, DocumentKey("page", page_id), 1, AUTHOR)
    assert agent.data("cms_getPage", slug="about")["page"]["id"] == page_id


def test_a_repeated_call_creates_one_page_and_deletes_it_once(agent: CmsAgent) -> None:
    first = agent.data("cms_createPage", name="About", effect="turn-1/1/0")
    assert agent.data("cms_createPage", name="About", effect="turn-1/1/0") == first
    page_id = first["page"]["id"]
    for _ in range(2):
        assert agent.data("cms_deletePage", id=page_id, confirmed=True, effect="turn-1/2/0")["success"] is True


def test_a_page_whose_drawn_id_is_taken_gets_another_one_with_its_sections(
    agent: CmsAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["0000", "0000", "0001"])
    monkeypatch.setattr(secrets, "token_hex", lambda _size: next(drawn))
    agent.data("cms_createPage", name="About")
    page = agent.data("cms_createPageWithContent", name="Team", sections=[{"sectionKey": "hero"}])["page"]
    assert page["id"].endswith("0001")
    assert [one["id"].partition(".")[0] for one in page["sections"]] == [page["id"]]


def test_an_entry_is_created_changed_field_by_field_and_deleted(agent: CmsAgent) -> None:
    entry = agent.data(
        "cms_createEntry", collectionId="post", slug="rye", title="Rye", content={"body": "Bread", "excerpt": "Dark"}
    )["entry"]
    assert (entry["id"][:5], entry["status"]) == ("post.", "draft")
    agent.data("cms_updateEntry", entryId=entry["id"], title="Dark rye", content={"body": "Loaf"})
    shown = agent.data("cms_getEntryContent", entryId=entry["id"])
    assert (shown["title"], shown["content"]) == ("Dark rye", {"body": "Loaf", "excerpt": "Dark"})
    assert agent.data("cms_getEntryContent", entryId=entry["id"], localeCode="de")["message"] == "no content"
    [listed] = agent.data("cms_getCollectionEntries", collectionId="post", includeContent=True)["entries"]
    assert listed["content"] == shown["content"]
    assert agent.data("cms_deleteEntry", entryId=entry["id"])["requiresConfirmation"] is True
    agent.data("cms_deleteEntry", entryId=entry["id"], confirmed=True)
    assert agent.data("cms_getCollectionEntries", collectionId="post")["total"] == 0


@pytest.mark.parametrize("entry_id", ["rye", "post", "post.", "ghost.rye", "page#x.y", "", "model.hero"])
def test_what_is_no_entry_is_refused_in_words(agent: CmsAgent, entry_id: str) -> None:
    for name in ("cms_getEntryContent", "cms_updateEntry", "cms_deleteEntry"):
        output = (
            agent.call(name, entryId=entry_id, confirmed=True)
            if "delete" in name
            else agent.call(name, entryId=entry_id)
        )
        assert not output.ok
        assert output.data["errorCode"] in ("NOT_FOUND", "VALIDATION_FAILED")


def test_a_version_says_which_turn_has_written_it(agent: CmsAgent) -> None:
    page = agent.data("cms_createPage", name="About")["page"]
    version = read_document(agent.resources, SPACE, DocumentKey("page", page["id"]))
    assert (version.user, version.source, version.turn) == ("ada", "agent", "turn-1")


def test_without_a_space_or_the_right_nothing_is_done(agent: CmsAgent) -> None:
    context = make_context(capabilities=RIGHTS)
    assert "No site is chosen" in str(call_tool(agent.resources, context, "cms_getPages", {}).error)
    reader = replace(context, capabilities=frozenset({Capability.READ_CONTENT}))
    assert "not permitted" in str(call_tool(agent.resources, reader, "cms_createPage", {"name": "A"}).error)


@pytest.mark.parametrize(("name", "slug"), [("About Us", "about-us"), ("Straße 7", "strasse-7"), ("x" * 70, "x" * 64)])
def test_a_slug_is_made_of_letters_and_digits(name: str, slug: str) -> None:
    assert make_slug(name) == slug


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("cms_getPage", "'id' or 'slug'"),
        ("cms_deletePage", "'id' or 'slug'"),
        ("cms_getSectionDef", "'id' or 'key'"),
        ("cms_createPage", "'name'"),
        ("cms_createPageWithContent", "'name'"),
    ],
)
def test_a_call_that_names_nothing_is_told_what_to_name(agent: CmsAgent, tool: str, words: str) -> None:
    refused = agent.call(tool)
    assert refused.data["errorCode"] == "VALIDATION_FAILED"
    assert words in str(refused.error)
