"""Tools for scripts and style sheets, inline and in files."""

from hashlib import sha256
from typing import Any

import pytest

from fermata_client import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.apply_css import apply_css
from fermata_client.tools.classes import assign_class, remove_class
from fermata_client.tools.code_assets import (
    inspect_code_runtime,
    list_code_assets,
    patch_code_asset,
    read_code_asset,
    write_code_asset,
)

PAGE = """<head>
  <link rel="stylesheet" href="./css/site.css?v=3">
  <link rel="stylesheet" href="https://elsewhere.example/x.css">
  <style media="print">p { top: 0 }</style>
  <script src="app.js" defer></script>
  <script type="application/ld+json">{"a": 1}</script>
</head>
<body>
  <p class="card">x</p>
  <script>let inline = 1;</script>
</body>
"""
FILES = {"css/site.css": b".card {\r\n  top: 0;\r\n}\r\n", "app.js": b"let a = 1;\nlet b = 1;\n"}


def page(source: str = PAGE, **further_arguments: Any) -> HtmlDocument:
    files = {path: content for path, content in FILES.items() if path in source}
    return HtmlDocument.parse(source.encode(), path="page.html", files=files, **further_arguments)


def data_of(tool: Any, on: HtmlDocument, **arguments: Any) -> Any:
    return tool(on, arguments)[1]


def write(document: HtmlDocument, **arguments: Any) -> HtmlDocument:
    return write_code_asset(document, arguments)[0]


def test_assets_are_listed_by_path_with_their_hash_and_how_they_load() -> None:
    listed = data_of(list_code_assets, page())["assets"]
    assert [(once["path"], once["type"]) for once in listed] == [
        ("app.js", "script"),
        ("css/site.css", "style"),
        ("page.html#script-1", "script"),
        ("page.html#style-1", "style"),
    ]
    assert listed[0]["hash"] == sha256(FILES["app.js"]).hexdigest()
    assert listed[0]["runtime"] == {"placement": "head", "format": "classic", "timing": "defer"}
    assert [once["path"] for once in data_of(list_code_assets, page(), type="style")["assets"]] == [
        "css/site.css",
        "page.html#style-1",
    ]


def test_what_runs_is_listed_in_the_order_of_the_page_with_files_of_other_sites() -> None:
    data = data_of(inspect_code_runtime, page(), document={"type": "page", "id": "page"})
    assert [(once["path"], once["editable"]) for once in data["styles"]] == [
        ("css/site.css", True),
        ("https://elsewhere.example/x.css", False),
        ("page.html#style-1", True),
    ]
    assert [once["path"] for once in data["scripts"]] == ["app.js", "page.html#script-1"]
    with pytest.raises(EditError, match=r'only one document here: \{"type": "page"'):
        data_of(inspect_code_runtime, page(), document={"type": "page", "id": "other"})


def test_an_asset_is_read_in_parts_by_path_or_id() -> None:
    first = data_of(read_code_asset, page(), path="./css/site.css", maxChars=10)
    assert (first["content"], first["pageInfo"]["nextPart"], first["pageInfo"]["totalParts"]) == (".card {\r\n ", 2, 3)
    inline = next(e.uid for e in page().tree.elements if e.tag == "script" and not e.attributes)
    assert data_of(read_code_asset, page(), fileId=inline)["content"] == "let inline = 1;"
    with pytest.raises(EditError, match="There is no part 2"):
        data_of(read_code_asset, page(), path="app.js", part=2)
    with pytest.raises(EditError, match=r"no script or style sheet other\.js here\. There are: app\.js, css/site\.css"):
        data_of(read_code_asset, page(), path="other.js")
    with pytest.raises(EditError, match="Name the asset by `path` or `fileId`"):
        data_of(read_code_asset, page())


def test_a_new_script_waits_for_the_page_and_a_new_sheet_comes_last() -> None:
    document, data = write_code_asset(page(), {"path": "js/menu.js", "type": "script", "content": "let m;"})
    assert (data["action"], data["path"], document.files["js/menu.js"]) == ("created", "js/menu.js", b"let m;")
    assert '</script>\n  <script src="js/menu.js" defer></script>\n</head>' in document.source.decode()
    document = write(document, path="theme.css", type="style", content="p { top: 0 }", runtime={"media": "print"})
    assert '  <link rel="stylesheet" href="theme.css" media="print">\n</head>' in document.source.decode()


