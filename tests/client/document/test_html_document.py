"""Edits of a page: they do what was asked and leave every other byte alone."""

from itertools import takewhile

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.tree import Element
from tests.client.html_strategies import (
    BAKERY,
    assert_elements_kept,
    html_fragments,
    other_elements,
    tag_soup,
    well_formed_pages,
)


def parse_page(source: str) -> HtmlDocument:
    return HtmlDocument.parse(source.encode())


def find_uid(document: HtmlDocument, tag: str, number: int = 0) -> str:
    return [e.uid for e in document.tree.elements if e.tag == tag][number]


def source_text(document: HtmlDocument) -> str:
    return document.source.decode()


# What an edit looks like


def test_an_insertion_is_laid_out_like_its_siblings() -> None:
    document = parse_page("<body>\n\t<section>\n\t\t<p>a</p>\n\t</section>\n</body>\n")
    edited, data = document.insert_html(find_uid(document, "body"), "<section>\n  <p>b</p>\n</section>")
    assert source_text(edited) == (
        "<body>\n\t<section>\n\t\t<p>a</p>\n\t</section>\n\t<section>\n\t\t<p>b</p>\n\t</section>\n</body>\n"
    )
    assert data["nodeIds"] == ["n4"]
    assert data["created"] == [
        {"id": "n4", "moduleId": "base.container", "classes": []},
        {"id": "n5", "moduleId": "base.text", "classes": []},
    ]


@pytest.mark.parametrize(("index", "order"), [(0, "xab"), (1, "axb"), (2, "abx"), (9, "abx"), (None, "abx")], ids=str)
def test_an_index_counts_child_elements(index: int | None, order: str) -> None:
    document = parse_page("<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n")
    edited, _ = document.insert_html("n1", "<li>x</li>", index)
    assert source_text(edited) == "<ul>\n" + "".join(f"  <li>{letter}</li>\n" for letter in order) + "</ul>\n"


def test_blank_lines_between_siblings_are_kept_up() -> None:
    document = parse_page("<main>\n  <p>a</p>\n\n  <p>b</p>\n\n  <p>c</p>\n</main>\n")
    assert source_text(document.insert_html("n1", "<p>x</p>", 1)[0]) == (
        "<main>\n  <p>a</p>\n\n  <p>x</p>\n\n  <p>b</p>\n\n  <p>c</p>\n</main>\n"
    )


def test_a_comment_stays_with_the_element_that_follows_it() -> None:
    document = parse_page("<main>\n  <p>a</p>\n  <!-- about b -->\n  <p>b</p>\n</main>\n")
    assert source_text(document.insert_html("n1", "<p>x</p>", 1)[0]) == (
        "<main>\n  <p>a</p>\n  <p>x</p>\n  <!-- about b -->\n  <p>b</p>\n</main>\n"
    )


def test_windows_line_ends_and_a_byte_order_mark_survive() -> None:
    document = parse_page("\ufeff<!doctype html>\r\n<ul>\r\n  <li>a</li>\r\n</ul>\r\n")
    edited, _ = document.insert_html("n1", "<li>\n  <b>x</b>\n</li>")
    assert source_text(edited) == (
        "\ufeff<!doctype html>\r\n<ul>\r\n  <li>a</li>\r\n  <li>\r\n    <b>x</b>\r\n  </li>\r\n</ul>\r\n"
    )


def test_words_join_the_line_they_are_added_to() -> None:
    document = parse_page("<p>Hello</p>\n<ul><li>a</li></ul>\n")
    assert source_text(document.insert_html("n1", " <b>you</b>")[0]).startswith("<p>Hello <b>you</b></p>")
    assert source_text(document.insert_html("n2", "<li>b</li>")[0]).endswith("<ul><li>a</li><li>b</li></ul>\n")


def test_an_empty_element_opens_up_for_a_block() -> None:
    document = parse_page("<body>\n  <div></div>\n</body>\n")
    assert source_text(document.insert_html(find_uid(document, "div"), "<p>x</p>")[0]) == (
        "<body>\n  <div>\n    <p>x</p>\n  </div>\n</body>\n"
    )


