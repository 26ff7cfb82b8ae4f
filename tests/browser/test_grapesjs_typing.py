"""A person who types in a GrapesJS editor while an assistant works loses nothing."""

import pytest
from playwright.sync_api import FrameLocator, Page

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor

HTML = '<main><h1>Bread</h1><p class="lead">Fresh <b>daily</b></p></main><footer><p>Open</p></footer>'
CSS = ".lead{color:red}"


@pytest.fixture(scope="module")
def editor(editor_window: GrapesEditor) -> GrapesEditor:
    """Not started: each test starts it with a page of its own."""
    return editor_window


def begin_typing(editor: GrapesEditor, text: str, selector: str = "p.lead") -> FrameLocator:
    frame = editor.page.frame_locator("iframe.gjs-frame")
    frame.locator(selector).dblclick()
    editor.page.wait_for_function("() => editor.getEditing()")
    editor.page.keyboard.press("End")
    editor.page.keyboard.type(text)
    return frame


def stop_typing(page: Page) -> None:
    page.frame_locator("iframe.gjs-frame").locator("html").click(position={"x": 300, "y": 500})
    page.wait_for_function("() => !editor.getEditing()")
    page.wait_for_function("() => editor.Storage.isAutosave()")


EDITS_BESIDE = [
    ("insertHtml", {"parentId": "footer", "html": "<p>beside</p><style>.lead{top:0}.n{top:0}</style>"}),
    ("insertHtml", {"parentId": "main", "index": 0, "html": "<nav>n</nav>"}),
    ("applyCss", {"css": ".lead{margin:0}"}),
    ("updateNodeProps", {"nodeId": "h1", "patch": {"text": "Loaves", "id": "top"}}),
    ("assignClass", {"nodeId": "main", "classId": "lead"}),
    ("moveNode", {"nodeId": "h1", "newParentId": "footer", "newIndex": 0}),
    ("duplicateNode", {"nodeId": "footer p"}),
    ("deleteNode", {"nodeId": "footer"}),
    ("set_color_tokens", {"tokens": [{"slug": "x", "lightValue": "#123"}]}),
    ("write_code_asset", {"path": "a.css", "type": "style", "content": "a{top:0}"}),
]


@pytest.mark.parametrize(("tool", "tool_input"), EDITS_BESIDE, ids=[tool for tool, _ in EDITS_BESIDE])
def test_an_edit_beside_is_done_and_the_typing_goes_on(
    browser: Chromium, editor: GrapesEditor, tool: str, tool_input: dict[str, object]
) -> None:
    editor.start(HTML, CSS)
    planned = editor.execute("read_document", {})["revision"]
    names = {"nodeId", "parentId", "newParentId"}
    resolved = {key: editor.uid(str(value)) if key in names else value for key, value in tool_input.items()}
    frame = begin_typing(editor, " one")
    assert editor.execute(tool, resolved, revision=planned)["ok"]
    editor.page.wait_for_timeout(30)
    editor.page.keyboard.type(" two")
    assert frame.locator("p.lead").first.inner_text() == "Fresh daily one two"
    stop_typing(editor.page)
    assert "Fresh <b>daily one two</b>" in editor.html() or "daily</b> one two" in editor.html()
    assert editor.problems == []


EDITS_OF_IT = [
    ("replaceNodeHtml", {"nodeId": "p.lead", "html": "x"}),
    ("replaceNodeHtml", {"nodeId": "main", "html": "x"}),
    ("updateNodeProps", {"nodeId": "p.lead", "patch": {"title": "x"}}),
    ("updateNodeProps", {"nodeId": "b", "patch": {"text": "x"}}),
    ("insertHtml", {"parentId": "p.lead", "html": "<i>x</i>"}),
    ("deleteNode", {"nodeId": "p.lead"}),
    ("deleteNode", {"nodeId": "main"}),
    ("moveNode", {"nodeId": "p.lead", "newParentId": "footer", "newIndex": 0}),
    ("moveNode", {"nodeId": "main", "newParentId": "body", "newIndex": 1}),
    ("duplicateNode", {"nodeId": "main"}),
    ("assignClass", {"nodeId": "p.lead", "classId": "lead"}),
]


@pytest.mark.parametrize("is_known", [True, False], ids=["on an old revision", "on the newest revision"])
def test_an_edit_of_what_is_being_written_is_a_conflict_that_shows_the_text(
    browser: Chromium, editor: GrapesEditor, is_known: bool
) -> None:
    editor.start(HTML, CSS)
    planned = editor.execute("read_document", {})["revision"]
    names = {"nodeId", "parentId", "newParentId"}
    calls = [
        (tool, {key: editor.uid(str(value)) if key in names else value for key, value in tool_input.items()})
        for tool, tool_input in EDITS_OF_IT
    ]
    frame = begin_typing(editor, " fresher")
    if not is_known:
        planned = editor.execute("read_document", {})["revision"]
    for tool, tool_input in calls:
        result = editor.execute(tool, tool_input, revision=planned)
        assert result["conflict"], (tool, result)
        assert "fresher" in result["changes"]
    editor.page.keyboard.type("!")
    assert frame.locator("p.lead").inner_text() == "Fresh daily fresher!"
    stop_typing(editor.page)
    assert "fresher!" in editor.html()
    assert editor.problems == []


def test_saving_waits_until_the_typing_has_ended(browser: Chromium, editor: GrapesEditor) -> None:
    editor.start(HTML, CSS, config={"storageManager": {"type": "memory", "autosave": True, "stepsBeforeSave": 1}})
    editor.page.evaluate(
        """() => {
          window.saved = [];
          const store = async data => { saved.push(JSON.stringify(data)); };
          editor.Storage.add("memory", {load: async () => ({}), store});
        }"""
    )
    footer = editor.uid("footer")
    begin_typing(editor, " one")
    assert editor.execute("insertHtml", {"parentId": footer, "html": "<p>beside</p>"})["ok"]
    editor.page.wait_for_timeout(30)
    assert editor.page.evaluate("() => saved.length") == 0
    stop_typing(editor.page)
    editor.page.wait_for_function("() => saved.some(text => text.includes('one') && text.includes('beside'))")


def test_another_page_is_not_opened_while_somebody_types(browser: Chromium, editor: GrapesEditor) -> None:
    editor.start(HTML, CSS)
    begin_typing(editor, " one")
    refused = editor.execute("addPage", {"title": "Two"})
    assert not refused["ok"]
    assert "is writing" in refused["error"]
    stop_typing(editor.page)
    added = editor.execute("addPage", {"title": "Two"})
    assert added["ok"], added
    assert editor.execute("insertHtml", {"parentId": added["data"]["rootNodeId"], "html": "<p>2</p>"})["ok"]
    assert editor.html() == "<body><p>2</p></body>"
