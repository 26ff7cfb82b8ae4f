"""`moveNode`, `duplicateNode` and `updateNodeProps`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.move_and_duplicate import duplicate_node, move_node
from fermata_client.tools.node_properties import update_node_props
from fermata_client.tools.registry import WRITE_TOOLS
from tests.client.difficult_documents import documents, tool_inputs
from tests.client.html_strategies import assert_elements_kept, other_elements

SECTIONS = """<body>
  <main>
    <!-- about a -->
    <section id="a">
      <h2>A</h2>
    </section> <!-- /a -->

    <section id="b">
      <pre>
 keep
</pre>
    </section>
  </main>
  <footer><p>f <b>x</b> <i>y</i> z</p></footer>
</body>
"""


def page(source: str = SECTIONS) -> HtmlDocument:
    return HtmlDocument.parse(source.encode())


def find_uid(document: HtmlDocument, tag: str, number: int = 0) -> str:
    return [e.uid for e in document.tree.elements if e.tag == tag][number]


def move(document: HtmlDocument, node: str, parent: str, index: int) -> HtmlDocument:
    return move_node(document, {"nodeId": node, "newParentId": parent, "newIndex": index})[0]


def source_text(document: HtmlDocument) -> str:
    return document.source.decode()


def test_a_moved_section_keeps_its_comments_and_is_laid_out_like_its_siblings() -> None:
    document = page()
    moved = move(document, find_uid(document, "section", 1), find_uid(document, "main"), 0)
    assert source_text(moved) == (
        '<body>\n  <main>\n    <section id="b">\n      <pre>\n keep\n</pre>\n    </section>\n\n'
        '    <!-- about a -->\n    <section id="a">\n      <h2>A</h2>\n    </section> <!-- /a -->\n  </main>\n'
        "  <footer><p>f <b>x</b> <i>y</i> z</p></footer>\n</body>\n"
    )
    assert source_text(move(document, find_uid(document, "section"), find_uid(document, "main"), 1)) == source_text(
        moved
    )


def test_a_node_moved_out_and_up_gets_the_indentation_of_its_new_place_and_keeps_its_id() -> None:
    document = page()
    node, body = find_uid(document, "section", 1), find_uid(document, "body")
    moved = move(document, node, body, 0)
    assert source_text(moved).startswith(
        '<body>\n  <section id="b">\n    <pre>\n keep\n</pre>\n  </section>\n  <main>\n'
    )
    assert moved.find_element(node).attribute_value("id") == "b"
    assert moved.find_element(find_uid(document, "pre")).parent is moved.find_element(node)
    assert moved.next_id == document.next_id


def test_a_conditional_comment_belongs_to_no_element() -> None:
    old, odd = "<!--[if IE]><p>old</p><![endif]-->", "<!--[if IE]>x<![endif]-->"
    document = page(f"<main>\n  {old}\n  <p>a</p>{odd}\n  <p>b</p>\n</main>\n")
    moved = move(document, find_uid(document, "p"), find_uid(document, "main"), 1)
    assert source_text(moved) == f"<main>\n  {old}\n  {odd}\n  <p>b</p>\n  <p>a</p>\n</main>\n"


def test_a_word_moves_within_its_line() -> None:
    document = page()
    moved = move(document, find_uid(document, "i"), find_uid(document, "p"), 0)
    assert "<p>f <i>y</i><b>x</b> z</p>" in source_text(moved)


def test_lines_of_windows_stay_lines_of_windows() -> None:
    document = page(SECTIONS.replace("\n", "\r\n"))
    moved = move(document, find_uid(document, "section", 1), find_uid(document, "main"), 0)
    assert "\n" not in source_text(moved).replace("\r\n", "")


def test_an_item_without_end_tag_gets_one_where_it_goes() -> None:
    document = page("<ul>\n  <li>one\n  <li>two\n</ul>\n<ol>\n  <li>x</li>\n</ol>\n")
    moved = move(document, find_uid(document, "li"), find_uid(document, "ol"), 0)
    assert source_text(moved) == "<ul>\n  <li>two\n</ul>\n<ol>\n  <li>one</li>\n  <li>x</li>\n</ol>\n"


@pytest.mark.parametrize(
    ("node", "parent", "index", "reason"),
    [
        ("n3", "n3", 0, "cannot be moved into itself"),
        ("n3", "n4", 0, "cannot be moved into itself"),
        ("n1", "n2", 0, "The body of a page cannot be moved"),
        ("n3", "n2", 2, "a number from 0 to 1"),
        ("n3", "n77", 0, "There is no node n77"),
        ("n77", "n2", 0, "There is no node n77"),
        ("document", "n2", 0, "cannot be moved"),
    ],
)
def test_a_move_that_cannot_be_says_why(node: str, parent: str, index: int, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        move(page(), node, parent, index)


def test_nothing_moves_into_an_element_without_content() -> None:
    document = page("<p>a</p><img src=x><title>t</title><script>1</script>")
    for tag, reason in (("img", "has no content"), ("title", "holds text only"), ("script", "write_code_asset")):
        with pytest.raises(EditError, match=reason):
            move(document, "n1", find_uid(document, tag), 0)


def test_a_block_does_not_move_into_a_paragraph() -> None:
    with pytest.raises(EditError):
        move(page("<div>x</div><p>a</p>"), "n1", "n2", 0)


def test_a_node_that_is_there_already_is_left_alone() -> None:
    document = page()
    same, data = move_node(document, {"nodeId": "n3", "newParentId": "n2", "newIndex": 0})
    assert (same, data) == (document, {"note": "The node is there already."})


@given(st.data())
def test_a_move_keeps_every_element_and_its_id(data: st.DataObject) -> None:
    document = data.draw(documents())
    uids = st.sampled_from([element.uid for element in document.tree.elements] or ["document"])
    node, parent, index = data.draw(uids), data.draw(uids), data.draw(st.integers(0, 3))
    try:
        moved = move(document, node, parent, index)
    except EditError:
        return
    before = {element.uid: element.tag for element in document.tree.elements}
    assert {element.uid: element.tag for element in moved.tree.elements} == before
    others = [child.uid for child in document.find_element(parent).children if child.uid != node]
    assert [child.uid for child in moved.find_element(parent).children] == [*others[:index], node, *others[index:]]


@given(st.data())
def test_a_tool_for_one_node_leaves_the_bytes_of_all_others(data: st.DataObject) -> None:
    document = data.draw(documents())
    name = data.draw(st.sampled_from(("updateNodeProps", "duplicateNode", "assignClass", "removeClass", "deleteNode")))
    arguments = data.draw(tool_inputs(name, document))
    try:
        edited, _ = WRITE_TOOLS[name](document, arguments)
    except EditError:
        return
    target = document.find_element(arguments["nodeId"])
    assert_elements_kept(other_elements(document, target), edited)


# Copies


def test_copies_stand_behind_their_source_with_ids_of_their_own() -> None:
    document = page('<main>\n  <p id="x">a <a href="#x">up</a></p>\n\n  <p id="x-2">b</p>\n</main>\n')
    copied, data = duplicate_node(document, {"nodeId": find_uid(document, "p"), "count": 2})
    assert source_text(copied) == (
        '<main>\n  <p id="x">a <a href="#x">up</a></p>\n\n  <p id="x-3">a <a href="#x-3">up</a></p>\n\n'
        '  <p id="x-4">a <a href="#x-4">up</a></p>\n\n  <p id="x-2">b</p>\n</main>\n'
    )
    assert (data["nodeId"], data["nodeIds"]) == ("n5", ["n5", "n7"])
    assert "x-3, x-4" in data["note"]


def test_what_refers_to_an_id_within_a_copy_follows_it() -> None:
    document = page('<div><label for="f">l</label><input id="f" aria-describedby="f out"><svg fill="url(#f)"/></div>')
    copied, _ = duplicate_node(document, {"nodeId": "n1"})
    assert source_text(copied).endswith(
        '<label for="f-2">l</label><input id="f-2" aria-describedby="f-2 out"><svg fill="url(#f-2)"/></div>'
    )


def test_a_copy_within_a_line_stays_there() -> None:
    document = page("<p>one <b>two</b> three</p>\n<ul><li>a</li><li>b</li></ul>\n")
    assert source_text(duplicate_node(document, {"nodeId": "n2"})[0]).startswith(
        "<p>one <b>two</b> <b>two</b> three</p>"
    )
    assert source_text(duplicate_node(document, {"nodeId": "n4"})[0]).endswith(
        "<ul><li>a</li><li>a</li><li>b</li></ul>\n"
    )


@pytest.mark.parametrize("count", [0, 51, "2", True])
def test_there_are_one_to_fifty_copies(count: Any) -> None:
    with pytest.raises(EditError, match="`count` must be a whole number from 1 to 50"):
        duplicate_node(page(), {"nodeId": "n3", "count": count})
    assert len(duplicate_node(page(), {"nodeId": "n3", "count": 50})[1]["nodeIds"]) == 50


@pytest.mark.parametrize("tag", ["html", "body", "title", "script", "meta"])
def test_what_a_page_has_once_is_not_copied(tag: str) -> None:
    document = page("<html><head><title>t</title><meta charset=utf-8><script>1</script></head><body></body></html>")
    with pytest.raises(EditError):
        duplicate_node(document, {"nodeId": find_uid(document, tag)})


# Words and attributes


def props(source: str, tag: str, patch: dict[str, Any], **further_arguments: Any) -> str:
    document = page(source)
    return source_text(
        update_node_props(document, {"nodeId": find_uid(document, tag), "patch": patch, **further_arguments})[0]
    )


def test_words_keep_the_white_space_around_them() -> None:
    assert props("<p>\n  old\n</p>", "p", {"text": "a & <b>"}) == "<p>\n  a &amp; &lt;b&gt;\n</p>"
    assert props("<li>one\n<li>two", "li", {"text": "1"}) == "<li>1\n<li>two"


def test_an_attribute_is_changed_in_its_place_with_its_own_quotes() -> None:
    assert props("<A HREF='x' Class=\"c\">l</A>", "a", {"href": "it's&"}) == "<A HREF='it&#39;s&amp;' Class=\"c\">l</A>"
    assert props("<a href=x>l</a>", "a", {"href": "/y"}) == '<a href="/y">l</a>'


def test_a_new_attribute_follows_the_others_and_a_null_removes_one() -> None:
    assert props('<img src="a"\n     alt="b">', "img", {"width": 300.0, "alt": None}) == '<img src="a" width="300">'
    assert props("<br/><input/>", "input", {"required": True, "disabled": False}) == "<br/><input required/>"
    assert props("<input required>", "input", {"required": False}) == "<input>"


def test_svg_keeps_its_own_spelling() -> None:
    assert props("<svg></svg>", "svg", {"viewBox": "0 0 9 9"}) == '<svg viewBox="0 0 9 9"></svg>'


@pytest.mark.parametrize(
    ("source", "patch", "reason"),
    [
        (
            "<a href=x>l</a>",
            {"colour": "red"},
            "`colour` is not a property of a <a>. A <a> takes: text, download, href",
        ),
        ("<a href=x>l</a>", {"href": "java\nscript:x()"}, "must be an address"),
        ("<a href=x>l</a>", {"href": "data:text/html,x"}, "only pictures"),
        ("<a href=x>l</a>", {"onclick": "x()"}, "write_code_asset"),
        ("<a href=x>l</a>", {"class": "b"}, "assignClass"),
        ("<a href=x>l</a>", {"html": "<b>x</b>"}, "replaceNodeHtml"),
        ("<a href=x>l</a>", {"uid": "n9"}, "cannot be set"),
        ("<a href=x>l</a>", {'x" onclick="y': "z"}, "is not a property"),
        ("<a href=x>l</a>", {"href": ["x"]}, "must be a text, a number"),
        ("<a href=x>l</a>", {}, "`patch` is empty. A <a> takes"),
        ("<a href=x>l</a><p id=b>", {"id": "b"}, "The id “b” is taken by the <p> with uid n2"),
        ("<a href=x>l</a>", {"id": "a b"}, "without white space"),
        ("<a href=x><b>l</b></a>", {"text": "x"}, "There is <b> in this <a>: use replaceNodeHtml"),
        ("<img src=x>", {"text": "x"}, "A <img> has no text"),
        ("<script>1</script>", {"src": "https://elsewhere.example/x.js"}, "is not a property of a <script>"),
    ],
)
def test_what_an_element_does_not_take_is_said_with_what_it_takes(
    source: str, patch: dict[str, Any], reason: str
) -> None:
    with pytest.raises(EditError) as refused:
        update_node_props(page(source), {"nodeId": "n1", "patch": patch})
    assert reason in str(refused.value)


def test_a_property_for_one_breakpoint_is_refused_with_the_way_to_do_it() -> None:
    arguments: dict[str, Any] = {"nodeId": "n1", "patch": {"text": "x"}}
    with pytest.raises(EditError, match="media query with applyCss"):
        update_node_props(page("<p>a</p>"), {**arguments, "breakpointId": "max-640"})
    assert source_text(update_node_props(page("<p>a</p>"), {**arguments, "breakpointId": "all"})[0]) == "<p>x</p>"


def test_a_picture_may_be_given_as_data() -> None:
    assert 'src="data:image/png;base64,AA=="' in props("<img>", "img", {"src": "data:image/png;base64,AA=="})


# Bytes that are content


PROPS = "plugins: [\n\t\t\t\t'undo',\n\t\t\t\t'redo'\n\t\t\t]"
CONTENTS = {
    "an attribute": f'<div id="ed" data-props="{PROPS}">x</div>',
    "an attribute in single quotes": "<div id=\"ed\" title='a\n   b\n\n\tc  '>x</div>",
    "pre": '<pre id="ed">\n\t\tone\n  two\n\n three</pre>',
    "textarea": '<textarea id="ed">\n\ta\n b</textarea>',
    "a script": '<div id="ed"><script>\n  let a = `x\n\ty`;\n</script></div>',
    "a style": '<div id="ed" style="white-space: pre-wrap">\n\ta\n b</div>',
    "a nested pre": '<section id="ed">\n\t\t\t\t<p>a</p>\n\t\t\t\t<pre>\n a\n\t\tb\n</pre>\n\t\t\t</section>',
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("content", CONTENTS)
def test_a_move_changes_no_byte_of_what_is_content(content: str, newline: str) -> None:
    markup = CONTENTS[content]
    source = f'<body>\n\t<main>\n\t\t<div id="w">\n\t\t\t{markup}\n\t\t</div>\n\t</main>\n</body>\n'.replace(
        "\n", newline
    )
    page = HtmlDocument.parse(source.encode())
    moved_uid = next(element.uid for element in page.tree.elements if element.attribute_value("id") == "ed")
    for parent_tag in ("body", "main"):
        parent = next(element.uid for element in page.tree.elements if element.tag == parent_tag)
        edited, _ = move_node(page, {"nodeId": moved_uid, "newParentId": parent, "newIndex": 0})
        kept = edited.source.decode()
        if content == "a nested pre":
            assert "<pre>\n a\n\t\tb\n</pre>".replace("\n", newline) in kept
        else:
            assert markup.replace("\n", newline) in kept


@pytest.mark.parametrize("rule", [".code { white-space: pre }", "main code,\n.x > .code { white-space: pre-wrap }"])
def test_a_move_changes_no_byte_of_what_a_rule_shows_as_it_is(rule: str) -> None:
    code = '<code class="code">\n        a\n  b\n      </code>'
    rules = f"@media all {{ {rule} }}"
    source = f"<style>{rules}</style>\n<body>\n  <main>\n    <div>\n      {code}\n    </div>\n  </main>\n</body>\n"
    page = HtmlDocument.parse(source.encode())
    uids = {element.tag: element.uid for element in page.tree.elements}
    edited, _ = move_node(page, {"nodeId": uids["div"], "newParentId": uids["body"], "newIndex": 0})
    assert code in edited.source.decode()


def test_a_move_keeps_the_line_ends_of_a_file_with_both_kinds() -> None:
    source = b'<body>\r\n<p>a</p>\r\n<main>\r\n<div title="a\nb">\nx\n</div>\r\n</main>\r\n</body>\r\n'
    page = HtmlDocument.parse(source)
    uids = {element.tag: element.uid for element in page.tree.elements}
    edited, _ = move_node(page, {"nodeId": uids["div"], "newParentId": uids["body"], "newIndex": 0})
    assert b'<div title="a\nb">\nx\n</div>' in edited.source


def test_a_move_out_of_and_into_preformatted_text_adds_and_takes_no_space() -> None:
    page = HtmlDocument.parse(b"<body>\n<pre>\n  a\n  <b>x</b>\n  c\n</pre>\n<pre>1\n2</pre>\n</body>\n")
    first, second = [element.uid for element in page.tree.elements if element.tag == "pre"]
    bold = next(element.uid for element in page.tree.elements if element.tag == "b")
    edited, _ = move_node(page, {"nodeId": bold, "newParentId": second, "newIndex": 0})
    assert edited.source == b"<body>\n<pre>\n  a\n  \n  c\n</pre>\n<pre>1\n2<b>x</b></pre>\n</body>\n"
    assert first != second


def test_white_space_that_a_drawing_shows_keeps_its_bytes() -> None:
    text = '<svg><text xml:space="preserve">\n      k</text></svg>'
    document = page(f"<body>\n  <section>\n    <div>\n      {text}\n    </div>\n  </section>\n</body>\n")
    moved = move(document, find_uid(document, "div"), find_uid(document, "body"), 0)
    assert f"  <div>\n    {text}\n  </div>\n" in source_text(moved)