def test_preformatted_lines_keep_their_indentation() -> None:
    document = parse_page("<body>\n  <p>a</p>\n</body>\n")
    edited, _ = document.insert_html(find_uid(document, "body"), "<div>\n  <pre>\n x\n    y</pre>\n</div>")
    assert "  <div>\n    <pre>\n x\n    y</pre>\n  </div>\n" in source_text(edited)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "<p>x</p>\n"),
        ("<!doctype html>", "<!doctype html>\n<p>x</p>\n"),
        ("\ufeff", "\ufeff<p>x</p>\n"),
        ("hello\n", "hello\n<p>x</p>\n"),
        ("<h1>Hi</h1>\n<p>one\n", "<h1>Hi</h1>\n<p>one\n<p>x</p>\n"),
        ("<html>\n<h1>Hi</h1>\n</html>\n", "<html>\n<h1>Hi</h1>\n<p>x</p>\n</html>\n"),
    ],
)
def test_a_page_without_a_body_takes_content_too(source: str, expected: str) -> None:
    assert source_text(parse_page(source).insert_html("document", "<p>x</p>")[0]) == expected


def test_scripts_handlers_and_our_own_ids_do_not_get_in() -> None:
    document = parse_page("<div></div>")
    edited, _ = document.insert_html(
        "n1",
        "<p onclick=\"x()\" uid='n7' class=\"a\">ok<script src=x></script></p><a href=' javascript:x()' ONLOAD=y>l</a>",
    )
    assert source_text(edited) == '<div><p class="a">ok</p><a>l</a></div>'


def test_unclosed_and_stray_tags_of_a_payload_stay_inside() -> None:
    document = parse_page("<main><p>a</p></main><footer>f</footer>")
    edited, _ = document.insert_html(find_uid(document, "main"), "</main></body><div><b>x</div><ul><li>y")
    assert source_text(edited) == "<main><p>a</p><div><b>x</b></div><ul><li>y</li></ul></main><footer>f</footer>"


def test_markup_that_would_swallow_the_page_is_refused() -> None:
    document = parse_page("<main><p>a</p></main><footer>f</footer>")
    for html in ("<!-- never closed", "<div class='"):
        with pytest.raises(EditError):
            document.insert_html(find_uid(document, "main"), f"<p>x</p>{html}", 0)


def test_a_block_in_a_paragraph_is_refused_with_the_reason() -> None:
    with pytest.raises(EditError, match="no block goes into a paragraph"):
        parse_page("<p>a</p>").insert_html("n1", "<div>x</div>")


def test_of_a_whole_document_only_the_body_is_taken() -> None:
    document = parse_page("<body><i>a</i></body>")
    edited, data = document.insert_html(
        "n1", "<!doctype html><html><head><title>t</title><style>.x{top:0}</style></head><body><p>b</p></body></html>"
    )
    assert "<p>b</p></body>" in source_text(edited)
    assert "<title>" not in source_text(edited)
    assert data["cssRulesCreated"] == 1


def test_a_style_block_alone_changes_rules_and_no_nodes() -> None:
    document = parse_page("<head>\n  <style>\n    .a { top: 0 }\n  </style>\n</head>\n<p>x</p>\n")
    edited, data = document.replace_content(find_uid(document, "p"), "<style>.a { top: 1px } .b { left: 0 }</style>")
    assert data == {"cssRulesCreated": 1, "cssRulesUpdated": 1}
    assert source_text(edited) == (
        "<head>\n  <style>\n    .a { top: 1px }\n    .b { left: 0 }\n  </style>\n</head>\n<p>x</p>\n"
    )


def test_a_style_block_beside_elements_never_changes_a_rule_that_others_use() -> None:
    document = parse_page("<style>\n.card { top: 0 }\n</style>\n<main></main>\n")
    edited, data = document.insert_html(
        find_uid(document, "main"), "<style>.card { top: 9px } .new { left: 0 }</style><p class='card new'>x</p>"
    )
    assert ".card { top: 0 }\n.new { left: 0 }" in source_text(edited)
    assert (data["cssRulesCreated"], data["cssRulesUpdated"], data["cssRulesKept"]) == (1, 0, 1)


def test_replacing_rebuilds_the_children_only() -> None:
    document = parse_page("<main id=m>\n  <p>a</p>\n  <p>b</p>\n</main>\n<footer>f</footer>\n")
    edited, data = document.replace_content("n1", "<h1>New</h1>\n<p>text</p>")
    assert source_text(edited) == "<main id=m>\n  <h1>New</h1>\n  <p>text</p>\n</main>\n<footer>f</footer>\n"
    assert data["nodeIds"] == ["n5", "n6"]
    assert source_text(edited.replace_content("n5", "Newer")[0]).startswith("<main id=m>\n  <h1>Newer</h1>\n")


