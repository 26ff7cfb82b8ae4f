"""Elements whose content is text, and elements that nothing within them can end."""

import pytest

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.parser import parse_html
from fermata_client.tools.registry import WRITE_TOOLS


def list_tags(source: str) -> list[tuple[str, str]]:
    """Return the tag of each element with that of its parent."""
    return [(e.tag, e.parent.tag if e.parent else "") for e in parse_html(source.encode()).elements]


@pytest.mark.parametrize("tag", ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"])
def test_markup_in_an_element_of_raw_text_is_its_text(tag: str) -> None:
    source = f"<main><{tag} id=a><p>x</main><!-- <div></{tag}><p>y</p></main>"
    assert list_tags(source) == [("main", "#document"), (tag, "main"), ("p", "main")]


@pytest.mark.parametrize("tag", ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"])
def test_what_is_never_closed_takes_the_rest_of_the_page_for_its_text(tag: str) -> None:
    assert list_tags(f"<main><{tag}>x<p>y</p></main><h1>z</h1>") == [("main", "#document"), (tag, "main")]
    assert list_tags(f"<{tag}>x</{tag}><p>y</p><{tag}>z<p>") == [(name, "#document") for name in (tag, "p", tag)]


@pytest.mark.parametrize("source", ["<svg><style/></svg>", "<svg><title/></svg>", "<math><mi/><title>x</math>"])
def test_a_drawing_ends_the_text_in_it(source: str) -> None:
    assert list_tags(f"{source}<h1>a</h1><style>b{{}}</style>")[-2:] == [("h1", "#document"), ("style", "#document")]


@pytest.mark.parametrize("tag", ["textarea", "title", "iframe"])
def test_the_rest_of_a_page_that_is_the_text_of_an_element_is_not_taken_away(tag: str) -> None:
    document = HtmlDocument.parse(f"<main><p>a</p><{tag}>x<h1>y</h1></main>".encode())
    uid = next(element.uid for element in document.tree.elements if element.tag == tag)
    with pytest.raises(EditError, match=f"<{tag}> is never closed"):
        document.delete_element(uid)
    if tag != "iframe":
        with pytest.raises(EditError, match=f"<{tag}> is never closed"):
            document.replace_content(uid, "Z")
    paragraph = next(element.uid for element in document.tree.elements if element.tag == "p")
    assert document.replace_content(paragraph, "b")[0].source.startswith(b"<main><p>b</p>")


def test_nothing_ends_plaintext() -> None:
    assert list_tags("<main><plaintext><p>x</plaintext></main><p>y") == [("main", "#document"), ("plaintext", "main")]


@pytest.mark.parametrize("name", ["style-guide", "title-bar", "script-list", "iframe-player"])
def test_an_element_whose_name_only_begins_like_raw_text_holds_elements(name: str) -> None:
    source = f"<{name}><p>x</p></{name}><style>a{{}}</style>"
    assert [tag for tag, _ in list_tags(source)] == [name, "p", "style"]


@pytest.mark.parametrize(
    ("source", "tag", "parent"),
    [
        ("<main><noscript></main><p>x</noscript><p>y</main>", "p", "main"),
        ("<main><template></main></template><b>y</b></main>", "b", "main"),
        ("<main><table><tr><td>x</main></td></tr></table><b>y</b></main>", "b", "main"),
        ("<ul><li><noscript><li>x</noscript><b>y</b></ul>", "b", "li"),
        ("<p><noscript><div>x</div></noscript><b>y</b>", "b", "p"),
        ("<template><noscript></template><p>x</noscript><b>y</b></template>", "b", "template"),
        ("<table><tr><td><p>x</table><b>y</b>", "b", "#document"),
    ],
)
def test_an_end_tag_reaches_only_what_it_ends_in_a_browser(source: str, tag: str, parent: str) -> None:
    assert list_tags(source)[-1] == (tag, parent)


NO_SHEETS = [
    "<noscript><link rel=stylesheet href=other.css></noscript>",
    "<noscript><style>a{}</style></noscript>",
    "<template><style>a{}</style></template>",
    "<x-card><template shadowrootmode=open><style>a{}</style></template></x-card>",
    "<xmp><style>a{}</style></xmp>",
    "<link rel=stylesheet href=other.css disabled>",
    "<style type=text/less>a{}</style>",
]


@pytest.mark.parametrize("other", NO_SHEETS)
def test_new_rules_never_go_into_a_sheet_that_does_not_apply(other: str) -> None:
    files = {"site.css": b"b{}\n", "other.css": b"a{}\n"}
    page = HtmlDocument.parse(f"<link rel=stylesheet href=site.css>{other}<p>x".encode(), files=files)
    edited, _ = WRITE_TOOLS["applyCss"](page, {"css": "h2 { color: red }", "operation": "merge"})
    assert b"red" in edited.files["site.css"]
    assert (edited.source, edited.files["other.css"]) == (page.source, files["other.css"])


@pytest.mark.parametrize("tool", ["insertHtml", "replaceNodeHtml"])
def test_content_that_no_browser_shows_is_not_written(tool: str) -> None:
    page = HtmlDocument.parse(b"<main><iframe src=a></iframe></main>")
    with pytest.raises(EditError, match="never show what is inside of a <iframe>"):
        WRITE_TOOLS[tool](page, {"parentId": "n2", "nodeId": "n2", "html": "<p>x</p>"})
