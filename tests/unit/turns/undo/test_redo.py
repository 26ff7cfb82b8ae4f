"""Edits that go to and fro: undone, redone, undone again, as often as somebody likes (docs/editing.md)."""

from random import Random

import pytest

from fermata.domain.errors import Conflict
from fermata.turns import edit_journal
from fermata.turns.read.journal_pages import journal_entry_to_wire
from fermata.turns.turn import Turn
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.editor import PAGE, Editor, journal_states, undo_report
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block


@pytest.fixture
def editor(stage: Stage) -> Editor:
    return Editor(stage)


def undone(stage: Stage, editor: Editor, turn: Turn, **wish: str) -> Turn:
    undo = stage.start_undo(turn, **wish)
    editor.finish()
    return undo


def test_what_was_redone_stands_again_and_can_be_undone_again_any_number_of_times(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["deleteNode"])
    after = dict(editor.page)
    for _ in range(4):
        undo = undone(stage, editor, turn)
        assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone"] * 3)
        undone(stage, editor, undo)
        assert (editor.page, journal_states(stage, turn)) == (after, ["applied"] * 3)
        assert undo_report(stage).skipped == ()


def test_undo_after_undo_of_the_newest_one_goes_to_and_fro_and_the_first_turn_knows(
    stage: Stage, editor: Editor
) -> None:
    turn = latest = editor.run_editing_turn(["insertHtml", "deleteNode"])
    after = dict(editor.page)
    for _ in range(3):
        latest = undone(stage, editor, latest)
        assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone"] * 2)
        latest = undone(stage, editor, latest)
        assert (editor.page, journal_states(stage, turn)) == (after, ["applied"] * 2)
    undone(stage, editor, turn)
    assert editor.page == PAGE
    assert journal_states(stage, latest) == ["undone"] * 2, "the redo was taken back with what it redid"


def test_some_edits_are_redone_and_the_others_stay_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["deleteNode"], ["insertHtml"])
    before_last = {name: text for name, text in editor.page.items() if name != "n2"}
    undo = undone(stage, editor, turn, through=f"{turn.id}/2/0")
    undone(stage, editor, undo, through=f"{undo.id}/2/0")
    assert journal_states(stage, turn) == ["applied", "applied", "undone"]
    assert editor.page == before_last
    undone(stage, editor, turn)
    assert editor.page == PAGE
    assert journal_states(stage, turn) == ["undone"] * 3


