"""Every edit can be reversed byte for byte, also by a process that has only the edit's result."""

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata_client import HtmlDocument, HtmlFile, HtmlFileExecutor
from fermata_client.document.reversals import shortest_splice
from fermata_client.document.undo_hunk import EditConflictError
from fermata_client.html.edit_error import EditError
from fermata_client.tools.registry import WRITE_TOOLS
from fermata_client.tools.restore import inverse_calls, restore_edits
from tests.client.difficult_documents import difficult_document, documents, tool_inputs, write_tool_names


def bytes_of(document: HtmlDocument) -> tuple[bytes, dict[str, bytes]]:
    return document.source, dict(document.files)


def parse_again(document: HtmlDocument) -> HtmlDocument:
    """Parse the document's bytes again, as another process does."""
    return HtmlDocument.parse(document.source, files=document.files)


def run_tool(document: HtmlDocument, name: str, arguments: dict[str, object]) -> tuple[HtmlDocument, str]:
    """The document afterwards, and the way back as it travels."""
    edited, _ = WRITE_TOOLS[name](parse_again(document), arguments)
    return edited, json.dumps(inverse_calls(parse_again(document), edited))


def apply_inverse(document: HtmlDocument, inverse: str) -> HtmlDocument:
    for call in json.loads(inverse):
        document, _ = restore_edits(parse_again(document), call["input"])
    return document


@pytest.mark.exhaustive
@given(st.data())
def test_edits_undone_newest_first_leave_the_page_as_it_was(data: st.DataObject) -> None:
    document = data.draw(documents())
    states, inverses = [bytes_of(document)], []
    for name in data.draw(st.lists(write_tool_names, min_size=1, max_size=6)):
        try:
            document, inverse = run_tool(document, name, data.draw(tool_inputs(name, parse_again(document))))
        except EditError:
            continue
        inverses.append(inverse)
        states.append(bytes_of(document))
    while inverses:
        assert bytes_of(document) == states.pop()
        document = apply_inverse(document, inverses.pop())
    assert bytes_of(document) == states.pop()


def test_an_edit_of_a_file_that_the_page_does_not_load_any_more_is_undone_too() -> None:
    sheet = {"path": "new.css", "type": "style", "content": ""}
    document = HtmlDocument.parse(b"<title>t</title>")
    states, inverses = [bytes_of(document)], []
    for name, arguments in (
        ("write_code_asset", sheet),
        ("deleteNode", {"nodeId": "n1"}),
        ("write_code_asset", sheet | {"content": ".a { top: 0 }"}),
    ):
        document, inverse = run_tool(document, name, dict(arguments))
        states.append(bytes_of(document))
        inverses.append(inverse)
    for inverse, state in zip(reversed(inverses), reversed(states[:-1]), strict=True):
        document = apply_inverse(document, inverse)
        assert bytes_of(document) == state


@given(st.data())
def test_an_undone_edit_can_be_redone(data: st.DataObject) -> None:
    document = data.draw(documents())
    name = data.draw(write_tool_names)
    try:
        edited, inverse = run_tool(document, name, data.draw(tool_inputs(name, document)))
    except EditError:
        return
    back = apply_inverse(edited, inverse)
    assert bytes_of(back) == bytes_of(document)
    again = apply_inverse(back, json.dumps(inverse_calls(parse_again(edited), back)))
    assert bytes_of(again) == bytes_of(edited)
    assert bytes_of(apply_inverse(back, inverse)) == bytes_of(document)  # an answer that was lost is asked for again


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.exhaustive
@settings(max_examples=60)
@given(st.data())
def test_on_disk_every_answer_is_true_and_a_new_editor_undoes_every_edit(
    data: st.DataObject,
) -> None:
    numbers, document = itertools.count(), data.draw(documents())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in {"index.html": document.source, **document.files}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)

        def open_editor() -> HtmlFileExecutor:
            return HtmlFileExecutor(HtmlFile(folder / "index.html"))

        def run_request(tool: str, arguments: dict[str, Any], revision: str) -> dict[str, Any]:
            return editor({"toolName": tool, "requestId": str(next(numbers)), "input": arguments, "revision": revision})

        editor, applied = open_editor(), []
        for tool in data.draw(st.lists(write_tool_names, min_size=1, max_size=6)):
            before, revision = files_of(folder), editor.revision()
            answer = run_request(tool, data.draw(tool_inputs(tool, editor.file.document)), revision)
            assert not answer.get("conflict")
            assert ("inverse" in answer) == (files_of(folder) != before) == (answer["revision"] != revision)
            assert open_editor().revision() == answer["revision"]
            applied += [(answer["inverse"], before)] if "inverse" in answer else []
        for inverse, before in reversed(applied):
            editor = open_editor()
            assert all(run_request(call["tool"], call["input"], "another")["ok"] for call in inverse)
            assert files_of(folder) == before


