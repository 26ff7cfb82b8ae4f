"""The snapshot of a file, as the tools of the service read it."""

from pathlib import Path

import pytest

from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.site.document_listing import list_site_documents
from fermata_client import HtmlDocument
from fermata_client.document.base_document import page_id_from_path
from fermata_client.document.site_snapshot import build_site_snapshot
from tests.client.html_strategies import BAKERY

SNAPSHOT = build_site_snapshot(HtmlDocument.parse(BAKERY.read_bytes()))


def test_the_server_tools_list_the_page_and_its_tokens() -> None:
    listed = list_site_documents(SNAPSHOT)
    assert listed["currentDocument"] == {"type": "page", "id": "index"}
    assert [(d["title"], d["summary"], d["current"]) for d in listed["documents"]] == [
        ("The Corner Bakery", "Homepage", True)
    ]
    tokens = list_tokens(SNAPSHOT)
    assert "--color-crust" in {color["cssVar"] for color in tokens["colors"]}
    assert all(color["variants"] == [] for color in tokens["colors"])
    assert {font["cssVar"] for font in tokens["fonts"]} == {"--font-heading", "--font-body"}


def test_the_snapshot_has_every_member_an_editor_sends() -> None:
    assert SNAPSHOT.keys() == {"page", "currentDocument", "site", "selectedNodeId", "activeBreakpointId"}
    assert SNAPSHOT["page"].keys() >= {"id", "slug", "title", "rootNodeId", "nodes"}
    assert SNAPSHOT["site"].keys() == {
        "id",
        "name",
        "breakpoints",
        "settings",
        "styleRules",
        "files",
        "explorer",
        "packageJson",
        "runtime",
        "createdAt",
        "updatedAt",
        "pages",
        "visualComponents",
        "layouts",
    }
    assert SNAPSHOT["site"]["settings"]["shortcuts"] == {}
    assert SNAPSHOT["site"]["settings"]["language"] == "en"


def test_a_page_without_styles_or_title_has_a_snapshot_too() -> None:
    snapshot = build_site_snapshot(HtmlDocument.parse(b"", path="empty.html"))
    assert snapshot["page"]["title"] == "empty"
    assert list_tokens(snapshot) == {"colors": [], "typography": [], "spacing": [], "fonts": []}


@pytest.mark.parametrize(
    ("name", "expected"), [("index.html", "index"), ("My Page.html", "my-page"), ("..html", "page"), ("é.html", "page")]
)
def test_a_page_is_called_after_its_file(name: str, expected: str) -> None:
    assert page_id_from_path(Path(name)) == expected
