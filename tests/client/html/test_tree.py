"""The tree: where elements begin and end, in pages as people write them."""

import pytest
from hypothesis import given

from fermata_client.html.browser_parser import FragmentContext
from fermata_client.html.edit_error import EditError
from fermata_client.html.parser import parse_html
from fermata_client.html.sanitize import sanitize_html
from fermata_client.html.tree import Element
from tests.client.html_strategies import BAKERY, tag_soup


def shapes(source: str) -> list[str]:
    data = source.encode()
    return [data[e.start : e.end].decode() for e in parse_html(data).elements]


def test_elements_without_end_tags_end_where_a_browser_ends_them() -> None:
    assert shapes("<p>one\n<p>two<div>x</div>") == ["<p>one", "<p>two", "<div>x</div>"]
    assert shapes("<ul><li>a <li>b</ul>") == ["<ul><li>a <li>b</ul>", "<li>a", "<li>b"]
    assert shapes("<table><tr><td>1<td>2\n<tr><td>3</table>")[1:] == [
        "<tr><td>1<td>2",
        "<td>1",
        "<td>2",
        "<tr><td>3",
        "<td>3",
    ]
    assert shapes("<select><option>1<option>2</select>")[1:] == ["<option>1", "<option>2"]
    assert shapes("<dl><dt>a<dd>b<dt>c</dl>")[1:] == ["<dt>a", "<dd>b", "<dt>c"]


def test_a_list_inside_an_item_belongs_to_the_item() -> None:
    page = parse_html(b"<ul><li>a<ul><li>b</ul><li>c</ul>")
    assert [(e.tag, e.parent.tag if e.parent else "") for e in page.elements] == [
        ("ul", "#document"),
        ("li", "ul"),
        ("ul", "li"),
        ("li", "ul"),
        ("li", "ul"),
    ]


def test_void_elements_hold_nothing() -> None:
    page = parse_html(b"<div><br><img src=x>text<input disabled/></div>")
    assert [(e.tag, e.is_void) for e in page.elements] == [("div", False), ("br", True), ("img", True), ("input", True)]
    assert len(page.elements[0].children) == 3


def test_a_slash_closes_in_svg_and_nowhere_else() -> None:
    page = parse_html(b"<svg><path d='M0'/></svg><div/>text</div>")
    assert [(e.tag, e.is_void, e.has_end_tag) for e in page.elements] == [
        ("svg", False, True),
        ("path", True, False),
        ("div", False, True),
    ]


def test_raw_text_is_not_markup() -> None:
    assert shapes("<script>if (a<b) '<p>'</script><p>x</p>") == ["<script>if (a<b) '<p>'</script>", "<p>x</p>"]
    assert shapes("<title>a <b> c</title><b>x</b>") == ["<title>a <b> c</title>", "<b>x</b>"]
    assert shapes("<textarea><p></textarea>") == ["<textarea><p></textarea>"]
    assert shapes("<!-- <p><script> --><i>x</i>") == ["<i>x</i>"]


def test_a_less_than_sign_in_text_opens_nothing() -> None:
    assert shapes("a < b <p>x < y</p> <3") == ["<p>x < y</p>"]


def test_attributes_keep_their_values_and_positions() -> None:
    source = b"<a Href='x>y' class=\"one two\" disabled data-n=3>t</a>"
    element = parse_html(source).elements[0]
    assert [(a.name, a.value) for a in element.attributes] == [
        ("href", "x>y"),
        ("class", "one two"),
        ("disabled", ""),
        ("data-n", "3"),
    ]
    assert [source[a.start : a.end] for a in element.attributes][:2] == [b"Href='x>y'", b'class="one two"']
    assert element.classes == ["one", "two"]


def test_a_head_without_end_tag_ends_at_the_first_content() -> None:
    page = parse_html(b"<html><head><title>t</title><h1>Hi</h1>")
    assert [(e.tag, e.parent.tag) for e in page.elements if e.parent] == [
        ("html", "#document"),
        ("head", "html"),
        ("title", "head"),
        ("h1", "html"),
    ]


def test_stray_end_tags_close_nothing() -> None:
    page = parse_html(b"</div><p>a</p></section>")
    assert [e.tag for e in page.elements] == ["p"]
    assert len(page.stray_end_tags) == 2


def test_every_element_of_the_demo_page_has_its_end_tag() -> None:
    page = parse_html(BAKERY.read_bytes())
    assert len(page.elements) > 80
    assert [e.tag for e in page.elements if not (e.has_end_tag or e.is_void)] == []
    assert page.stray_end_tags == []


def test_ten_thousand_levels_are_no_trouble() -> None:
    assert len(parse_html(b"<div>" * 10_000).elements) == 10_000


def assert_well_nested(element: Element) -> None:
    at = element.inner_start
    for child in element.children:
        assert child.parent is element
        assert at <= child.start < child.inner_start <= child.inner_end <= child.end
        at = child.end
    assert at <= element.inner_end


@given(tag_soup)
def test_elements_of_any_text_nest_and_never_overlap(source: str) -> None:
    page = parse_html(source.encode())
    for element in (page.root, *page.elements):
        assert_well_nested(element)
    starts = [element.start for element in page.elements]
    assert starts == sorted(set(starts))
    assert all(source.encode()[start : start + 1] == b"<" for start in starts)


def test_a_page_that_takes_too_long_to_parse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata_client.html.syntax_tree.MAX_PARSE_SECONDS", -1.0)
    with pytest.raises(EditError, match="are not closed, so that it cannot be read"):
        parse_html(b"<b x=' '" * 3_000)


def test_the_depth_of_new_elements_is_checked_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata_client.html.active_content.MAX_NESTING_DEPTH", 9)
    monkeypatch.setattr("fermata_client.html.sanitize.find_unfinished_tag", pytest.fail)
    with pytest.raises(EditError, match="more than 9 deep"):
        sanitize_html("<div>" * 10, FragmentContext())
