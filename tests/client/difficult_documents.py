"""Pages that are difficult to edit, and generated inputs of every tool that writes."""

from typing import Any

from hypothesis import strategies as st

from fermata_client import HtmlDocument
from tests.client.html_strategies import BAKERY, html_fragments, tag_soup, well_formed_pages

DIFFICULT_PAGES = {
    "windows": "\ufeff<!DOCTYPE html>\r\n<HTML lang=de>\r\n\t<HEAD>\r\n\t\t<TITLE>Bäckerei &amp; Café</TITLE>\r\n"
    "\t\t<STYLE>\r\n\t\t\t.a { color: red }\r\n\t\t</STYLE>\r\n\t</HEAD>\r\n\t<BODY CLASS='a'>\r\n\t\t<P>Grüße 🥐\r\n"
    "\t\t<P CLASS=a>zwei\r\n\t</BODY>\r\n</HTML>\r\n",
    "unclosed": "<title>t</title><ul>\n <li>one\n <li>two <b>bold\n <li>three\n</ul>\n<p>a\n<p>b\n<dl><dt>x<dd>y</dl>"
    "<table><tr><td>1<td>2<tr><td>3</table><select><option>a<option selected>b</select>",
    "comments": "<!-- top -->\n<!--[if IE]><p>old</p><![endif]-->\n<body>\n  <!-- about a -->\n  <section>a</section>"
    "<!-- /a -->\n\n  <!-- <b>not here</b> -->\n  <section id=b>b</section>\n  <!--> odd -->\n</body>",
    "svg": '<body><svg viewBox="0 0 1 1"><style>.x{fill:red}</style><title>icon</title><path d="M0 0"/><a href="#x">'
    '<text>t</text></a></svg><math><mi>x</mi></math><img src="a.png" alt="a > b"><br/><hr></body>',
    "template": "<template><li class='a'>t</li><style>.t{top:0}</style></template><p hidden><template></template></p>",
    "twins": "<div id='x'>1</div><div id='x'>2<label for=x>l</label><input id=x></div><p uid='n1' uid='n2'>p</p>",
    "pre": "<main>\n  <pre>\n keep\n\tthis\n</pre>\n  <textarea>\n  <b>\n</textarea>\n  <p>after</p>\n</main>\n",
    "one line": "<html><head><title>x</title></head><body><main><p>a</p><p>b <i>c</i> d</p></main></body></html>",
    "script": "<head><script>if (a<b) '</p>'</script></head><body><p>x</p><script src=app.js></script></body>",
    "linked": '<head>\n  <link rel="stylesheet" href="css/site.css">\n  <script src="app.js" defer></script>\n</head>\n'
    "<body>\n  <p class=card>x</p>\n</body>\n",
    "empty": "",
    "words": "just words",
}
LINKED_FILES = {
    "css/site.css": b"/* \xc3\xa9 */\r\n:root {\r\n  --space-s: 1rem;\r\n  --space-m: 2rem;\r\n}\r\n.card { a: b }\r\n",
    "app.js": b"let a = 1;\nlet b = '\xf0\x9f\xa5\x90';\n",
}
COLORS = st.sampled_from(
    ("#a4551e", "hsl(10 20% 30%)", "hsl(10, 20%, 30%)", "rgb(1, 2, 3)", "oklch(0.6 0.2 250)", "tomato")
)


def difficult_document(name: str) -> HtmlDocument:
    files = {path: LINKED_FILES[path] for path in LINKED_FILES if path in DIFFICULT_PAGES[name]}
    return HtmlDocument.parse(DIFFICULT_PAGES[name].encode(), files=files)


@st.composite
def documents(draw: st.DrawFn) -> HtmlDocument:
    kind = draw(st.sampled_from((*DIFFICULT_PAGES, "soup", "tree", "tree", "bakery")))
    if kind in DIFFICULT_PAGES:
        return difficult_document(kind)
    if kind == "bakery":
        return HtmlDocument.parse(BAKERY.read_bytes())
    source = draw(tag_soup) if kind == "soup" else draw(well_formed_pages(draw(st.sampled_from(("\n", "\r\n")))))
    return HtmlDocument.parse(source.encode())


