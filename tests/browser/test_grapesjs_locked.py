"""The agent leaves alone what the owner of a GrapesJS editor has locked or protected."""

from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor

HTML = (
    '<main><section><h1>Bread</h1><p class="lead">Fresh <b>daily</b></p></section></main><footer><p>Open</p></footer>'
)
SET = "([selector, members]) => { editor.getWrapper().find(selector)[0].set(members); }"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "insertHtml": ("parentId", {"html": "<p>x</p>"}),
    "replaceNodeHtml": ("nodeId", {"html": "x"}),
    "deleteNode": ("nodeId", {}),
    "duplicateNode": ("nodeId", {}),
    "updateNodeProps": ("nodeId", {"patch": {"title": "x"}}),
    "assignClass": ("nodeId", {"classId": "x"}),
    "renameNode": ("nodeId", {"label": "x"}),
}


def protect(editor: GrapesEditor, selector: str, **members: object) -> None:
    editor.page.evaluate(SET, [selector, members])


def call(editor: GrapesEditor, tool: str, selector: str) -> dict[str, Any]:
    target, tool_input = CALLS[tool]
    return editor.execute(tool, {target: editor.uid(selector), **tool_input})


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("selector", ["section", "h1"])
def test_what_is_locked_stays_with_all_within_it(
    browser: Chromium, editor: GrapesEditor, tool: str, selector: str
) -> None:
    editor.load(HTML, ".x{top:0}")
    protect(editor, "section", locked=True)
    before = editor.state()
    result = call(editor, tool, selector)
    assert not result["ok"]
    assert "is locked in the editor" in result["error"]
    assert editor.state() == before
    assert call(editor, tool, "footer")["ok"]


def test_what_is_unlocked_within_a_lock_is_edited(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, ".x{top:0}")
    protect(editor, "section", locked=True)
    protect(editor, "p.lead", locked=False)
    assert call(editor, "replaceNodeHtml", "p.lead")["ok"]
    assert not call(editor, "replaceNodeHtml", "h1")["ok"]


@pytest.mark.parametrize(
    ("tool", "member"), [("deleteNode", "removable"), ("duplicateNode", "copyable"), ("moveNode", "draggable")]
)
def test_what_is_protected_from_one_thing_may_be_changed_otherwise(
    browser: Chromium, editor: GrapesEditor, tool: str, member: str
) -> None:
    editor.load(HTML, ".x{top:0}")
    protect(editor, "h1", **{member: False})
    tool_input = {"nodeId": editor.uid("h1")} | ({"newParentId": editor.uid("footer")} if tool == "moveNode" else {})
    assert "has protected it" in editor.execute(tool, tool_input)["error"]
    assert call(editor, "updateNodeProps", "h1")["ok"]


@pytest.mark.parametrize("tool", ["deleteNode", "replaceNodeHtml"])
@pytest.mark.parametrize("members", [{"removable": False}, {"locked": True}])
def test_nothing_protected_goes_with_what_is_around_it(
    browser: Chromium, editor: GrapesEditor, tool: str, members: dict[str, bool]
) -> None:
    editor.load(HTML, ".x{top:0}")
    protect(editor, "h1", **members)
    before = editor.state()
    assert "protected from removal" in call(editor, tool, "main")["error"]
    assert editor.state() == before
    assert call(editor, tool, "footer")["ok"]


def test_inline_elements_of_a_text_that_somebody_has_edited_are_not_protected(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.load(HTML, ".x{top:0}")
    frame = editor.page.frame_locator("iframe.gjs-frame")
    frame.locator("p.lead").dblclick()
    editor.page.wait_for_function("() => editor.getEditing()")
    editor.page.keyboard.press("End")
    editor.page.keyboard.type("!")
    frame.locator("html").click(position={"x": 300, "y": 500})
    editor.page.wait_for_function("() => !editor.getEditing()")
    assert call(editor, "deleteNode", "b")["ok"]
