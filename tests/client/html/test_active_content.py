"""HTML adds no code to a page, judged by what a browser makes of the page."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from fermata_client import HtmlDocument
from fermata_client.html.active_content import find_active_content
from fermata_client.html.edit_error import EditError
from fermata_client.tools.registry import WRITE_TOOLS

PAGE = """<!doctype html>
<html><head><title>t</title></head>
<body>
<main id="m"><h1>Hi</h1><p class="a">One</p><svg><g></g></svg><noscript>no</noscript><my-card>c</my-card></main>
<footer onclick="known()">f</footer>
</body></html>
"""
LEFT_OUT = [
    "<p/onclick=alert(1)>q</p>",
    "<p>q</p><svg/onload=alert(1)></svg>",
    '<p>q</p><iframe/srcdoc="&lt;script>1&lt;/script>"></iframe>',
    '<a/href="javascript:alert(1)">q</a>',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>q"></noscript>',
    '<noembed><p title="</noembed><img src=x onerror=alert(1)>q"></noembed>',
    '<noframes><p title="</noframes><img src=x onerror=alert(1)>q"></noframes>',
    '<iframe><p title="</iframe><img src=x onerror=alert(1)>q"></iframe>',
    "<svg><style><img src=x onerror=alert(1)></style></svg><p>q</p>",
    "<svg><title><img src=x onerror=alert(1)></title></svg><p>q</p>",
    '<svg></p><style><a id="</style><img src=1 onerror=alert(1)>"></a></style></svg><p>q</p>',
    "<!--><img src=x onerror=alert(1)>--><p>q</p>",
    "<!--x--!><img src=x onerror=alert(1)>--><p>q</p>",
    "<!---><img src=x onerror=alert(1)>--><p>q</p>",
    "<?x ><img src=x onerror=alert(1)>?><p>q</p>",
    "<!x ><img src=x onerror=alert(1)>><p>q</p>",
    "</ ><img src=x onerror=alert(1)><p>q</p>",
    '<template><b/onclick="x">y</b></template><p>q</p>',
    '<svg><set attributeName="onmouseover" to="alert(1)"/></svg><p>q</p>',
    '<svg><animate attributeName="href" values="#;javascript:alert(1)"/></svg><p>q</p>',
    '<base href="https://elsewhere.example/"><p>q</p>',
    '<a href="data:text/html,<script>alert(1)</script>">q</a>',
    '<a href=" DATA:text/html,x">q</a>',
    '<iframe src="data:image/svg+xml,<svg onload=x>"></iframe><p>q</p>',
    '<form action="data:text/html,x"><input>q</form>',
    '<object data="data:text/html,x"></object><p>q</p>',
    '<embed src="data:text/html,x"><p>q</p>',
    '<svg><use href="data:image/svg+xml,x"/></svg><p>q</p>',
    '<meta http-equiv="refresh" content="0;url=javascript:alert(1)"><p>q</p>',
]
KEPT = [
    '<img src="data:image/png;base64,AA==" alt="">',
    '<a href="/x?next=javascript:">x</a>',
    "<p>on load: javascript:x</p>",
    '<svg viewBox="0 0 1 1"><style>.x{fill:red}</style><path d="M0 0"/></svg>',
    '<video poster="data:image/png;base64,AA=="></video>',
    '<iframe src="https://maps.example/"></iframe>',
    "<!-- <b onclick=x> --><p>a</p>",
    "<input value='a > b' disabled>",
]
PIECES = re.split(
    r"\|",
    "<p |/onclick=x|/>|>|\"|'|<!--|-->|--!>|<!|<?|</|<svg>|</svg>|<math><mtext>|<style>|</style>|<title>|</title>|"
    "<img src=x onerror=x>|<script>|</script>|<scr|ipt>|<noscript>|</noscript>|<template>|</template>|<select>|"
    "<textarea>|</textarea>|<plaintext>|<table><tr>|<td>|</main>|</body>|<xmp>|</xmp>|<iframe>|</iframe>|<a |"
    "href=javascript:x|href='data:text/html,x'|<foreignObject>|<desc>|&lt;|&#106;|]]>|<![CDATA[|\n| ",
)
NASTY = st.lists(st.sampled_from((*LEFT_OUT, *PIECES)), max_size=9).map("".join)


def run(name: str, document: HtmlDocument, **input: Any) -> tuple[HtmlDocument, dict[str, Any]]:
    document, data = WRITE_TOOLS[name](document, input)
    return document, data or {}


def page(source: str = PAGE) -> HtmlDocument:
    return HtmlDocument.parse(source.encode())


def uid_of(document: HtmlDocument, tag: str) -> str:
    element = document.tree.find_first(tag)
    assert element is not None
    return element.uid


@pytest.mark.parametrize(
    "html",
    [
        "<math><style><img src=x onerror=alert(1)></style></math><p>q</p>",
        "<select><style></select><img src=x onerror=alert(1)></style></select><p>q</p>",
    ],
)
def test_a_style_block_is_css_and_never_becomes_markup(html: str) -> None:
    before = page()
    with pytest.raises(EditError, match="no CSS rule"):
        run("insertHtml", before, parentId=uid_of(before, "main"), html=html)


def visible_html(document: HtmlDocument) -> str:
    """The page as a browser writes it."""
    return str(LexborHTMLParser(document.source, scripting=True).html)


@pytest.mark.parametrize("html", LEFT_OUT)
@pytest.mark.parametrize("tool", ["insertHtml", "replaceNodeHtml"])
def test_what_runs_is_left_out_and_reported(tool: str, html: str) -> None:
    before = page()
    named = {"parentId": uid_of(before, "main")} if tool == "insertHtml" else {"nodeId": uid_of(before, "main")}
    after, data = run(tool, before, **named, html=html)
    assert find_active_content(after.source) == find_active_content(before.source)
    assert "Left out:" in data["note"]
    assert "q" in visible_html(after).split("<main")[1].split("</main>")[0]


@pytest.mark.parametrize("html", KEPT)
def test_what_does_not_run_stays_as_it_is_written(html: str) -> None:
    before = page()
    after, data = run("insertHtml", before, parentId=uid_of(before, "main"), html=html)
    assert html.encode() in after.source
    assert "note" not in data


@pytest.mark.exhaustive
@pytest.mark.parametrize("parent", ["main", "p", "svg", "g", "noscript", "my-card", "body"])
@settings(max_examples=60)
@given(html=NASTY)
def test_no_mixture_adds_code_or_swallows_the_page(parent: str, html: str) -> None:
    before = page()
    try:
        after, _ = run("insertHtml", before, parentId=uid_of(before, parent), html=html or " ")
    except EditError:
        return
    assert find_active_content(after.source) <= find_active_content(before.source)
    parsed = LexborHTMLParser(after.source, scripting=True)
    assert [node.tag for node in parsed.css("[onclick], [onerror], [onload], [srcdoc], script, base, meta")] == [
        "footer"
    ]


@pytest.mark.parametrize("html", ["<scr<script>ipt>alert(1)</scr</script>ipt>", "<div <p>x</p>"])
def test_a_tag_that_another_begins_in_is_named(html: str) -> None:
    before = page()
    with pytest.raises(EditError, match=html[:4] + " is not closed"):
        run("insertHtml", before, parentId=uid_of(before, "main"), html=html)


@pytest.mark.parametrize(
    ("html", "opened"),
    [
        ("<plaintext>", ""),
        ("<p>x</p><plaintext>", ""),
        ("<p>x</p><div", "<div"),
        ('<p>x</p><a title="y', "<a"),
        ("<p>x</p></b", "</b"),
        ("<p>x</p><!-- y", "<!--"),
        ("<template><!", "<template"),
    ],
)
@pytest.mark.parametrize("behind", ["", "<footer>f</footer>"])
def test_markup_that_would_contain_what_follows_it_is_refused(html: str, opened: str, behind: str) -> None:
    before = page(f"<body>\n<main>\n  <p>x</p>\n</main>{behind}\n</body>\n")
    for name, named in (("insertHtml", "parentId"), ("replaceNodeHtml", "nodeId")):
        with pytest.raises(EditError, match=f"from {opened}|{opened} is not closed"):
            run(name, before, **{named: uid_of(before, "main")}, html=html)


@pytest.mark.parametrize(
    ("markup", "name", "value"),
    [
        ('<iframe src="/x"></iframe>', "src", "data:image/svg+xml,<svg onload=x>"),
        ('<embed src="/x">', "src", "data:image/svg+xml,x"),
        ('<meta http-equiv="refresh" content="5">', "content", "0;url=javascript:x"),
        ('<script type="application/json">x()</script>', "type", "module"),
    ],
)
def test_an_attribute_makes_nothing_run(markup: str, name: str, value: str) -> None:
    before = page(f"<body><main>{markup}</main></body>")
    element = before.tree.elements[2]
    with pytest.raises(EditError):
        run("updateNodeProps", before, nodeId=element.uid, patch={name: value})


def test_a_copy_of_a_part_with_its_own_handler_is_no_new_code() -> None:
    before = page()
    after, _ = run("duplicateNode", before, nodeId=uid_of(before, "footer"))
    assert after.source.count(b"known()") == 2


def test_a_page_nested_beyond_all_reason_is_refused_instead_of_read_for_minutes() -> None:
    before = page("<body>" + "<div>" * 6_000 + "</div>" * 6_000 + "</body>")
    with pytest.raises(EditError, match="deep in each other"):
        run("insertHtml", before, parentId=before.tree.elements[1].uid, html="<p>x</p>")


def test_a_page_with_a_tag_that_is_not_closed_says_which_one() -> None:
    before = page("<body><main><scr<p>x</p></main></body>")
    with pytest.raises(EditError, match="The page has a tag <scr that is not closed"):
        run("insertHtml", before, parentId=uid_of(before, "main"), html="<section><p>x</p></section>")