def test_what_somebody_else_was_in_the_way_of_stays_as_it_is_to_and_fro(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    after, editor.is_strict = dict(editor.page), False
    stage.start_undo(turn)
    stage.run_workflow()
    [request] = stage.show_turn()["pending"]
    editor.send_result(request, editor.make_conflict())
    editor.finish()
    assert journal_states(stage, turn) == ["undone", "applied"]
    undo = stage.turn
    stage.start_undo(undo)
    stage.run_workflow()
    [request] = stage.show_turn()["pending"]
    editor.send_result(request, editor.make_conflict())
    editor.finish()
    assert journal_states(stage, turn) == ["undone", "applied"], "a redo that did not happen"
    undone(stage, editor, undo)
    assert (editor.page, journal_states(stage, turn)) == (after, ["applied", "applied"])
    undone(stage, editor, turn)
    assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone", "undone"])


def test_the_refusal_names_the_turn_to_undo_now(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    undo = undone(stage, editor, turn)
    assert refusal(stage, turn).endswith(f"To redo it, undo the turn {undo.id}.")
    redo = undone(stage, editor, undo)
    assert refusal(stage, undo).endswith(f"undo the turn {turn.id}.")
    again = undone(stage, editor, turn)
    for one in (turn, undo, redo):
        assert refusal(stage, one).endswith(f"To redo it, undo the turn {again.id}.")


def refusal(stage: Stage, turn: Turn) -> str:
    with pytest.raises(Conflict) as refused:
        stage.start_undo(turn)
    return refused.value.message


def test_an_undo_that_cannot_be_undone_is_not_recommended(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": True})
    stage.run_workflow()
    assert refusal(stage, turn).endswith("the editor gave no way to redo it.")


def test_an_editor_that_counts_is_asked_on_the_number_it_said_last(stage: Stage) -> None:
    turn = stage.start_turn(revision="1")
    stage.script_replies(
        reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")),
        reply_with_calls(tool_call_block("insertHtml", parentId="r", html="y")),
    )
    stage.script_replies("Done.")
    answer_all(stage, "2", "3")
    undo = stage.start_undo(turn)
    assert answer_all(stage, "4", "5") == ["3", "4"]
    stage.start_undo(undo)
    assert answer_all(stage, "6", "7") == ["5", "6"]
    stage.start_undo(turn)
    assert answer_all(stage, "8", "9") == ["7", "8"]


def answer_all(stage: Stage, *revisions: str) -> list[str | None]:
    asked: list[str | None] = []
    inverse = {"tool": "restore", "input": {"patch": {}}}
    for revision in revisions:
        assert stage.run_workflow() == "waiting"
        asked.append(stage.tool_requests()[-1].revision)
        stage.answer_request({"ok": True, "revision": revision, "inverse": inverse})
    assert stage.run_workflow() == "finished"
    return asked


def test_the_newest_way_back_is_the_one_that_is_taken(stage: Stage) -> None:
    """What was inserted anew has another id than before."""
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    by_hand(stage, {"tool": "deleteNode", "input": {"nodeId": "n1"}})
    undo = stage.start_undo(turn)
    by_hand(stage, {"tool": "insertHtml", "input": {"parentId": "r", "html": "x"}})
    stage.start_undo(undo)
    by_hand(stage, {"tool": "deleteNode", "input": {"nodeId": "n2"}})
    stage.start_undo(turn)
    by_hand(stage, {"tool": "restore", "input": {"patch": {}}})
    assert stage.tool_requests()[-1].input == {"nodeId": "n2"}


def by_hand(stage: Stage, inverse: object) -> None:
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK | {"inverse": inverse})
    assert stage.run_workflow() == "finished"


def test_a_way_back_of_several_calls_goes_to_and_fro_call_by_call(staged: MakeStage) -> None:
    stage = staged()
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": [restore("one"), restore("two")]})
    stage.run_workflow()
    for _ in range(3):
        undo = stage.start_undo(turn)
        assert to_and_fro(stage) == ["one", "two"]
        assert journal_states(stage, turn) == ["undone"]
        stage.start_undo(undo)
        assert to_and_fro(stage) == ["owt", "eno"]
        assert journal_states(stage, turn) == ["applied"]


def restore(text: str) -> dict[str, object]:
    return {"tool": "restore", "input": {"patch": {"text": text}}}


def to_and_fro(stage: Stage) -> list[str]:
    """What was asked for; what takes that back is the same, spelt backwards."""
    while stage.run_workflow() == "waiting":
        [request] = stage.show_turn()["pending"]
        stage.answer_request(OK | {"inverse": restore(request["input"]["patch"]["text"][::-1])})
    return [request.input["patch"]["text"] for request in stage.tool_requests() if request.input]


def test_half_of_a_redo_leaves_the_edit_partly_undone(stage: Stage) -> None:
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": [restore("one"), restore("two")]})
    stage.run_workflow()
    undo = stage.start_undo(turn)
    to_and_fro(stage)
    stage.start_undo(undo, through=f"{undo.id}/1/1")
    to_and_fro(stage)
    assert journal_states(stage, turn) == ["partly"]
    stage.start_undo(turn)
    assert to_and_fro(stage) == ["two"]
    assert journal_states(stage, turn) == ["undone"]


def test_the_journal_says_who_redid_an_edit(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    redo = undone(stage, editor, undone(stage, editor, turn))
    [entry] = edit_journal.list_journal_entries(stage.resources, turn.tenant, turn.id)
    shown = journal_entry_to_wire(entry)
    assert (shown["state"], shown["redoneBy"], "undoneBy" in shown, "link" in shown) == (
        "applied",
        redo.id,
        False,
        False,
    )


def test_the_model_is_told_of_a_redo_by_the_edits_it_made(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"])
    undo = undone(stage, editor, turn)
    redo = undone(stage, editor, undo)
    note = str(stage.load_messages()[-1].content)
    assert "redid edits of yours" in note
    assert note.index("insertHtml") < note.index("deleteNode")
    undone(stage, editor, redo)
    note = str(stage.load_messages()[-1].content)
    assert "took edits of yours back" in note
    assert note.index("deleteNode") < note.index("insertHtml")
    assert "restore" not in note


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_undone_in_whatever_order_the_journal_says_what_is_on_the_page(
    stage: Stage, editor: Editor, seed: int
) -> None:
    chance = Random(seed)
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
    turns, editor.is_strict, undos = [turn], False, 0
    for _ in range(12):
        picked = chance.choice(turns)
        edits = edit_journal.list_journal_entries(stage.resources, turn.tenant, picked.id)
        through = chance.choice(["", *[entry.edit.effect_key for entry in edits]])
        try:
            turns.append(stage.start_undo(picked, through=through))
        except Conflict:
            continue
        undos += 1
        while stage.run_workflow() == "waiting":
            for request in stage.show_turn()["pending"]:
                editor.send_result(
                    request, editor.make_conflict() if chance.random() < 0.2 else editor.apply_request(request)
                )
        is_there = ["n1" in editor.page, "a" not in editor.page, "n2" in editor.page]
        assert journal_states(stage, turn) == ["applied" if there else "undone" for there in is_there]
    assert undos > 3
