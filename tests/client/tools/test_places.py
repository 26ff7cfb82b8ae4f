"""Parts of tables, lists and pictures go where they belong; what works other than it looks is told to the model."""

from typing import Any

import pytest

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.markdown_fences import strip_markdown_fence
from fermata_client.tools.registry import WRITE_TOOLS


def document(page: str, **files: str) -> HtmlDocument:
    contents = {name.replace("__", "/").replace("_", ".", 1): text.encode() for name, text in files.items()}
    return HtmlDocument.parse(page.encode(), files=contents)


def uid_of(page: HtmlDocument, tag: str, number: int = 0) -> str:
    return [element.uid for element in page.tree.elements if element.tag == tag][number]


def run(page: HtmlDocument, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    edited, data = WRITE_TOOLS[tool](page, arguments)
    return edited.source.decode(), data or {}


def insert(page: str, tag: str, html: str, index: int | None = None) -> str:
    parsed = document(page)
    return run(parsed, "insertHtml", parentId=uid_of(parsed, tag), html=html, index=index)[0]


TABLE = "<table>\n  <tr>\n    <td>1</td>\n  </tr>\n</table>\n"
HEAD, FOOT = "<thead><tr><th>2</th></tr></thead>", "<tfoot><tr><td>2</td></tr></tfoot>"
COLUMNS = "<table><colgroup><col></colgroup></table>\n"
PICTURE = "<picture>\n  <img src=a>\n</picture>\n"
BODY = "<table>\n  <tbody>\n    <tr>\n      <td>1</td>\n    </tr>\n  </tbody>\n</table>\n"


@pytest.mark.parametrize(
    ("page", "tag", "html", "expected"),
    [
        (TABLE, "table", "<tr><td>2</td></tr>", TABLE.replace("</tr>\n", "</tr>\n  <tr><td>2</td></tr>\n")),
        (TABLE, "table", "<tr><td>2", TABLE.replace("</tr>\n", "</tr>\n  <tr><td>2</td></tr>\n")),
        (TABLE, "tr", "<td>2</td>", TABLE.replace("</td>\n", "</td>\n    <td>2</td>\n")),
        (TABLE, "table", "<col>", TABLE.replace("  <tr>", "  <col>\n  <tr>")),
        (TABLE, "table", "<caption>c</caption>", TABLE.replace("  <tr>", "  <caption>c</caption>\n  <tr>")),
        (TABLE, "table", HEAD, TABLE.replace("  <tr>", f"  {HEAD}\n  <tr>")),
        (TABLE, "table", FOOT, TABLE.replace("</tr>\n", f"</tr>\n  {FOOT}\n")),
        (BODY, "table", "<tr><td>2</td></tr>", BODY.replace("</tr>\n", "</tr>\n    <tr><td>2</td></tr>\n")),
        (BODY, "tbody", "<tr><td>2</td></tr>", BODY.replace("</tr>\n", "</tr>\n    <tr><td>2</td></tr>\n")),
        ("<table></table>\n", "table", "<tr><td>2</td></tr>", "<table><tr><td>2</td></tr></table>\n"),
        (COLUMNS, "table", "<col>", COLUMNS.replace("<col>", "<col><col>")),
        ("<ul>\n  <li>a\n  <li>b\n</ul>\n", "ul", "<li>c", "<ul>\n  <li>a\n  <li>b\n  <li>c</li>\n</ul>\n"),
        ("<dl><dt>a</dt></dl>\n", "dl", "<dd>b</dd>", "<dl><dt>a</dt><dd>b</dd></dl>\n"),
        ("<select><option>a</select>", "select", "<option>b", "<select><option>a<option>b</option></select>"),
        (PICTURE, "picture", "<source srcset=b>", PICTURE.replace("  <img", "  <source srcset=b>\n  <img")),
        ("<video><source src=a></video>", "video", "<source src=b>", "<video><source src=a><source src=b></video>"),
        ("<fieldset><p></fieldset>", "fieldset", "<legend>l", "<fieldset><legend>l</legend><p></fieldset>"),
        ("<template></template>\n", "template", "<tr><td>2</td></tr>", "<template><tr><td>2</td></tr></template>\n"),
    ],
)  # fmt: skip
def test_a_part_is_welcome_where_it_belongs(page: str, tag: str, html: str, expected: str) -> None:
    assert insert(page, tag, html) == expected


def test_a_source_behind_the_image_would_never_be_used() -> None:
    page = "<picture>\n  <img src=a>\n</picture>\n"
    assert insert(page, "picture", "<source srcset=b>", 1) == insert(page, "picture", "<source srcset=b>", 0)


@pytest.mark.parametrize(
    ("page", "tag", "html", "reason"),
    [
        ("<div></div>", "div", "<tr><td>2</td></tr>", "<tr> belongs in a <table>"),
        ("<div></div>", "div", "<td>2</td>", "<td> belongs in a <tr>"),
        (TABLE, "table", "<td>2</td>", "<td> belongs in a <tr>"),
        (TABLE, "td", "<tr><td>2</td></tr>", "<tr> belongs in a <table>"),
        (TABLE, "table", "<p>2</p>", "move a <p> out of a <table>, which takes: <caption>"),
        (TABLE, "tr", "<li>2</li>", "Put it in a cell"),
        (TABLE, "table", "two", "Browsers move text out of a <table>"),
        ("<a href=x>\n<b>1</b>\n</a>\n", "a", "<i><a href=y>2</a></i>", "cannot be within the <a> n1"),
    ],
)
def test_what_a_browser_would_drop_or_move_is_refused_with_its_place(
    page: str, tag: str, html: str, reason: str
) -> None:
    parsed = document(page)
    with pytest.raises(EditError, match=reason):
        run(parsed, "insertHtml", parentId=uid_of(parsed, tag), html=html, index=0)
    if tag != "a":  # whose old content is gone then
        with pytest.raises(EditError, match=reason):
            run(parsed, "replaceNodeHtml", nodeId=uid_of(parsed, tag), html=html)


def test_rows_of_a_template_engine_may_have_statements_between_them() -> None:
    rows = "{% for a in b %}<tr><td>{{ a }}</td></tr>{% endfor %}"
    assert rows in insert(TABLE, "table", rows)


def test_a_row_is_not_moved_out_of_its_table() -> None:
    page = document("<div></div>\n" + TABLE)
    with pytest.raises(EditError, match="belongs in a"):
        run(page, "moveNode", nodeId=uid_of(page, "tr"), newParentId=uid_of(page, "div"), newIndex=0)


# Fences


@pytest.mark.parametrize(
    "fenced",
    [
        "```html\n{}\n```",
        "```\n{}\n```\n",
        "\n~~~html\n{}\n~~~\n",
        "````html\n{}\n````",
        "```html\r\n{}\r\n```",
        "```html\n{}",
        "{}\n```",
        "```{}```",
        "```html {}```",
        "Here is the HTML:\n\n```html\n{}\n```\n\nIt adds a paragraph.",
        "Here is the <p> with `card`:\n```html\n{}\n```",
        "Sure! ```html\n{}\n```",
        '```HTML title="index.html"\n{}\n```',
        "```html:index.html\n{}\n```",
        "``` {{.html}}\n{}\n```",
        "```html // index.html\n{}\n```",
        "```html{}\n```",
        "```html\n{}```",
        "\u200b```html\n{}\n```",
    ],
)
def test_fences_around_markup_are_taken_off(fenced: str) -> None:
    assert insert("<main></main>\n", "main", fenced.format("<p>a</p>")) == "<main><p>a</p></main>\n"


@pytest.mark.parametrize("fenced", ["```css\n{}\n```", "~~~\n{}\n~~~", "```{}```"])
def test_fences_around_rules_are_taken_off(fenced: str) -> None:
    page = document('<link rel="stylesheet" href="a.css"><style></style>', a_css="a {}\n")
    edited, _ = WRITE_TOOLS["applyCss"](page, {"css": fenced.format("p { top: 0 }")})
    assert not set(b"`~") & set(edited.source)
    assert b"p { top: 0 }" in edited.source
    written = {"path": "a.css", "type": "style", "content": fenced.format("p { top: 0 }")}
    assert WRITE_TOOLS["write_code_asset"](page, written)[0].files["a.css"].strip() == b"p { top: 0 }"


@pytest.mark.parametrize("wrapped", ["<style>{}</style>", "<style media=screen>\n{}\n</style>\n", "<STYLE>\n{}"])
def test_the_tags_of_a_style_element_around_rules_are_taken_off(wrapped: str) -> None:
    page = document("<style>\n</style>\n")
    edited, _ = WRITE_TOOLS["applyCss"](page, {"css": wrapped.format("p { top: 0 }")})
    assert edited.source.decode() == "<style>\n  p { top: 0 }\n</style>\n"
    written = {"path": "a.css", "type": "style", "content": wrapped.format("p { top: 0 }")}
    edited, _ = WRITE_TOOLS["write_code_asset"](page, written)
    assert edited.files["a.css"] == b"p { top: 0 }"


def test_the_tags_of_a_script_are_taken_off_a_file_and_kept_within_its_text() -> None:
    page = document("<p>a</p>")
    for content, expected in {
        "<script>\nlet a = 1;\n</script>": "let a = 1;",
        'write("<script src=x><\\/script>")': 'write("<script src=x><\\/script>")',
    }.items():
        written = {"path": "a.js", "type": "script", "content": content}
        edited, _ = WRITE_TOOLS["write_code_asset"](page, written)
        assert edited.files["a.js"].decode() == expected


@pytest.mark.parametrize(
    ("sheet", "closed"),
    [
        ("p { top: 0", "p { top: 0}\nh1 { top: 0 }\n"),
        ("@media print { p { top: 0", "@media print { p { top: 0}}\nh1 { top: 0 }\n"),
        ("p { top: 0 }\n/* open", "p { top: 0 }\n/* open*/\nh1 { top: 0 }\n"),
        ("p { top: 0 }\n/* } { */\n", "p { top: 0 }\n/* } { */\nh1 { top: 0 }\n"),
    ],
)
def test_a_new_rule_is_not_within_a_rule_that_the_sheet_leaves_open(sheet: str, closed: str) -> None:
    page = document("<link rel=stylesheet href=a.css>", a_css=sheet)
    edited, _ = WRITE_TOOLS["applyCss"](page, {"css": "h1 { top: 0 }"})
    assert edited.files["a.css"].decode() == closed


def test_several_fenced_blocks_are_joined() -> None:
    fenced = "First:\n```html\n<p>a</p>\n```\nThen:\n```html\n<p>b</p>\n```\n"
    assert strip_markdown_fence(fenced) == "<p>a</p>\n<p>b</p>"
    mixed = insert("<style></style><main></main>\n", "main", "```html\n<p>a</p>\n```\n```css\n.c { top: 0 }\n```")
    assert (mixed.count("<p>a</p>"), mixed.count(".c { top: 0 }"), "```" in mixed) == (1, 1, False)


def test_a_script_with_fences_in_a_text_keeps_them() -> None:
    script = "const text = `\n```js\nx\n```\n`;"
    assert strip_markdown_fence(script) == script
    assert strip_markdown_fence(f"```js\n{script}\n```") != ""


@pytest.mark.parametrize("text", ["<p>`a` ```b``` c</p>", "<pre>\n```\nx\n```\n</pre>", "a ``` b", "", "`a`"])
def test_text_with_fences_in_it_stays(text: str) -> None:
    assert strip_markdown_fence(text) == text


# Warnings


def note_of(page: HtmlDocument, tool: str, **arguments: Any) -> str:
    return str(run(page, tool, **arguments)[1].get("note", ""))


@pytest.mark.parametrize("tag", ["a", "button", "form"])
def test_an_element_within_one_of_its_kind_is_told(tag: str) -> None:
    page = document(f"<main></main>\n<{tag}>x</{tag}>\n")
    nested = f"<{tag}><span><{tag}>y</{tag}></span></{tag}>"
    assert f"is within the <{tag}>" in note_of(page, "insertHtml", parentId=uid_of(page, "main"), html=nested)
    assert f"is within the <{tag}>" in note_of(page, "insertHtml", parentId=uid_of(page, tag), html=f"<{tag}>y</{tag}>")
    assert note_of(page, "insertHtml", parentId=uid_of(page, "main"), html=f"<{tag}>y</{tag}><{tag}>z</{tag}>") == ""


def test_an_id_that_occurs_twice_is_told_once() -> None:
    page = document("<main></main>\n<p id=a></p>\n")
    main = uid_of(page, "main")
    assert "“a” occurs more than once" in note_of(page, "insertHtml", parentId=main, html='<p id="a">x</p>')
    assert "“b” occurs more than once" in note_of(page, "insertHtml", parentId=main, html="<p id=b></p><p id=b></p>")
    assert note_of(page, "insertHtml", parentId=main, html="<p id=c></p>") == ""
    edited, _ = WRITE_TOOLS["insertHtml"](page, {"parentId": main, "html": "<p id=a>x</p>"})
    assert note_of(edited, "insertHtml", parentId=main, html="<p id=c></p>") == ""


@pytest.mark.parametrize(
    ("meta", "named"),
    [
        ("<meta charset=iso-8859-1>", "iso-8859-1"),
        ("<meta http-equiv=Content-Type content='text/html; charset=windows-1252'>", "windows-1252"),
        ("<meta charset=utf-8>", ""),
        ("<meta charset=UTF8>", ""),
        ("<meta name=description content='charset=latin1'>", ""),
    ],
)
def test_characters_that_the_declared_set_does_not_show_are_told(meta: str, named: str) -> None:
    page = document(f"{meta}\n<main></main>\n")
    main = uid_of(page, "main")
    assert named in note_of(page, "insertHtml", parentId=main, html="<p>caf\u00e9</p>")
    assert bool(named) == bool(note_of(page, "insertHtml", parentId=main, html="<p>caf\u00e9</p>"))
    assert note_of(page, "insertHtml", parentId=main, html="<p>cafe</p>") == ""


@pytest.mark.parametrize(
    ("css", "address"),
    [
        ('@import url("https://fonts.example/a.css");', "https://fonts.example/a.css"),
        ("@import 'http://x.example/a.css' screen;", "http://x.example/a.css"),
        ("@IMPORT url(//x.example/a.css);", "//x.example/a.css"),
    ],
)
def test_an_import_from_another_site_is_told(css: str, address: str) -> None:
    page = document('<link rel="stylesheet" href="a.css"><main></main>\n', a_css="a {}\n")
    rules = css + "\np { top: 0 }"
    written = {"path": "a.css", "type": "style", "content": rules}
    html = {"parentId": uid_of(page, "main"), "html": f"<p>x</p><style>{rules}</style>"}
    for tool, arguments in (("applyCss", {"css": rules}), ("write_code_asset", written), ("insertHtml", html)):
        assert f"An @import loads {address}" in note_of(page, tool, **arguments)


@pytest.mark.parametrize("css", ["@import 'b.css';", "/* @import url(https://x.example) */"])
def test_an_import_of_the_site_itself_needs_no_word(css: str) -> None:
    page = document('<link rel="stylesheet" href="a.css">\n', a_css="a {}\n")
    assert note_of(page, "applyCss", css=css + "\np { top: 0 }") == ""


# Code of a server


@pytest.mark.parametrize("code", ["<?php system('x') ?>", "<?= $x ?>", "<% system() %>", "<?php system('x')"])
def test_no_tool_adds_code_that_a_server_would_run(code: str) -> None:
    page = document("<?php get_header(); ?>\n<title>T</title>\n<style>a {}</style>\n<main>x</main>\n")
    main = uid_of(page, "main")
    source, data = run(page, "insertHtml", parentId=main, html=f"<p>y</p>{code}")
    assert "<p>y</p>" in source
    assert code not in source
    assert "code of the server" in data["note"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("updateNodeProps", {"nodeId": main, "patch": {"title": code}}),
        ("applyCss", {"css": f'p {{ content: "{code}" }}'}),
        ("replaceNodeHtml", {"nodeId": uid_of(page, "title"), "html": code}),
        ("write_code_asset", {"path": "index.html#style-1", "type": "style", "content": f'p {{ content: "{code}" }}'}),
    ]
    for tool, arguments in calls:
        with pytest.raises(EditError, match=r"A server could run|Send complete rules"):
            run(page, tool, **arguments)
    assert code.replace("<", "&lt;") in run(page, "updateNodeProps", nodeId=main, patch={"text": code})[0].replace(
        "&gt;", ">"
    )
    assert run(page, "duplicateNode", nodeId=main)[1]["nodeIds"]


@pytest.mark.parametrize(
    ("page", "tag", "html"),
    [
        ("<svg><g></g></svg>", "svg", "<p>a</p>"),
        ("<svg><g></g></svg>", "g", "<span>a</span>"),
        ("<math><mi>x</mi></math>", "math", "<div>a</div>"),
        ("<frameset><frame src=a></frameset>", "frameset", "<p>a</p>"),
        ("<head><noscript><style></style></noscript></head><body></body>", "noscript", "<p>a</p>"),
        ("<p><span>a</span></p>", "span", "<div>b</div>"),
    ],
)
@pytest.mark.parametrize("tool", ["insertHtml", "replaceNodeHtml"])
def test_elements_that_a_browser_moves_out_of_their_parent_are_refused(
    page: str, tag: str, html: str, tool: str
) -> None:
    parsed = document(page)
    name = "parentId" if tool == "insertHtml" else "nodeId"
    with pytest.raises(EditError):
        run(parsed, tool, html=html, **{name: uid_of(parsed, tag)})


@pytest.mark.parametrize(
    ("page", "tag", "html"),
    [
        ("<svg><g></g></svg>", "g", '<circle r="1"/>'),
        ("<svg><foreignObject></foreignObject></svg>", "foreignobject", "<p>a</p>"),
        ("<table><tr><td>a</table>", "table", "<tr><td>b</td></tr>"),
        ("<template><table></table></template>", "table", "<tr><td>b</td></tr>"),
        ("<x-card></x-card>", "x-card", "<p>a</p>"),
        ("<body><noscript></noscript></body>", "noscript", "<p>a</p>"),
    ],
)
def test_elements_that_a_browser_leaves_in_their_parent_are_inserted(page: str, tag: str, html: str) -> None:
    assert html in insert(page, tag, html)


@pytest.mark.parametrize(
    ("page", "moved", "parent"),
    [
        ("<a href=a>x<i>y</i></a><a href=b>z</a>", ("a", 0), ("a", 1)),
        ("<div><a href=a>x</a></div><a href=b>z</a>", ("div", 0), ("a", 1)),
        ("<dl><dt>a</dt></dl><p><b>c</b></p>", ("dt", 0), ("b", 0)),
        ("<div>a</div><p><span>b</span></p>", ("div", 0), ("span", 0)),
        ("<div><form></form></div><form><main></main></form>", ("div", 0), ("main", 0)),
        ("<span>a</span><svg><g></g></svg>", ("span", 0), ("g", 0)),
        ("<svg><g><circle/><text>a</text></g></svg><main></main>", ("g", 0), ("main", 0)),
        ("<math><mi>x</mi></math><svg><g></g></svg>", ("mi", 0), ("g", 0)),
        ("<svg><g></g><foreignObject></foreignObject></svg>", ("g", 0), ("foreignobject", 0)),
        ("<x-a></x-a><svg><g></g></svg>", ("x-a", 0), ("g", 0)),
    ],
)
def test_nodes_are_not_moved_where_a_browser_would_not_leave_them(
    page: str, moved: tuple[str, int], parent: tuple[str, int]
) -> None:
    parsed = document(page)
    with pytest.raises(EditError):
        run(parsed, "moveNode", nodeId=uid_of(parsed, *moved), newParentId=uid_of(parsed, *parent), newIndex=0)


def test_a_copy_in_preformatted_text_adds_no_white_space() -> None:
    parsed = document("<pre>\n  <b>a</b> c\n</pre>\n")
    source, _ = run(parsed, "duplicateNode", nodeId=uid_of(parsed, "b"))
    assert source == "<pre>\n  <b>a</b><b>a</b> c\n</pre>\n"


def test_frames_have_no_content() -> None:
    parsed = document("<frameset>\n<frame src=a>\n<frame src=b>\n</frameset>\n")
    assert run(parsed, "deleteNode", nodeId=uid_of(parsed, "frame"))[0] == "<frameset>\n<frame src=b>\n</frameset>\n"


def test_a_whole_drawing_moves_and_its_parts_move_within_it() -> None:
    parsed = document("<main></main>\n<svg><g></g><path/></svg>\n")
    moved = run(parsed, "moveNode", nodeId=uid_of(parsed, "svg"), newParentId=uid_of(parsed, "main"), newIndex=0)[0]
    assert moved == "<main><svg><g></g><path/></svg></main>\n"
    inner = run(parsed, "moveNode", nodeId=uid_of(parsed, "path"), newParentId=uid_of(parsed, "g"), newIndex=0)[0]
    assert "".join(inner.split()) == "<main></main><svg><g><path/></g></svg>"


def test_parts_of_a_drawing_without_content_get_no_end_tags() -> None:
    parsed = document('<svg><g id="a"><path/><text>b</text></g></svg>\n')
    copied = run(parsed, "duplicateNode", nodeId=uid_of(parsed, "path"))[0]
    assert copied == parsed.source.decode().replace("<path/>", "<path/><path/>")
    grown = run(parsed, "insertHtml", parentId=uid_of(parsed, "g"), html='<circle r="1"/><rect/>')[0]
    assert "".join(grown.split()).count('<circler="1"/><rect/></g></svg>') == 1


def test_parts_of_ruby_text_end_where_the_next_one_begins() -> None:
    parsed = document("<ruby>a<rp>(<rt>b<rp>)</ruby>\n")
    assert [element.parent.tag for element in parsed.tree.elements[1:] if element.parent] == ["ruby"] * 3
    assert run(parsed, "deleteNode", nodeId=uid_of(parsed, "rt"))[0] == "<ruby>a<rp>(<rp>)</ruby>\n"


def test_what_is_shown_in_the_head_is_refused_with_what_belongs_there() -> None:
    source = "<!doctype html><html><head><title>x</title></head><body><p>a</p></body></html>"
    parsed = document(source)
    with pytest.raises(EditError, match=r"would break the <head>.*Only base, link, meta, .* the <body>"):
        run(parsed, "insertHtml", parentId=uid_of(parsed, "head"), html="<p>y</p>", index=0)