@pytest.mark.parametrize(
    ("runtime", "line"),
    [
        ({"format": "module"}, '<script src="m.js" type="module"></script>\n</head>'),
        ({"timing": "async"}, '<script src="m.js" async></script>\n</head>'),
        ({"placement": "body-end"}, '<script src="m.js" defer></script>\n</body>'),
    ],
)
def test_a_new_script_is_loaded_as_asked(runtime: dict[str, str], line: str) -> None:
    assert line in write(page(), path="m.js", type="script", content="", runtime=runtime).source.decode()


def test_a_file_that_the_page_loads_already_is_not_linked_twice() -> None:
    document = HtmlDocument.parse(b'<head><script src="late.js"></script></head>')
    assert write(document, path="late.js", type="script", content="1").source == document.source


def test_writing_again_replaces_in_the_line_ends_that_are_there() -> None:
    document, data = write_code_asset(page(), {"path": "css/site.css", "type": "style", "content": "a {\n}\n"})
    assert (data["action"], document.files["css/site.css"], document.source) == (
        "updated",
        b"a {\r\n}\r\n",
        page().source,
    )
    inline = write(page(), path="page.html#script-1", type="script", content="let x;")
    assert "<script>let x;</script>" in inline.source.decode()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "../up.js"}, "not a path below the folder"),
        ({"path": "/etc/x.js"}, "not a path below the folder"),
        ({"path": "a/../../x.js"}, "not a path below the folder"),
        ({"path": "%2e%2e/x.js"}, "not a path below the folder"),
        ({"path": "..\\x.js"}, "not a path below the folder"),
        ({"path": "https://elsewhere.example/x.js"}, "not a path below the folder"),
        ({"path": "x.js#1"}, "not a path below the folder"),
        ({"path": ".git/x.js"}, "hidden file"),
        ({"path": 'x".js'}, "characters that are not allowed"),
        ({"path": "x.php"}, r"ends with \.js or \.mjs"),
        ({"path": "x.html"}, r"ends with \.js"),
        ({"path": "css/site.css"}, "is a style, not a script"),
        ({"path": "page.html#script-1", "content": "</SCRIPT>"}, "must not contain </script>"),
        ({"path": "x.css", "type": "style", "content": "p { top: 0"}, "A } is missing"),
        ({"path": "x.js", "type": "font"}, "`type` is `script` or `style`"),
        ({"path": "x.js", "content": None}, "`content` must be a text"),
        ({"path": "x.js", "content": "x" * 1_000_001}, "may have 1000 KB"),
    ],
)
def test_a_file_that_cannot_be_written_says_why(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        write(page(), **{"type": "script", "content": "1", **arguments})


def test_a_patch_changes_its_words_only() -> None:
    document = page()
    hash_by_path = {once["path"]: once["hash"] for once in data_of(list_code_assets, document)["assets"]}
    patch = {"oldText": "{\n  top: 0;", "newText": "{\n  top: 1px;\n  left: 0;"}
    arguments = {"path": "css/site.css", "expectedHash": hash_by_path["css/site.css"], "replacements": [patch]}
    patched, data = patch_code_asset(document, arguments)
    assert patched.files["css/site.css"] == b".card {\r\n  top: 1px;\r\n  left: 0;\r\n}\r\n"
    assert data["replacements"] == 1
    replace_all = {"oldText": " = 1;", "newText": " = 2;", "replaceAll": True}
    both, data = patch_code_asset(
        document, {"path": "app.js", "expectedHash": hash_by_path["app.js"], "replacements": [replace_all]}
    )
    assert (both.files["app.js"], data["replacements"]) == (b"let a = 2;\nlet b = 2;\n", 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"expectedHash": "old"}, "is not what you read"),
        ({"replacements": [{"oldText": "let c", "newText": ""}]}, "of replacement 1 is not in app.js"),
        ({"replacements": [{"oldText": "let", "newText": ""}]}, "occurs 2 times in app.js"),
        ({"replacements": []}, "`replacements` must be a list"),
        ({"replacements": [{"oldText": "let a"}]}, "`newText` of replacement 1"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(change: dict[str, Any], reason: str) -> None:
    arguments = {"path": "app.js", "expectedHash": sha256(FILES["app.js"]).hexdigest()}
    with pytest.raises(EditError, match=reason):
        patch_code_asset(page(), {**arguments, "replacements": [{"oldText": "a", "newText": "c"}], **change})


def test_what_belongs_to_another_page_as_well_is_read_only() -> None:
    document = page(shared_files=frozenset({"app.js", "css/site.css"}))
    assert data_of(read_code_asset, document, path="app.js")["content"]
    with pytest.raises(EditError, match="cannot be changed"):
        write(document, path="app.js", type="script", content="1")
    styled, _ = apply_css(document, {"css": ".card { top: 1px }"})
    assert (styled.files, b".card { top: 1px }" in styled.source) == (document.files, True)


def test_a_byte_order_mark_stays() -> None:
    document = page().with_file("app.js", b"\xef\xbb\xbflet a;")
    assert write(document, path="app.js", type="script", content="let b;").files["app.js"] == b"\xef\xbb\xbflet b;"


# Rules and classes


def test_a_rule_is_changed_in_its_place_also_in_a_linked_file() -> None:
    styled, data = apply_css(page(), {"css": ".card { top: 1px; left: 0 }\n.new { top: 0 }"})
    assert styled.files["css/site.css"] == (b".card {\r\n  top: 1px;\r\n  left: 0;\r\n}\r\n.new { top: 0 }\r\n")
    assert (styled.source, data) == (page().source, {"cssRulesCreated": 1, "cssRulesUpdated": 1})


def test_new_rules_go_to_the_sheet_that_was_named() -> None:
    source = PAGE.replace("</head>", "  <style>\n    b { top: 0 }\n  </style>\n</head>")
    assert b".new" in apply_css(page(source), {"css": ".new { top: 0 }"})[0].source
    named = apply_css(page(source, target_sheet="css/site.css"), {"css": ".new { top: 0 }"})[0]
    assert (named.source, b".new" in named.files["css/site.css"]) == (source.encode(), True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"", b".new { top: 0 }\n"),
        (b".a { b: c }", b".a { b: c }\n.new { top: 0 }\n"),
        (b"\xef\xbb\xbf/* x */\n", b"\xef\xbb\xbf/* x */\n.new { top: 0 }\n"),
        (b".a {\n\tb: c\n}\n\n.d {\n\tb: c\n}\n", b".a {\n\tb: c\n}\n\n.d {\n\tb: c\n}\n\n.new { top: 0 }\n"),
    ],
)
def test_a_new_rule_is_added_at_the_end_of_its_file(old: bytes, new: bytes) -> None:
    document = HtmlDocument.parse(PAGE.encode(), files={"css/site.css": old}, target_sheet="css/site.css")
    styled, _ = apply_css(document, {"css": ".new { top: 0 }"})
    assert styled.files["css/site.css"] == new