def test_a_title_is_replaced_as_text() -> None:
    document = parse_page("<head><title>Old</title></head>")
    assert (
        source_text(document.replace_content("n2", "Bread & butter")[0]) == "<head><title>Bread & butter</title></head>"
    )
    with pytest.raises(EditError):
        document.replace_content("n2", "x</title><script>")


def test_deleting_takes_the_line_along() -> None:
    document = parse_page("<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n")
    assert source_text(document.delete_element("n2")) == "<ul>\n  <li>b</li>\n</ul>\n"


def test_deleting_leaves_one_blank_line_of_two() -> None:
    document = parse_page("<p>a</p>\n\n<p>b</p>\n\n<p>c</p>\n")
    assert source_text(document.delete_element("n2")) == "<p>a</p>\n\n<p>c</p>\n"


def test_deleting_within_a_line_leaves_one_space() -> None:
    document = parse_page("<p>one <b>two</b> three</p>")
    assert source_text(document.delete_element("n2")) == "<p>one three</p>"


@pytest.mark.parametrize("tag", ["html", "head", "body"])
def test_the_frame_of_a_page_cannot_be_deleted(tag: str) -> None:
    document = parse_page("<html><head></head><body><p>x</p></body></html>")
    with pytest.raises(EditError, match="cannot be deleted"):
        document.delete_element(find_uid(document, tag))


@pytest.mark.parametrize("tag", ["img", "script", "style", "title"])
def test_nothing_goes_into_an_element_that_cannot_hold_elements(tag: str) -> None:
    document = parse_page("<title>t</title><style>a{}</style><script>1</script><img src=x>")
    with pytest.raises(EditError):
        document.insert_html(find_uid(document, tag), "<p>x</p>")


def test_a_node_that_is_gone_asks_for_another_reading() -> None:
    document = parse_page("<p>a</p><p>b</p>").delete_element("n1")
    for verb in (
        lambda: document.delete_element("n1"),
        lambda: document.element_html("n77"),
        lambda: document.insert_html("", "x"),
    ):
        with pytest.raises(EditError, match="read the document again"):
            verb()


def test_ids_stay_with_their_elements_and_are_never_given_twice() -> None:
    document = parse_page("<p>a</p><p>b</p><p>c</p>")
    edited = document.delete_element("n2").insert_html("document", "<p>d</p>", 0)[0]
    assert [(e.uid, source_text(edited)[e.inner_start : e.inner_end]) for e in edited.tree.elements] == [
        ("n4", "d"),
        ("n1", "a"),
        ("n3", "c"),
    ]


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        ('<!doctype html>\n<title>T</title>\n<link rel=stylesheet href="https://cdn.example/a.css">\n', "<p>a</p>\n"),
        (
            "<!doctype html>\n<meta charset=utf-8>\n<!-- looks -->\n<link rel=stylesheet href=x.css> <!-- x -->\n",
            "text",
        ),
        ("---\na: b\n---\n<link rel=stylesheet href=x.css>\n", "<p>a</p>\n"),
        ("<html>\n<title>T</title>\n<link rel=stylesheet href=x.css>\n", "<body><p>a</p></body>\n</html>\n"),
    ],
)
def test_new_rules_follow_the_sheets_of_a_page_without_head_tags(start: str, rest: str) -> None:
    document, _ = HtmlDocument.parse((start + rest).encode()).put_css("p { top: 0 }")
    assert document.source.decode() == f"{start}<style>\n  p {{ top: 0 }}\n</style>\n{rest}"


def test_a_sheet_within_a_condition_is_no_place_for_new_rules() -> None:
    source = "<title>T</title>\n{% if a %}\n<link rel=stylesheet href=x.css>\n{% endif %}\n<p>a</p>\n"
    document, _ = HtmlDocument.parse(source.encode()).put_css("p { top: 0 }")
    assert document.source.decode() == source.replace("\n", "\n<style>\n  p { top: 0 }\n</style>\n", 1)


def test_a_sheet_is_made_in_the_head_when_there_is_none() -> None:
    document = parse_page("<html>\n  <head>\n    <title>t</title>\n  </head>\n  <body></body>\n</html>\n")
    edited, counts = document.put_css(".a { top: 0 }")
    assert counts.created == 1
    assert source_text(edited) == (
        "<html>\n  <head>\n    <title>t</title>\n    <style>\n      .a { top: 0 }\n    </style>\n  </head>\n"
        "  <body></body>\n</html>\n"
    )
    assert "<style>\n  .a { top: 0 }\n</style>\n<p>" in source_text(
        parse_page("<p>x</p>\n").put_css(".a { top: 0 }")[0]
    )


