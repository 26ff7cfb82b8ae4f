"""A file answers every tool of a site's editor, under both of its names."""

import re
from typing import Any

import pytest

from fermata.agents.registry import get_toolset
from fermata.tools.tool import Access, Execution
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.page_html import UNSUPPORTED_TOOLS, rename_page
from fermata_client.tools.registry import READ_TOOLS, WRITE_TOOLS, unprefixed_tool_name
from fermata_client.tools.restore import RESTORE_TOOL
from fermata_client.tools.static_render import render_snapshot

SITE = [tool for tool in get_toolset("site").tools if tool.execution is Execution.BROWSER]
KNOWN = {*READ_TOOLS, *WRITE_TOOLS, *UNSUPPORTED_TOOLS} - {RESTORE_TOOL}


def test_every_tool_that_the_service_may_ask_for_has_an_answer() -> None:
    assert {tool.name for tool in SITE} == KNOWN
    assert {tool.name for tool in SITE if tool.access is Access.READ} == set(READ_TOOLS)


@pytest.mark.parametrize("tool", SITE, ids=lambda tool: tool.name)
def test_a_tool_is_known_by_both_of_its_names(tool: Any) -> None:
    assert {unprefixed_tool_name(get_wire_name(tool, names)) for names in ToolNaming} == {tool.name}


def page(source: str) -> HtmlDocument:
    return HtmlDocument.parse(source.encode(), path="index.html")


