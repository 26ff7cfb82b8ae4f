"""replaceNodeHtml replaces what is inside of a node, and says so to a model that sends the node itself."""

from typing import Any

import pytest

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.registry import WRITE_TOOLS


def replace_content(source: str, html: str, tag: str) -> tuple[str, dict[str, Any]]:
    page = HtmlDocument.parse(source.encode())
    node = next(element.uid for element in page.tree.elements if element.tag == tag)
    edited, data = WRITE_TOOLS["replaceNodeHtml"](page, {"nodeId": node, "html": html})
    return edited.source.decode(), data or {}


@pytest.mark.parametrize(
    ("source", "html", "tag"),
    [
        ("<h1 class=a>old</h1>", "<h1>new</h1>", "h1"),
        ("<ul><li>a</ul>", "<ul><li>b</li></ul>", "ul"),
        ("<ul><li>a</ul>", "<li>b</li><li>c</li>", "li"),
        ("<table><tr><td>1</table>", "<td>2</td>", "td"),
        ("<table><tr><td>1</table>", "<table><tr><td>2</table>", "table"),
        ("<a href=/x>a</a>", "<a href=/y>b</a>", "a"),
        ("<main><p>x</main>", "```html\n<main>\n<p>y</p>\n</main>\n```", "main"),
        ("<div class='card big'>x</div>", "<div class='card big'>y</div>", "div"),
        ("<div id=a>x</div>", "<div id=a class=b>y</div>", "div"),
        ("<div>x</div>", "<div uid=n1>y</div>", "div"),
    ],
)
def test_the_node_itself_is_refused_with_what_to_send(source: str, html: str, tag: str) -> None:
    with pytest.raises(EditError, match=rf"what is inside of the <{tag}> n\d. Send only that"):
        replace_content(source, html, tag)


@pytest.mark.parametrize(
    ("source", "html", "tag"),
    [
        ("<div class=a>x</div>", "<div class=b>y</div>", "div"),
        ("<section>x</section>", "<section>y</section>", "section"),
        ("<x-card>x</x-card>", "<x-card>y</x-card>", "x-card"),
        ("<div class=a>x</div>", "<div class=a>y</div><p>z</p>", "div"),
        ("<body><p>x</p></body>", "<body><p>y</p></body>", "body"),
    ],
)
def test_an_element_of_the_same_kind_that_belongs_inside_is_taken(source: str, html: str, tag: str) -> None:
    assert "y<" in replace_content(source, html, tag)[0]


def test_content_with_scripts_is_not_replaced_by_html_that_cannot_bring_them_back() -> None:
    source = "<body><main>a</main><script src=app.js></script><script>b()</script></body>"
    with pytest.raises(EditError, match=r"the <script> n3 \(app.js\), the <script> n4. Replace the nodes beside it"):
        replace_content(source, "<p>x</p>", "body")
    assert replace_content(source, "<p>x</p>", "main")[1].get("note") is None


def test_style_sheets_that_go_with_replaced_or_deleted_content_are_named() -> None:
    source = "<main><style>a{}</style><link rel=stylesheet href=a.css><p>x</main>"
    expected = "This went with it: the <style> n2, the <link> n3 (a.css)."
    assert expected in replace_content(source, "<p>y</p>", "main")[1]["note"]
    deleted = WRITE_TOOLS["deleteNode"](HtmlDocument.parse(source.encode()), {"nodeId": "n1"})[1]
    assert deleted is not None
    assert deleted["note"] == expected