SHEET = "<style>\n.a { top: 0; left: 0 }\n.b {\n  top: 0;\n}\n@media print {\n  .a { top: 1px }\n}\n</style>"


def css(operation: str, **arguments: Any) -> tuple[str, Any]:
    document, data = apply_css(page(SHEET), {"operation": operation, **arguments})
    return document.source.decode(), data


def test_a_rule_is_replaced_as_a_whole() -> None:
    source, data = css("replace", css=".a { color: red }")
    assert source == SHEET.replace(".a { top: 0; left: 0 }", ".a { color: red }")
    assert data == {"cssRulesCreated": 0, "cssRulesUpdated": 1}


def test_a_deleted_rule_goes_everywhere_and_an_empty_condition_with_it() -> None:
    source, data = css("delete", selectors=[".a", ".gone"])
    assert source == "<style>\n.b {\n  top: 0;\n}\n</style>"
    assert (data["cssRulesDeleted"], ".gone" in data["note"]) == (2, True)
    with pytest.raises(EditError, match=r"no rule for \.gone"):
        css("delete", selectors=[".gone"])


def test_properties_are_taken_out_of_their_rules() -> None:
    source, data = css("remove-properties", selectors=[".a", ".b"], properties=["top"])
    assert source == "<style>\n.a { left: 0 }\n.b {\n}\n@media print {\n  .a { }\n}\n</style>"
    assert data == {"cssPropertiesRemoved": 3}
    with pytest.raises(EditError, match=r"No rule for \.b sets color"):
        css("remove-properties", selectors=[".b"], properties=["color"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"operation": "paint"}, "no operation `paint`"),
        ({"operation": "delete"}, "`selectors` must be a list"),
        ({"css": ".a { top: 0"}, "A } is missing"),
        ({"css": "top: 0"}, "no CSS rule"),
        ({"css": ".a { top: 0 }</style><script>"}, "must not contain a </style>"),
    ],
)
def test_css_that_does_not_parse_is_refused_with_what_is_missing(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        apply_css(page(SHEET), arguments)


def classes(document: HtmlDocument) -> list[str]:
    return next(e for e in document.tree.elements if e.tag == "p").classes


def test_a_class_is_assigned_when_a_rule_or_the_page_knows_it() -> None:
    document = page("<style>.big, a:hover .sm\\:x { top: 0 }</style><p class='card  tall'>x</p><p class=other>y</p>")
    for name in ("big", ".other", "sm:x"):
        document, data = assign_class(document, {"nodeId": "n2", "classId": name})
        assert data is None
    assert "<p class='card  tall big other sm:x'>" in document.source.decode()
    assert assign_class(document, {"nodeId": "n2", "classId": "big"})[1] == {
        "note": "The node has the class big already."
    }
    with pytest.raises(EditError, match=r"no class bigg on this page or in its style sheets\. There are: big\. Write"):
        assign_class(document, {"nodeId": "n2", "classId": "bigg"})
    for name in ("two words", 'a"b', "."):
        with pytest.raises(EditError, match="the name of one class"):
            assign_class(document, {"nodeId": "n2", "classId": name})


def test_a_class_that_may_stand_in_a_sheet_out_of_reach_is_assigned_with_a_note() -> None:
    document, data = assign_class(page(), {"nodeId": _paragraph(page()), "classId": "btn-primary"})
    assert classes(document) == ["card", "btn-primary"]
    assert data is not None
    assert "https://elsewhere.example/x.css" in data["note"]


def _paragraph(document: HtmlDocument) -> str:
    return next(e.uid for e in document.tree.elements if e.tag == "p")


def test_the_last_class_takes_its_attribute_along() -> None:
    document = page('<p id=a class="x y" title=t>z</p>')
    once, _ = remove_class(document, {"nodeId": "n1", "classId": "x"})
    twice, _ = remove_class(once, {"nodeId": "n1", "classId": ".y"})
    assert (once.source, twice.source) == (b'<p id=a class="y" title=t>z</p>', b"<p id=a title=t>z</p>")
    same, data = remove_class(twice, {"nodeId": "n1", "classId": "y"})
    assert (same, data) == (twice, {"note": "The node does not have the class y. It has: none."})


INLINE = (
    "<head><style>.a { top: 0 }</style></head>\n<body><p>x</p><script>var q = 1;</script>\n<p>after</p>{end}</body>\n"
)


@pytest.mark.parametrize("end", ["", "<script>var z;</script>"])
@pytest.mark.parametrize("text", ["1; // <!-- <script >", "1; '<!--<script>'", "'</script >'"])
def test_a_script_must_end_where_it_ended(text: str, end: str) -> None:
    on = page(INLINE.replace("{end}", end))
    hashed = sha256(b"var q = 1;").hexdigest()
    swap = [{"oldText": "1", "newText": text}]
    with pytest.raises(EditError, match=r"</script|end at another place"):
        patch_code_asset(on, {"path": "page.html#script-1", "expectedHash": hashed, "replacements": swap})
    with pytest.raises(EditError, match=r"</script|end at another place"):
        write(on, path="page.html#script-1", type="script", content=f"var q = {text}")


def test_a_style_element_must_end_where_it_ended() -> None:
    with pytest.raises(EditError, match="</style"):
        write(page(INLINE), path="page.html#style-1", type="style", content=".a { content: '</STYLE\n>' }")


@pytest.mark.parametrize(
    "text", ["var q = '<!--';", "var q = '<script>';", "var q = '<\\/script>';", "if (a<b) {}\r\n"]
)
def test_a_script_may_say_what_ends_nothing(text: str) -> None:
    written = write(page(INLINE), path="page.html#script-1", type="script", content=text)
    assert text.strip().encode() in written.source


# Sheets of libraries


LIBRARIES = {
    "vendor/theme.css": ".btn { top: 0 }\n",
    "css/bootstrap.min.css": ".btn{top:0}\n",
    "css/bootstrap.css": ".btn { top: 0 }\n",
    "css/jquery-3.7.1.css": ".btn { top: 0 }\n",
    "css/other.css": "/*! Other v1 | MIT */\n.btn { top: 0 }\n",
    "css/tailwind.css": "/*! tailwindcss v4 */\n.btn { top: 0 }\n",
    "css/modern-normalize.css": ".btn { top: 0 }\n",
    "css/bootstrap.rtl.css": ".btn { top: 0 }\n",
    "css/jquery.fancybox.css": ".btn { top: 0 }\n",
    "fontawesome/css/all.css": ".btn { top: 0 }\n",
    "css/built.css": ".btn{top:0}" + ".a{top:0}" * 400 + "\n",
}


@pytest.mark.parametrize("path", LIBRARIES)
@pytest.mark.parametrize("is_last", [True, False])
def test_a_new_rule_goes_into_the_sheet_of_the_site_itself(path: str, is_last: bool) -> None:
    links = [f'<link rel="stylesheet" href="{name}">' for name in ("site.css", path)]
    source = "<head>\n" + "\n".join(links if is_last else reversed(links)) + "\n</head>\n"
    files = {"site.css": b".own { top: 0 }\n", path: LIBRARIES[path].encode()}
    page = HtmlDocument.parse(source.encode(), files=files)
    for css in (".new { top: 0 }", "@media print { .new { top: 0 } }", ":root { --a: 1 }"):
        edited, _ = page.put_css(css)
        assert edited.files == files | {"site.css": f".own {{ top: 0 }}\n{css}\n".encode()}
        assert edited.source == page.source


OWN_SHEETS = {
    "css/main.css": "/*! The site of a bakery */\n",
    "style.css": "@charset 'utf-8';\n/*!\nTheme Name: Bakery\nLicense: GPL\nVersion: 1.0\n*/\n",
    "css/bootstrap-overrides.css": "a { top: 0 }\n",
    "water/menu.css": "a { top: 0 }\n",
    "css/icons.css": f"a {{ background: url(data:image/png;base64,{'A' * 4000}) }}\n",
}


@pytest.mark.parametrize("path", OWN_SHEETS)
def test_the_sites_own_sheet_is_not_taken_for_one_of_a_library(path: str) -> None:
    source = f'<link rel="stylesheet" href="vendor/a.css"><link rel="stylesheet" href="{path}">'
    files = {"vendor/a.css": b".btn { top: 0 }\n", path: OWN_SHEETS[path].encode()}
    edited, _ = HtmlDocument.parse(source.encode(), files=files).put_css(".new { top: 0 }")
    assert edited.files[path].decode() == OWN_SHEETS[path] + ".new { top: 0 }\n"


def test_a_rule_of_a_library_is_overridden_where_that_works_and_else_changed() -> None:
    vendor, site = '<link rel="stylesheet" href="vendor/a.css">', '<link rel="stylesheet" href="site.css">'
    files = {"site.css": b".own { top: 0 }\n", "vendor/a.css": b".btn { top: 0 }\n@media print { .btn { top: 1px } }\n"}
    later = HtmlDocument.parse((vendor + site).encode(), files=files).put_css(".btn { top: 2px }")[0]
    assert later.files == files | {"site.css": b".own { top: 0 }\n.btn { top: 2px }\n"}
    earlier = HtmlDocument.parse((site + vendor).encode(), files=files).put_css(".btn { top: 2px }")[0]
    assert earlier.files["site.css"] == files["site.css"]
    assert b".btn { top: 2px }" in earlier.files["vendor/a.css"]
    kept, counts = HtmlDocument.parse((vendor + site).encode(), files=files).put_css(".btn {}", keep_existing=True)
    assert (kept.files, counts.kept) == (files, 1)


def test_a_page_with_sheets_of_libraries_only_gets_one_of_its_own() -> None:
    files = {"vendor/a.css": b".btn { top: 0 }\n"}
    source = b'<head>\n  <link rel="stylesheet" href="vendor/a.css">\n</head>\n'
    edited, _ = HtmlDocument.parse(source, files=files).put_css(".new { top: 0 }")
    assert edited.files == files
    assert edited.source.replace(b"  <style>\n    .new { top: 0 }\n  </style>\n", b"") == source