# Nothing else moves


def same_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the lengths of the common start and of the common end."""

    def same(ours: bytes, theirs: bytes) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))

    return same(old, new), same(old[::-1], new[::-1])


@st.composite
def places(draw: st.DrawFn) -> tuple[HtmlDocument, Element]:
    newline = draw(st.sampled_from(("\n", "\r\n")))
    document = parse_page(draw(st.one_of(well_formed_pages(newline), tag_soup)))
    assume(document.tree.elements)
    return document, draw(st.sampled_from(document.tree.elements))


@given(places(), html_fragments, st.one_of(st.none(), st.integers(0, 4)))
def test_an_insertion_changes_no_byte_outside_of_it(
    place: tuple[HtmlDocument, Element], html: str, index: int | None
) -> None:
    document, parent = place
    assume("<style>" not in html)
    try:
        edited, data = document.insert_html(parent.uid, html, index)
    except EditError:
        return
    start, end = same_ends(document.source, edited.source)
    assert not document.source[start : len(document.source) - end].strip()  # only white space gave way
    assert start >= parent.inner_start
    assert end >= len(document.source) - parent.inner_end
    assert_elements_kept(other_elements(document, parent), edited)
    assert {edited.find_element(uid).parent for uid in data["nodeIds"]} <= {edited.find_element(parent.uid)}


@given(places(), html_fragments)
def test_a_replacement_changes_only_the_content(place: tuple[HtmlDocument, Element], html: str) -> None:
    document, element = place
    assume("<style>" not in html)
    try:
        edited, _ = document.replace_content(element.uid, html)
    except EditError:
        return
    start, end = same_ends(document.source, edited.source)
    assert start >= element.inner_start
    assert end >= len(document.source) - element.inner_end
    assert_elements_kept(other_elements(document, element), edited)


@given(places())
def test_a_deletion_takes_the_element_and_white_space(place: tuple[HtmlDocument, Element]) -> None:
    document, element = place
    try:
        edited = document.delete_element(element.uid)
    except EditError:
        return
    start, end = same_ends(document.source, edited.source)
    assert start + end >= len(edited.source)  # nothing was written
    removed = len(document.source) - len(edited.source)
    assert removed >= element.end - element.start
    remainder = document.source[: element.start] + document.source[element.end :]
    assert b"".join(edited.source.split()) == b"".join(remainder.split())
    assert_elements_kept(other_elements(document, element), edited)
    assert element.uid not in {e.uid for e in edited.tree.elements}


@given(places(), st.sampled_from((".a { b: d }", ".new { x: y }\n@media print { .a { z: 0 } }")))
def test_a_rule_changes_nothing_but_style_sheets_and_doing_it_again_changes_nothing(
    place: tuple[HtmlDocument, Element], css: str
) -> None:
    document, _ = place
    try:
        edited, _ = document.put_css(css)
    except EditError:
        return
    if any(sheet.attribute_value("media") is None for sheet in document.sheet_elements):
        assert outside_of_sheets(document) == outside_of_sheets(edited)
    start, end = same_ends(document.source, edited.source)
    assert document.sheet_elements or not document.source[start : len(document.source) - end].strip()
    assert edited.put_css(css)[0].source == edited.source


def outside_of_sheets(document: HtmlDocument) -> bytes:
    pieces, at = [], 0
    for sheet in document.sheet_elements:
        pieces.append(document.source[at : sheet.inner_start])
        at = sheet.inner_end
    return b"".join([*pieces, document.source[at:]])


@pytest.mark.exhaustive
@given(st.lists(st.tuples(st.integers(0, 98), st.sampled_from(("insert", "replace", "delete"))), max_size=8))
def test_many_edits_of_the_demo_page_keep_every_other_element(edits: list[tuple[int, str]]) -> None:
    document = HtmlDocument.parse(BAKERY.read_bytes())
    for number, verb in edits:
        try:
            element = document.find_element(f"n{number + 1}")
        except EditError:
            continue
        expected = other_elements(document, element)
        try:
            if verb == "delete":
                document = document.delete_element(element.uid)
            elif verb == "insert":
                document, _ = document.insert_html(element.uid, "<p>new</p>")
            else:
                document, _ = document.replace_content(element.uid, "<p>new</p>")
        except EditError:
            continue
        assert_elements_kept(expected, document)
