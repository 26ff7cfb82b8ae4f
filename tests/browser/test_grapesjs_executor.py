"""The GrapesJS plugin executes the site's tools on a live editor."""

from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor

HTML = (
    '<section class="hero"><h1 id="top">Head</h1><p class="lead">one <b>two</b></p><img src="a.png" alt="a"></section>'
    '<nav><a href="#top">Up</a></nav><video src="a.mp4" controls></video><footer><p>foot</p></footer>'
)
CSS = ":root{--c:#f00;--m:4px}.hero{margin:var(--m) 2px;border:1px solid var(--c)}.lead{color:red}"


EDITS: list[tuple[str, dict[str, Any]]] = [
    (
        "insertHtml",
        {
            "parentId": "@body",
            "index": 1,
            "html": '<section class="new" style="color:red"><h2>N</h2></section><style>.new{padding:var(--m);'
            "&:hover{color:blue}}@media (max-width:600px){.new{padding:0}}</style>",
        },
    ),
    ("replaceNodeHtml", {"nodeId": "@.lead", "html": "three <i>four</i>"}),
    ("deleteNode", {"nodeId": "@.hero"}),
    ("moveNode", {"nodeId": "@h1", "newParentId": "@footer", "newIndex": 0}),
    ("moveNode", {"nodeId": "@h1", "newParentId": "@.hero", "newIndex": 2}),
    ("moveNode", {"nodeId": "@.lead", "newParentId": "@.hero", "newIndex": 0}),
    ("duplicateNode", {"nodeId": "@.hero", "count": 2}),
    ("updateNodeProps", {"nodeId": "@h1", "patch": {"text": "A < B", "title": "t"}}),
    ("updateNodeProps", {"nodeId": "@img", "patch": {"src": "b.png", "alt": "b"}}),
    ("updateNodeProps", {"nodeId": "@video", "patch": {"src": "b.mp4", "controls": False, "muted": True}}),
    ("updateNodeProps", {"nodeId": "@h1", "patch": {"id": "new-top"}}),
    ("updateNodeProps", {"nodeId": "@h1", "patch": {"id": None}}),
    ("updateNodeProps", {"nodeId": "@footer", "patch": {"id": "foot", "hidden": True}}),
    ("updateNodeProps", {"nodeId": "@img", "patch": {"alt": None}}),
    ("renameNode", {"nodeId": "@h1", "label": "Title"}),
    ("assignClass", {"nodeId": "@h1", "classId": "lead"}),
    ("removeClass", {"nodeId": "@.hero", "classId": "hero"}),
    (
        "applyCss",
        {
            "css": ".hero{margin:0}.x > .y{gap:var(--m)}@keyframes k{from{top:0}to{top:1px}}"
            "@font-face{font-family:Q;src:url(q.woff2)}@container (min-width: 9px){.q{color:red}}"
        },
    ),
    ("applyCss", {"operation": "delete", "selectors": [".hero"]}),
    ("applyCss", {"operation": "remove-properties", "selectors": [".hero"], "properties": ["margin"]}),
    ("set_color_tokens", {"tokens": [{"slug": "brand", "lightValue": "#0a0", "darkValue": "#050"}]}),
    ("set_type_scale", {}),
    ("set_font_tokens", {"tokens": [{"name": "heading", "googleFamily": "Inter", "variants": ["400", "700italic"]}]}),
    ("renamePage", {"pageId": "@page", "title": "Bakery", "slug": "home"}),
    ("setPageTemplate", {"pageId": "@page", "target": {"kind": "everywhere"}}),
    ("write_code_asset", {"path": "js/menu.js", "type": "script", "content": "let a = 1;"}),
]


def resolved(editor: GrapesEditor, tool_input: dict[str, Any]) -> dict[str, Any]:
    """Replace `@selector` by the node id of the element, and `@page` by the page's id."""

    def resolve(value: Any) -> Any:
        if value == "@page":
            return editor.page.evaluate("() => editor.Pages.getSelected().getId()")
        return editor.uid(value[1:]) if isinstance(value, str) and value.startswith("@") else value

    return {name: value if name == "css" else resolve(value) for name, value in tool_input.items()}


