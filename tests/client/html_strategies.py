"""Pages to edit in tests: the demo page, generated pages, and tag soup."""

import re
from pathlib import Path

from hypothesis import strategies as st

from fermata_client import HtmlDocument
from fermata_client.html.tree import Element

BAKERY = Path(__file__).parents[2] / "examples" / "bakery" / "index.html"

PIECES = re.split(
    r"\|",
    "<div>|</div>|<p>|</p>|<ul>|<li>|</li>|</ul>|<b>|</b>|<section class='a b'>|</section>|<table>|<tr>|<td>|</table>|"
    "<br>|<img src=x alt=\"a > b\">|<input disabled>|<svg><path d='M0'/></svg>|<!-- <p> -->|<title>a <b> & c</title>|"
    "<style>.a { b: c }</style>|<script>if (a<b) { '</p>' }</script>|<textarea><p></textarea>|<pre>\n  x\n</pre>|"
    "<!doctype html>|<html lang=en>|</html>|<head>|</head>|<body>|</body>|<select><option>1<option>2</select>|"
    "text|é 🦀|&amp;|<|a < b|>|\"|'|</|<p|--> |<!--",
)
SPACES = (" ", "\n", "  ", "\n  ", "\r\n", "\n\n", "\t")

tag_soup = st.lists(st.sampled_from((*PIECES, *SPACES)), max_size=40).map("".join)
"""Anything: mostly broken pages."""


@st.composite
def well_formed_pages(draw: st.DrawFn, newline: str = "\n") -> str:
    """Generate well-formed pages with various styles of indentation."""
    unit = draw(st.sampled_from(("  ", "    ", "\t", "")))
    lines = ["<!doctype html>", "<html>", "<head>", f"{unit}<title>t</title>", "</head>", "<body>"]
    lines += draw(_blocks(unit, unit, 3))
    return newline.join([*lines, "</body>", "</html>", ""])


@st.composite
def _blocks(draw: st.DrawFn, indent: str, unit: str, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        tag = draw(st.sampled_from(("div", "section", "ul", "p")))
        if depth == 0 or tag == "p":
            lines.append(f"{indent}<{tag}>some <b>text</b></{tag}>")
        else:
            lines += [f"{indent}<{tag}>", *draw(_blocks(indent + unit, unit, depth - 1)), f"{indent}</{tag}>"]
        lines += [""] if draw(st.booleans()) else []
        lines += [f"{indent}<!-- note -->"] if draw(st.booleans()) else []
    return lines


html_fragments = st.sampled_from(
    (
        "<p>new</p>",
        "plain text",
        "<b>bold</b> and <i>it",
        "<section class='x y'>\n    <h2>Title</h2>\n    <p>One</p>\n</section>",
        "</div></body><p>stray",
        "<div onclick='x()'><script>alert(1)</script>safe</div>",
        "<li>one<li>two",
        "<pre>\n  keep\n</pre>",
        "<!-- open",
        "<div class='",
        "<style>.new { top: 0 }</style><p class=new>styled</p>",
        "<html><body><h1>whole</h1></body></html>",
    )
)


def other_elements(document: HtmlDocument, target: Element) -> dict[str, bytes]:
    """Return the bytes of every element that is neither the target, nor in it, nor around it."""
    return {
        e.uid: document.source[e.start : e.end]
        for e in document.tree.elements
        if e.end <= target.start or e.start >= target.end
    }


def assert_elements_kept(before: dict[str, bytes], after: HtmlDocument, *, but: str = "") -> None:
    bytes_by_uid = {e.uid: after.source[e.start : e.end] for e in after.tree.elements}
    assert {uid: bytes_by_uid.get(uid) for uid in before if uid != but} == {
        uid: b for uid, b in before.items() if uid != but
    }