write_tool_names = st.sampled_from(
    (
        "insertHtml",
        "replaceNodeHtml",
        "deleteNode",
        "updateNodeProps",
        "moveNode",
        "moveNode",
        "duplicateNode",
        "applyCss",
        "assignClass",
        "removeClass",
        "write_code_asset",
        "renamePage",
        "set_color_tokens",
        "set_font_tokens",
        "set_type_scale",
        "set_spacing_scale",
    )
)


@st.composite
def tool_inputs(draw: st.DrawFn, name: str, document: HtmlDocument) -> dict[str, Any]:
    """Generate an input of a tool that may succeed on the document."""
    uids = [element.uid for element in document.tree.elements] or ["document"]
    uid = st.sampled_from(uids)
    match name:
        case "insertHtml":
            return {
                "parentId": draw(uid),
                "html": draw(html_fragments),
                "index": draw(st.sampled_from((None, 0, 1, 9))),
            }
        case "replaceNodeHtml":
            return {"nodeId": draw(uid), "html": draw(html_fragments)}
        case "moveNode":
            return {"nodeId": draw(uid), "newParentId": draw(uid), "newIndex": draw(st.integers(0, 2))}
        case "duplicateNode":
            return {"nodeId": draw(uid), "count": draw(st.integers(1, 3))}
        case "updateNodeProps":
            return {"nodeId": draw(uid), "patch": draw(st.dictionaries(st.sampled_from(_PROPS), _values, min_size=1))}
        case "assignClass" | "removeClass":
            return {"nodeId": draw(uid), "classId": draw(st.sampled_from(("a", ".card", "x", "y")))}
        case "deleteNode":
            return {"nodeId": draw(uid)}
        case _:
            return draw(_whole_page(name, document))


_PROPS = ("text", "title", "href", "alt", "src", "id", "hidden", "data-x", "aria-label", "value")
_values = st.sampled_from(("x", "a & 'b' \"c\" <d>", "é🥐", "", True, None, 3))


@st.composite
def _whole_page(draw: st.DrawFn, name: str, document: HtmlDocument) -> dict[str, Any]:
    match name:
        case "applyCss":
            return draw(st.sampled_from(_CSS))
        case "write_code_asset":
            path, kind = draw(
                st.sampled_from((("new.css", "style"), ("js/new.js", "script"), ("css/site.css", "style")))
            )
            return {"path": path, "type": kind, "content": draw(st.sampled_from(("", ".a { top: 0 }\n", "a{}\nb{}")))}
        case "renamePage":
            return {"pageId": document.id, "title": draw(st.sampled_from(("New", "Ä & <b>")))}
        case "set_color_tokens":
            token = {"slug": draw(st.sampled_from(("primary", "Color Crust"))), "lightValue": draw(COLORS)}
            return {"tokens": [token | draw(st.sampled_from(({}, {"darkValue": "#111"}, {"darkModeEnabled": False})))]}
        case "set_font_tokens":
            token = {"name": draw(st.sampled_from(("Heading", "body"))), "fallback": "Georgia, serif"}
            return {
                "tokens": [token | draw(st.sampled_from(({}, {"googleFamily": "Lora", "variants": ["700italic"]})))]
            }
        case _:
            return draw(st.sampled_from(({}, {"steps": "s,m,l", "baseScaleIndex": 1}, {"min": {"scaleRatio": "1.2"}})))


_CSS: tuple[dict[str, Any], ...] = (
    {"css": ".a { color: blue; margin: 0 }"},
    {"css": "@media (max-width: 40rem) { .a { top: 0 } }"},
    {"css": ".a { left: 0 }", "operation": "replace"},
    {"selectors": [".a"], "operation": "delete"},
    {"selectors": [".a", ":root"], "properties": ["color", "--space-s"], "operation": "remove-properties"},
)