@pytest.mark.parametrize(("tool", "tool_input"), EDITS, ids=[f"{tool}-{n}" for n, (tool, _) in enumerate(EDITS)])
def test_an_edit_is_one_step_of_the_editors_undo_and_has_an_inverse(
    browser: Chromium, editor: GrapesEditor, tool: str, tool_input: dict[str, Any]
) -> None:
    editor.load(HTML, CSS)
    before, steps = editor.state(), editor.undo_step_count()
    result = editor.execute(tool, resolved(editor, tool_input))
    assert result["ok"], result
    after = editor.state()
    assert after[2] == result["revision"] != before[2]
    assert editor.undo_step_count() == steps + 1
    editor.undo()
    assert editor.state() == before
    editor.redo()
    assert editor.state() == after
    undone = editor.execute("restore", result["inverse"][0]["input"])
    assert undone["ok"], undone
    assert editor.state() == before
    redone = editor.execute("restore", undone["inverse"][0]["input"])
    assert (redone["ok"], editor.state()) == (True, after)
    assert editor.execute("restore", redone["inverse"][0]["input"])["revision"] == before[2]
    assert editor.problems == []


def test_a_video_shows_what_was_set(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    patch = {"src": "b.mp4", "controls": False, "muted": True, "poster": "p.png"}
    assert editor.execute("updateNodeProps", {"nodeId": editor.uid("video"), "patch": patch})["ok"]
    html = editor.html()
    assert all(text in html for text in ('src="b.mp4"', " muted", 'poster="p.png"'))
    assert " controls" not in html


def test_an_inverse_survives_a_reload_of_the_project(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    before = editor.state()
    footer = editor.uid("footer")
    inserted = editor.execute("insertHtml", {"parentId": footer, "html": '<p id="mine" style="color:red">mine</p>'})
    deleted = editor.execute("deleteNode", {"nodeId": editor.uid(".hero")})
    changed = editor.state()
    editor.reload_project()
    assert editor.state() == changed
    assert editor.uid("footer") == footer
    assert editor.execute("restore", deleted["inverse"][0]["input"])["ok"]
    assert editor.execute("restore", inserted["inverse"][0]["input"])["ok"]
    assert editor.state() == before


def test_selecting_an_element_changes_no_revision_even_after_a_reload(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    before = editor.state()
    editor.page.evaluate("() => { editor.select(editor.getWrapper().find('footer p')[0]); }")
    assert "id=" in editor.page.evaluate("() => editor.getWrapper().find('footer p')[0].toHTML()")
    assert editor.state() == before
    editor.reload_project()
    assert editor.state() == before


def test_an_inverse_refuses_what_somebody_else_has_changed(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    inserted = editor.execute("insertHtml", {"parentId": editor.uid("footer"), "html": "<p>mine</p>"})
    editor.page.evaluate("() => { editor.getWrapper().find('footer p')[1].components('theirs'); }")
    before = editor.state()
    refused = editor.execute("restore", inserted["inverse"][0]["input"])
    assert (refused["ok"], refused["conflict"]) == (False, True)
    assert "theirs" in refused["changes"]
    assert editor.state() == before


def test_an_edit_of_what_somebody_else_has_changed_is_a_conflict_in_words(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.load(HTML, CSS)
    planned = editor.execute("read_document", {})["revision"]
    heading = editor.uid("h1")
    editor.page.evaluate("() => { editor.getWrapper().find('h1')[0].components('User was here'); }")
    editor.page.evaluate("() => { editor.Css.addRules('.lead{color:blue}'); }")
    before = editor.state()
    hit = editor.execute("replaceNodeHtml", {"nodeId": heading, "html": "x"}, revision=planned)
    assert (hit["conflict"], editor.state()) == (True, before)
    assert "User was here" in hit["changes"]
    rule = editor.execute("applyCss", {"css": ".lead{margin:0}"}, revision=planned)
    assert rule["conflict"]
    assert '"color":"blue"' in rule["changes"]


def test_an_edit_beside_another_ones_change_is_done_and_does_not_hide_that_change(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.load(HTML, CSS)
    hero, heading, footer = (editor.uid(selector) for selector in (".hero", "h1", "footer"))
    planned = editor.execute("read_document", {})["revision"]
    editor.page.evaluate("() => { editor.getWrapper().find('h1')[0].components('User was here'); }")
    beside = editor.execute("insertHtml", {"parentId": footer, "html": "<p>new</p>"}, revision=planned)
    within = editor.execute("insertHtml", {"parentId": hero, "html": "<p>new</p>"}, revision=beside["revision"])
    assert (beside["ok"], within["ok"]) == (True, True)
    for call in ({"nodeId": heading, "html": "x"}, {"nodeId": hero, "html": "x"}):
        assert editor.execute("replaceNodeHtml", call, revision=within["revision"])["conflict"]
    seen = editor.execute("read_document", {})["revision"]
    assert seen == editor.revision() != within["revision"]
    assert editor.execute("replaceNodeHtml", {"nodeId": hero, "html": "x"}, revision=within["revision"])["conflict"]
    assert editor.execute("replaceNodeHtml", {"nodeId": hero, "html": "x"}, revision=seen)["ok"]


def test_the_same_effect_is_carried_out_once(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    call = {"parentId": editor.uid("footer"), "html": "<p>once</p>"}
    first = editor.execute("insertHtml", call, effectKey="t1/1/0")
    assert editor.execute("insertHtml", call, effectKey="t1/1/0") == first
    assert editor.html().count("once") == 1


def test_a_turn_is_taken_back_as_a_whole_in_one_step(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    before = editor.state()
    body = editor.uid("body")
    for number, name in enumerate("abc"):
        html = f'<i class="{name}">{name}</i><style>.{name}{{margin:var(--m)}}</style>'
        assert editor.execute("insertHtml", {"parentId": body, "html": html}, effectKey=f"t2/1/{number}")["ok"]
    named = {"nodeId": editor.uid("h1"), "label": "Title"}
    assert editor.execute("renameNode", named, effectKey="t2/2/0")["ok"]
    written = {"path": "a.js", "type": "script", "content": "1"}
    assert editor.execute("write_code_asset", written, effectKey="t2/2/1")["ok"]
    after, steps = editor.state(), editor.undo_step_count()
    report = editor.page.evaluate("() => editor.runCommand('fermata:undo-turn', {turnId: 't2'})")
    assert report == {"undone": ["t2/2/1", "t2/2/0", "t2/1/2", "t2/1/1", "t2/1/0"], "skipped": []}
    assert editor.state() == before
    assert editor.undo_step_count() == steps + 1
    editor.undo()
    assert editor.state() == after


REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("moveNode", {"nodeId": "@.hero", "newParentId": "@h1", "newIndex": 0}, "cannot be moved into itself"),
    ("applyCss", {"css": ".a{color:red} } .b{"}, r"There is a } too many"),
    ("applyCss", {"css": "@import url(x.css);"}, "@import cannot be kept"),
    ("applyCss", {"css": "@scope (.a) {p{color:red}}"}, "@scope cannot be kept"),
    ("applyCss", {"css": "@supports (a:b){@media print{p{color:red}}}"}, "@media within @supports"),
    ("applyCss", {"css": ".a{color:'</style><script>'}"}, "</style>"),
    ("deleteNode", {"nodeId": "@body"}, "cannot be deleted"),
    ("deleteNode", {"nodeId": "nope"}, "There is no node nope"),
    ("updateNodeProps", {"nodeId": "@h1", "patch": {"onclick": "x"}}, "would be code"),
    ("updateNodeProps", {"nodeId": "@img", "patch": {"src": " JaVaScRiPt:1"}}, "not code"),
    ("updateNodeProps", {"nodeId": "@img", "patch": {"data-gjs-script": "1"}}, "not a property"),
    ("updateNodeProps", {"nodeId": "@footer", "patch": {"id": "top"}}, "is taken by"),
    ("updateNodeProps", {"nodeId": "@h1", "breakpointId": "tablet", "patch": {"title": "x"}}, "media query"),
    ("insertHtml", {"parentId": "@img", "html": "<p>x</p>"}, "has no content"),
    ("insertHtml", {"parentId": "@.lead", "html": "<div>x</div>"}, "not allowed at this place"),
    ("insertHtml", {"parentId": "@a", "html": '<a href="#">x</a>'}, "cannot be within"),
    ("insertHtml", {"parentId": "@body", "html": "<tr><td>x</td></tr>"}, "belongs in a"),
    ("insertHtml", {"parentId": "@body", "html": "<script>1</script>"}, "Nothing is left"),
    ("assignClass", {"nodeId": "@h1", "classId": "unknown"}, "There is no class unknown"),
    ("deletePage", {"pageId": "@page"}, "last page"),
    ("patch_code_asset", {"path": "a.js", "expectedHash": "x", "replacements": [{}]}, "There is no script"),
    ("render_snapshot", {"breakpointId": "watch"}, "There is no breakpoint watch"),
    ("open_document", {"document": {"type": "page", "id": "nope"}}, "There is no document"),
    ("make_coffee", {}, "cannot carry out make_coffee"),
]


@pytest.mark.parametrize(("tool", "tool_input", "words"), REFUSALS, ids=[words for _, _, words in REFUSALS])
def test_what_cannot_be_done_is_refused_in_words_and_leaves_nothing_behind(
    browser: Chromium, editor: GrapesEditor, tool: str, tool_input: dict[str, Any], words: str
) -> None:
    editor.load(HTML, CSS)
    before, steps = editor.state(), editor.undo_step_count()
    result = editor.execute(tool, resolved(editor, tool_input))
    assert not result["ok"]
    assert words in result["error"]
    assert (editor.state(), editor.undo_step_count()) == (before, steps)
