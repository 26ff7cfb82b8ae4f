"""Every edit can be taken back, byte for byte, also by a program that knows nothing but what the answer said."""

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata_client import HtmlDocument, HtmlFile, HtmlFileExecutor
from fermata_client.document.byte_swap import EditConflictError
from fermata_client.document.reversals import shortest_splice
from fermata_client.html.errors import EditError
from fermata_client.tools.registry import WRITE_TOOLS
from fermata_client.tools.restore import inverse_calls, restore_edits
from tests.client.difficult_documents import difficult_document, documents, tool_inputs, write_tool_names


def content(document: HtmlDocument) -> tuple[bytes, dict[str, bytes]]:
    return document.source, dict(document.files)


def anew(document: HtmlDocument) -> HtmlDocument:
    """The same bytes in a program that was started anew."""
    return HtmlDocument.parse(document.source, files=document.files)


def do(document: HtmlDocument, name: str, given: dict[str, object]) -> tuple[HtmlDocument, str]:
    """The document afterwards, and the way back as it travels."""
    edited, _ = WRITE_TOOLS[name](anew(document), given)
    return edited, json.dumps(inverse_calls(anew(document), edited))


def take_back(document: HtmlDocument, inverse: str) -> HtmlDocument:
    for call in json.loads(inverse):
        document, _ = restore_edits(anew(document), call["input"])
    return document


@given(st.data())
def test_edits_taken_back_newest_first_leave_the_page_as_it_was(data: st.DataObject) -> None:
    document = data.draw(documents())
    states, inverses = [content(document)], []
    for name in data.draw(st.lists(write_tool_names, min_size=1, max_size=6)):
        try:
            document, inverse = do(document, name, data.draw(tool_inputs(name, anew(document))))
        except EditError:
            continue
        inverses.append(inverse)
        states.append(content(document))
    while inverses:
        assert content(document) == states.pop()
        document = take_back(document, inverses.pop())
    assert content(document) == states.pop()


def test_a_file_that_the_page_no_longer_loads_is_taken_back_too() -> None:
    sheet = {"path": "new.css", "type": "style", "content": ""}
    document = HtmlDocument.parse(b"<title>t</title>")
    states, inverses = [content(document)], []
    for name, asked in (
        ("write_code_asset", sheet),
        ("deleteNode", {"nodeId": "n1"}),
        ("write_code_asset", sheet | {"content": ".a { top: 0 }"}),
    ):
        document, inverse = do(document, name, dict(asked))
        states.append(content(document))
        inverses.append(inverse)
    for inverse, state in zip(reversed(inverses), reversed(states[:-1]), strict=True):
        document = take_back(document, inverse)
        assert content(document) == state


@given(st.data())
def test_what_was_taken_back_can_be_done_again(data: st.DataObject) -> None:
    document = data.draw(documents())
    name = data.draw(write_tool_names)
    try:
        edited, inverse = do(document, name, data.draw(tool_inputs(name, document)))
    except EditError:
        return
    back = take_back(edited, inverse)
    assert content(back) == content(document)
    again = take_back(back, json.dumps(inverse_calls(anew(edited), back)))
    assert content(again) == content(edited)
    assert content(take_back(back, inverse)) == content(document)  # an answer that was lost is asked for again


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=60)
@given(st.data())
def test_on_disk_every_answer_is_true_and_every_edit_is_taken_back_by_an_editor_that_knows_nothing(
    data: st.DataObject,
) -> None:
    numbers, document = itertools.count(), data.draw(documents())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in {"index.html": document.source, **document.files}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text)

        def opened() -> HtmlFileExecutor:
            return HtmlFileExecutor(HtmlFile(folder / "index.html"))

        def ask(tool: str, given: dict[str, Any], revision: str) -> dict[str, Any]:
            return editor({"toolName": tool, "requestId": str(next(numbers)), "input": given, "revision": revision})

        editor, done = opened(), []
        for tool in data.draw(st.lists(write_tool_names, min_size=1, max_size=6)):
            before, revision = files_of(folder), editor.revision()
            answer = ask(tool, data.draw(tool_inputs(tool, editor.file.document)), revision)
            assert not answer.get("conflict")
            assert ("inverse" in answer) == (files_of(folder) != before) == (answer["revision"] != revision)
            assert opened().revision() == answer["revision"]
            done += [(answer["inverse"], before)] if "inverse" in answer else []
        for inverse, before in reversed(done):
            editor = opened()
            assert all(ask(call["tool"], call["input"], "another")["ok"] for call in inverse)
            assert files_of(folder) == before


def edit(document: HtmlDocument, old: str, new: str) -> HtmlDocument:
    """By hand, in another program."""
    assert document.source.decode().count(old) == 1
    return HtmlDocument.parse(document.source.decode().replace(old, new).encode(), files=document.files)


def page() -> HtmlDocument:
    return HtmlDocument.parse(b"<h1>Hi</h1>\n<p>one</p>\n<p>two</p>\n<p>three</p>\n")


def test_an_edit_is_found_again_when_the_page_was_changed_elsewhere() -> None:
    edited, inverse = do(page(), "updateNodeProps", {"nodeId": "n3", "patch": {"text": "zwei"}})
    back = take_back(edit(edited, "<h1>Hi</h1>", "<h1>Good morning, everybody</h1>"), inverse)
    assert back.source.decode() == "<h1>Good morning, everybody</h1>\n<p>one</p>\n<p>two</p>\n<p>three</p>\n"


def test_an_edit_that_somebody_went_on_with_is_left() -> None:
    edited, inverse = do(page(), "updateNodeProps", {"nodeId": "n3", "patch": {"text": "zwei"}})
    changed = edit(edited, "zwei", "dos")
    with pytest.raises(EditConflictError):
        take_back(changed, inverse)


def test_an_edit_with_two_places_that_fit_is_left() -> None:
    rows = HtmlDocument.parse(b"<p>same</p>\n" * 30)
    edited, inverse = do(rows, "deleteNode", {"nodeId": "n10"})
    with pytest.raises(EditConflictError):
        take_back(HtmlDocument.parse(b"<h1>New</h1>\n" + edited.source), inverse)


def test_a_file_that_was_made_goes_again_unless_somebody_wrote_on() -> None:
    document = difficult_document("linked")
    edited, inverse = do(document, "write_code_asset", {"path": "menu.js", "type": "script", "content": "let m;\n"})
    assert edited.files["menu.js"] == b"let m;\n"
    assert b'<script src="menu.js" defer></script>' in edited.source
    assert content(take_back(edited, inverse)) == content(document)
    with pytest.raises(EditConflictError, match=r"menu\.js was changed since it was made"):
        take_back(edited.with_file("menu.js", b"let m = 1;\n"), inverse)


def test_a_patch_of_another_editor_is_refused() -> None:
    for patch in ({}, {"edits": 1}, {"edits": [{"path": ""}]}, {"edits": [{"path": "", "swaps": [{}]}]}, {"undo": 7}):
        with pytest.raises(EditError, match="not made by this editor"):
            restore_edits(page(), {"patch": patch})


@given(st.text("aé🥐\n"), st.text("aé🥐\n"))
def test_the_narrowest_splice_cuts_no_character(old: str, new: str) -> None:
    splice = shortest_splice(old.encode(), new.encode())
    assert old.encode()[: splice.start].decode() + splice.text.decode() + old.encode()[splice.end :].decode() == new
