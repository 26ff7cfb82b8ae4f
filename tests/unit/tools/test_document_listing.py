"""The documents of a site are listed from the raw snapshot."""

from typing import Any

import pytest

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.site.document_listing import list_site_documents
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.unit.tools.builders import make_call, make_context, make_site_snapshot, run_tool


def call_list_documents(snapshot: Any) -> ToolOutput:
    outcome = admit_call(SITE_TOOLSET, make_call("site_list_documents"), make_context(snapshot=snapshot))
    assert isinstance(outcome, AdmittedCall)
    return run_tool(outcome, make_context(snapshot=snapshot))


def test_pages_templates_and_components_are_listed_in_site_order() -> None:
    assert call_list_documents(make_site_snapshot()).data == {
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


def list_only_page(page: dict[str, Any]) -> dict[str, Any]:
    snapshot = make_site_snapshot()
    snapshot["site"]["pages"] = [{"id": "p9", "title": "Nine", "rootNodeId": "r9", **page}]
    description: dict[str, Any] = list_site_documents(snapshot)["documents"][0]
    return description


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
def test_the_summary_describes_the_purpose_of_a_document(page: dict[str, Any], summary: str) -> None:
    assert list_only_page(page)["summary"] == summary


def test_a_template_is_listed_with_its_target_and_priority() -> None:
    target = {"kind": "postTypes", "tableSlugs": ["posts"]}
    page = list_only_page({"slug": "post", "template": {"enabled": True, "target": target, "priority": 7.5}})
    assert page["document"] == {"type": "template", "id": "p9"}
    assert page["template"] == {"target": target, "priority": 7.5}


def test_an_open_component_is_current_while_a_page_is_active() -> None:
    snapshot = make_site_snapshot() | {"currentDocument": {"type": "visualComponent", "id": "v1"}}
    documents = list_site_documents(snapshot)["documents"]
    assert [(document["active"], document["current"]) for document in documents] == [
        (True, False),
        (False, False),
        (False, True),
    ]


def test_documents_are_listed_from_the_snapshot_of_the_context() -> None:
    snapshot = make_site_snapshot()
    snapshot["site"]["pages"][0]["title"] = "Start"
    assert call_list_documents(snapshot).data["documents"][0]["title"] == "Start"


def test_documents_are_listed_despite_a_broken_token() -> None:
    assert call_list_documents(make_site_snapshot(framework={"colors": {"tokens": [{"slug": 5}]}})).ok


def test_without_a_snapshot_the_tool_fails_with_a_reason() -> None:
    assert call_list_documents(None) == ToolOutput.failure(
        "The editor sent no snapshot with this prompt, so there is nothing to list."
    )


@pytest.mark.parametrize(
    ("broken", "member"),
    [
        ({"site": {}}, "snapshot.page: "),
        ({"page": {"id": "p1"}}, "snapshot.site: "),
        (make_site_snapshot() | {"currentDocument": {"type": "folder", "id": "x"}}, "snapshot.currentDocument.type: "),
        (make_site_snapshot() | {"page": "not-a-page"}, "snapshot.page: "),
    ],
)
def test_a_broken_snapshot_is_a_failure_that_names_the_wrong_member(broken: Any, member: str) -> None:
    output = call_list_documents(broken)
    assert not output.ok
    assert member in (output.error or "")