def replace_text(document: HtmlDocument, old: str, new: str) -> HtmlDocument:
    """Replace text as another program does."""
    assert document.source.decode().count(old) == 1
    return HtmlDocument.parse(document.source.decode().replace(old, new).encode(), files=document.files)


def page() -> HtmlDocument:
    return HtmlDocument.parse(b"<h1>Hi</h1>\n<p>one</p>\n<p>two</p>\n<p>three</p>\n")


def test_an_edit_is_found_again_when_the_page_was_changed_elsewhere() -> None:
    edited, inverse = run_tool(page(), "updateNodeProps", {"nodeId": "n3", "patch": {"text": "zwei"}})
    back = apply_inverse(replace_text(edited, "<h1>Hi</h1>", "<h1>Good morning, everybody</h1>"), inverse)
    assert back.source.decode() == "<h1>Good morning, everybody</h1>\n<p>one</p>\n<p>two</p>\n<p>three</p>\n"


def test_an_edit_whose_result_was_changed_is_kept() -> None:
    edited, inverse = run_tool(page(), "updateNodeProps", {"nodeId": "n3", "patch": {"text": "zwei"}})
    changed = replace_text(edited, "zwei", "dos")
    with pytest.raises(EditConflictError):
        apply_inverse(changed, inverse)


def test_an_edit_with_two_places_that_fit_is_left() -> None:
    rows = HtmlDocument.parse(b"<p>same</p>\n" * 30)
    edited, inverse = run_tool(rows, "deleteNode", {"nodeId": "n10"})
    with pytest.raises(EditConflictError):
        apply_inverse(HtmlDocument.parse(b"<h1>New</h1>\n" + edited.source), inverse)


def test_a_created_file_is_removed_unless_it_was_changed_since() -> None:
    document = difficult_document("linked")
    edited, inverse = run_tool(
        document, "write_code_asset", {"path": "menu.js", "type": "script", "content": "let m;\n"}
    )
    assert edited.files["menu.js"] == b"let m;\n"
    assert b'<script src="menu.js" defer></script>' in edited.source
    assert bytes_of(apply_inverse(edited, inverse)) == bytes_of(document)
    with pytest.raises(EditConflictError, match=r"menu\.js was changed since it was made"):
        apply_inverse(edited.with_file("menu.js", b"let m = 1;\n"), inverse)


def test_a_patch_of_another_editor_is_refused() -> None:
    for patch in ({}, {"edits": 1}, {"edits": [{"path": ""}]}, {"edits": [{"path": "", "swaps": [{}]}]}, {"undo": 7}):
        with pytest.raises(EditError, match="not made by this editor"):
            restore_edits(page(), {"patch": patch})


@given(st.text("aé🥐\n"), st.text("aé🥐\n"))
def test_the_narrowest_splice_cuts_no_character(old: str, new: str) -> None:
    splice = shortest_splice(old.encode(), new.encode())
    assert old.encode()[: splice.start].decode() + splice.text.decode() + old.encode()[splice.end :].decode() == new
