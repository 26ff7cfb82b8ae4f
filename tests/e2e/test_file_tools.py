"""Run every tool that changes a file through the whole service, and undo the edits."""

from pathlib import Path
from typing import Any

import pytest

from fermata_client import HtmlFile, HtmlFileExecutor, run_turn, undo_turn
from tests.e2e import turn_checks
from tests.e2e.chat_session import ChatSession, result_text
from tests.e2e.demo_model_client import text_step, tool_call_step

BAKERY = Path(__file__).parents[2] / "examples" / "bakery" / "index.html"
PAGE = """<!doctype html>\r
<title>Shop</title>\r
<link rel=stylesheet href="site.css">\r
<main>\r
\t<section id=a class=part><h2>A</h2></section>\r
\t<section id=b class=part><h2>B</h2></section>\r
</main>\r
"""
CSS = ":root {\n  --brand: #a4551e;\n}\n.part {\n  top: 0;\n}\n"
EDITS: list[tuple[str, dict[str, Any]]] = [
    ("insertHtml", {"parentId": "n3", "html": "<section><h2>C</h2></section>", "index": 1}),
    ("replaceNodeHtml", {"nodeId": "n5", "html": "A <em>first</em>"}),
    ("updateNodeProps", {"nodeId": "n7", "patch": {"text": "Bé & b", "title": "x"}}),
    ("moveNode", {"nodeId": "n6", "newParentId": "n3", "newIndex": 0}),
    ("duplicateNode", {"nodeId": "n4", "count": 2}),
    ("applyCss", {"css": ".part { left: 0 } .wide { width: 100% }"}),
    ("assignClass", {"nodeId": "n4", "classId": "wide"}),
    ("removeClass", {"nodeId": "n6", "classId": "part"}),
    ("set_color_tokens", {"tokens": [{"slug": "brand", "lightValue": "#804010"}]}),
    ("set_font_tokens", {"tokens": [{"name": "Body", "fallback": "Georgia, serif"}]}),
    ("set_type_scale", {"steps": "s,m,l", "baseScaleIndex": 1}),
    ("set_spacing_scale", {"steps": "s,m,l", "baseScaleIndex": 1}),
    ("write_code_asset", {"path": "js/menu.js", "type": "script", "content": "let open = false;\n"}),
    ("renamePage", {"pageId": "shop", "title": "Bread & more"}),
    ("deleteNode", {"nodeId": "n5"}),
]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def parts(page: Path) -> dict[str, Any]:
    executor = HtmlFileExecutor(HtmlFile(page))
    return {"executor": executor, "snapshot": executor.snapshot, "revision": executor.revision}


def test_the_edits_of_all_tools_are_undone_byte_for_byte(session: ChatSession, tmp_path: Path) -> None:
    page = tmp_path / "shop.html"
    page.write_bytes(PAGE.encode())
    (tmp_path / "site.css").write_bytes(CSS.encode())
    before = bytes_of(tmp_path)
    editor = HtmlFile(page).document
    assert [element.uid for element in editor.tree.elements] == [f"n{number}" for number in range(1, 8)]
    outcome = session.run_turn(
        tool_call_step(*EDITS[:8]),
        tool_call_step(*EDITS[8:]),
        tool_call_step(("addPage", {"title": "x"})),
        text_step("Done."),
        **parts(page),
    )
    assert outcome.status == "done"
    states = [(badge.name, badge.state) for badge in outcome.view.tool_calls]
    assert states == [*((name, "ok") for name, _ in EDITS), ("addPage", "failed")]
    assert "single HTML file" in result_text(session.tool_results()[-1])
    assert bytes_of(tmp_path).keys() == {*before, "js/menu.js"}
    outcome = undo_turn(session.client, session.bridge, **parts(page))
    session.bridge = str(outcome.view.bridge_id)
    assert outcome.view.undo_report is not None
    assert (len(outcome.view.undo_report["undone"]), outcome.view.undo_report["skipped"]) == (len(EDITS), [])
    assert bytes_of(tmp_path) == before
    turn_checks.check_turn(session)


@pytest.mark.parametrize(
    ("prompt", "tool", "seen"),
    [
        ("Rename the page to “Bread & more”", "renamePage", "<title>Bread &amp; more</title>"),
        ("Make the primary colour darker", "set_color_tokens", "--color-crust: #834418;"),
        ("Duplicate the hours section", "duplicateNode", 'id="hours-2"'),
        ("Move the hours section above the breads", "moveNode", 'id="hours"'),
    ],
)
def test_a_prompt_to_the_demo_model_changes_the_bakery(
    prompt: str, tool: str, seen: str, session: ChatSession, tmp_path: Path
) -> None:
    page = tmp_path / "index.html"
    page.write_bytes(BAKERY.read_bytes())
    outcome = run_turn(session.client, "site", prompt, conversation_id=session.conversation, **parts(page))
    session.bridge = str(outcome.view.bridge_id)
    assert outcome.status == "done"
    assert (outcome.view.tool_calls[-1].name, outcome.view.tool_calls[-1].state) == (tool, "ok")
    assert seen in page.read_text()
    assert page.read_bytes() != BAKERY.read_bytes()
    turn_checks.check_turn(session)
