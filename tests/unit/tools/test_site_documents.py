"""The catalogue of documents, from the raw snapshot."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.site.documents import list_site_documents
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.unit.tools.builders import make_call, make_context, make_site_snapshot


def ask(posted: Any) -> ToolOutput:
    outcome = admit_call(SITE_TOOLSET, make_call("site_list_documents"), make_context(snapshot=posted))
    assert isinstance(outcome, AdmittedCall)
    return run_tool(outcome, make_context(snapshot=posted))


def test_pages_templates_and_components_are_listed_in_site_order() -> None:
    assert ask(make_site_snapshot()).data == {
        "currentDocument": {"type": "page", "id": "p1"},
        "documents": [
            {
                "document": {"type": "page", "id": "p1"},
                "title": "Home",
                "slug": "index",
                "rootNodeId": "r1",
                "active": True,
                "current": True,
                "isHomepage": True,
                "summary": "Homepage",
            },
            {
                "document": {"type": "template", "id": "p2"},
                "title": "Chrome",
                "slug": "chrome",
                "rootNodeId": "r2",
                "active": False,
                "current": False,
                "isHomepage": False,
                "summary": "Everywhere template wrapping all pages",
                "template": {"target": {"kind": "everywhere"}, "priority": 100},
            },
            {
                "document": {"type": "visualComponent", "id": "v1"},
                "title": "Card",
                "rootNodeId": "r3",
                "active": False,
                "current": False,
                "summary": "Visual component definition",
            },
        ],
    }


def listed(page: dict[str, Any]) -> dict[str, Any]:
    posted = make_site_snapshot()
    posted["site"]["pages"] = [{"id": "p9", "title": "Nine", "rootNodeId": "r9", **page}]
    described: dict[str, Any] = list_site_documents(posted)["documents"][0]
    return described


@pytest.mark.parametrize(
    ("page", "summary"),
    [
        ({"slug": "index"}, "Homepage"),
        ({"slug": "about"}, "Page /about"),
        ({"slug": "x", "template": {"target": {"kind": "everywhere"}}}, "Everywhere template wrapping all pages"),
        ({"slug": "x", "template": {"target": {"kind": "notFound"}}}, "404 template"),
        (
            {"slug": "x", "template": {"target": {"kind": "postTypes", "tableSlugs": ["posts", "news"]}}},
            "Post type template for posts, news",
        ),
    ],
)
def test_the_summary_says_what_a_document_is_for(page: dict[str, Any], summary: str) -> None:
    assert listed(page)["summary"] == summary


def test_a_template_is_told_with_its_target_and_priority() -> None:
    target = {"kind": "postTypes", "tableSlugs": ["posts"]}
    page = listed({"slug": "post", "template": {"enabled": True, "target": target, "priority": 7.5}})
    assert page["document"] == {"type": "template", "id": "p9"}
    assert page["template"] == {"target": target, "priority": 7.5}


def test_a_component_that_is_open_is_current_although_a_page_is_active() -> None:
    posted = make_site_snapshot() | {"currentDocument": {"type": "visualComponent", "id": "v1"}}
    documents = list_site_documents(posted)["documents"]
    assert [(one["active"], one["current"]) for one in documents] == [(True, False), (False, False), (False, True)]


def test_the_latest_snapshot_is_what_counts() -> None:
    renamed = make_site_snapshot()
    renamed["site"]["pages"][0]["title"] = "Start"
    assert ask(renamed).data["documents"][0]["title"] == "Start"


def test_a_broken_token_does_not_keep_documents_from_being_listed() -> None:
    assert ask(make_site_snapshot(framework={"colors": {"tokens": [{"slug": 5}]}})).ok


def test_without_a_snapshot_the_tool_fails_and_says_so() -> None:
    assert ask(None) == ToolOutput.failure("The editor sent no snapshot with this prompt, so there is nothing to list.")


@pytest.mark.parametrize(
    ("broken", "member"),
    [
        ({"site": {}}, "snapshot.page: "),
        ({"page": {"id": "p1"}}, "snapshot.site: "),
        (make_site_snapshot() | {"currentDocument": {"type": "folder", "id": "x"}}, "snapshot.currentDocument.type: "),
        (make_site_snapshot() | {"page": "not-a-page"}, "snapshot.page: "),
    ],
)
def test_a_broken_snapshot_is_a_failure_that_names_the_broken_member(broken: Any, member: str) -> None:
    output = ask(broken)
    assert not output.ok
    assert member in (output.error or "")