def test_a_page_is_renamed_by_its_title() -> None:
    arguments = {"pageId": "index", "title": "Bread &\n more <b>"}
    renamed = rename_page(page("<head>\n  <title>Old</title>\n</head>"), arguments)[0]
    assert renamed.source == b"<head>\n  <title>Bread &amp; more &lt;b&gt;</title>\n</head>"
    assert renamed.title == "Bread & more <b>"
    created = rename_page(page("<head>\n  <meta charset=utf-8>\n</head>\n"), arguments)[0]
    assert created.source.decode() == (
        "<head>\n  <meta charset=utf-8>\n  <title>Bread &amp; more &lt;b&gt;</title>\n</head>\n"
    )
    assert rename_page(page("<svg><title>icon</title></svg>"), arguments)[0].title == "Bread & more <b>"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pageId": "other", "title": "x"}, "only one page here: index"),
        ({"pageId": "index", "title": "x", "slug": "new"}, r"name of its file \(index\.html\)"),
        ({"pageId": "index"}, "`title` is missing"),
    ],
)
def test_a_page_keeps_its_address(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        rename_page(page("<title>t</title>"), arguments)


TROUBLE = """<style>@media (max-width: 40rem) { p { top: 0 } }</style>
<main class="m"><h1>Hello <b>you</b></h1><img src="a.png"><a href="#gone">to nowhere</a><a>nothing</a>
<button></button><p id="x" hidden>x</p><p id="x">y</p><img alt="z"></main>
"""


def test_a_report_says_what_the_markup_shows_and_that_nothing_was_rendered() -> None:
    _, report = render_snapshot(page(TROUBLE), {"captureScreenshot": True})
    assert (report["breakpointId"], report["screenshot"]["status"]) == ("all", "unavailable")
    assert [(element["tag"], element["depth"], element.get("text")) for element in report["layout"]["outline"]] == [
        ("main", 0, None),
        ("h1", 1, "Hello you"),
    ]
    warnings = [element["warning"] for element in report["layout"]["warnings"]]
    assert warnings == [
        "The image has no alt text.",
        "The link leads to #gone, which is not on the page.",
        "The link has no href.",
        "The <button> has no text.",
        "The id “x” occurs 2 times on the page.",
        "It is hidden.",
        "The id “x” occurs 2 times on the page.",
        "The image has no src, so nothing is shown.",
    ]


def test_a_report_is_about_one_node_and_one_width_when_asked() -> None:
    document = page(TROUBLE)
    heading = next(e.uid for e in document.tree.elements if e.tag == "h1")
    _, report = render_snapshot(document, {"nodeId": heading, "breakpointId": "max-640"})
    assert (report["nodeId"], report["width"], report["layout"]["elements"]) == (heading, 640, 2)
    with pytest.raises(EditError, match=r"no breakpoint phone\. There are: all, max-640"):
        render_snapshot(document, {"breakpointId": "phone"})
    with pytest.raises(EditError, match="There is no node n99"):
        render_snapshot(document, {"nodeId": "n99"})


def test_a_report_of_a_large_page_is_bounded() -> None:
    _, report = render_snapshot(page("<section><img></section>" * 500), {})
    assert (len(report["layout"]["outline"]), report["layout"]["outlineLeftOut"]) == (80, 420)
    assert (len(report["layout"]["warnings"]), report["layout"]["warningsLeftOut"]) == (40, 960)


def test_code_that_came_with_html_is_named_when_it_is_left_out() -> None:
    html = '<p onclick="a()">x</p><script>1</script><a href="javascript:b()" uid="n1">y</a>'
    _, data = page("<main></main>").insert_html("n1", html)
    assert data["note"] == (
        "Left out: 1 script and href, onclick. HTML cannot contain code; write behaviour with write_code_asset."
    )
    with pytest.raises(EditError, match=r"Nothing is left of this HTML\. Left out: 2 scripts"):
        page("<main></main>").insert_html("n1", "<script>1</script><script>2</script>")
    assert "note" not in page("<main></main>").insert_html("n1", "<p>x</p>")[1]


LINKED = """<nav><a href="#prices">p</a><a href="#top">t</a><a href="/#prices">elsewhere</a></nav>
<section id="prices"><label for="q">l</label><input id="q"></section><p aria-describedby="q missing">x</p>"""


@pytest.mark.parametrize(
    ("tool", "further_arguments"),
    [("deleteNode", {}), ("replaceNodeHtml", {"html": "<p>new</p>"})],
    ids=lambda value: str(value)[:10],
)
def test_links_that_lead_nowhere_afterwards_are_named(tool: str, further_arguments: dict[str, str]) -> None:
    document = page(LINKED)
    section = next(element.uid for element in document.tree.elements if element.tag == "section")
    paragraph = next(element.uid for element in document.tree.elements if element.tag == "p")
    _, data = WRITE_TOOLS[tool](document, {"nodeId": section, **further_arguments})
    assert data is not None
    note = data["note"]
    assert f"aria-describedby=q from the <p> {paragraph}" in note
    assert ("#prices from the <a> n2" in note) is (tool == "deleteNode")
    assert "missing" not in note
    assert "n3" not in note


def test_a_part_that_nothing_points_at_goes_without_a_word() -> None:
    assert WRITE_TOOLS["deleteNode"](page("<main><p id=x>a</p><a href='#y'>b</a></main>"), {"nodeId": "n2"})[1] is None


def test_an_index_behind_the_last_element_is_reported() -> None:
    _, data = page("<ul><li>a</li><li>b</li></ul>").insert_html("n1", "<li>c</li>", 7)
    assert data["note"] == "<ul> has 2 elements, so index 7 is behind the last of them."


@pytest.mark.parametrize(
    "html",
    [
        '<a href="java&#115;cript:x()">l</a>',
        '<a href=" \x01java\tscript:x()">l</a>',
        '<iframe srcdoc="<script>1</script>"></iframe>',
        '<svg><a xlink:href="javascript:x()"><set attributeName="href" to="javascript:x()"/></a></svg>',
        '<form action="vbscript:x"><button formaction="JavaScript:x()">b</button></form>',
        '<object data="javascript:x()"></object>',
        "<svg><script>let script:1</script><g><SCRIPT href=x></SCRIPT></g></svg>",
    ],
)
def test_code_in_disguise_is_left_out_too(html: str) -> None:
    edited, data = page("<main></main>").insert_html("n1", html)
    assert "script:" not in edited.source.decode().lower().replace("&#115;", "s")
    assert not re.search("srcdoc|<script", edited.source.decode(), re.IGNORECASE)
    assert data["note"].startswith("Left out: ")
