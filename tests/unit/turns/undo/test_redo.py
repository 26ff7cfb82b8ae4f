"""Redo: edits that are undone, redone and undone again, any number of times (decision 0119)."""

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


def undo_and_finish(stage: Stage, editor: Editor, turn: Turn, **wish: str) -> Turn:
    undo = stage.start_undo(turn, **wish)
    editor.finish()
    return undo


def test_a_redone_edit_can_be_undone_again_any_number_of_times(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["deleteNode"])
    after = dict(editor.page)
    for _ in range(4):
        undo = undo_and_finish(stage, editor, turn)
        assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone"] * 3)
        undo_and_finish(stage, editor, undo)
        assert (editor.page, journal_states(stage, turn)) == (after, ["applied"] * 3)
        assert undo_report(stage).skipped == ()


def test_undoing_the_newest_undo_repeatedly_updates_the_first_turns_journal(stage: Stage, editor: Editor) -> None:
    turn = latest = editor.run_editing_turn(["insertHtml", "deleteNode"])
    after = dict(editor.page)
    for _ in range(3):
        latest = undo_and_finish(stage, editor, latest)
        assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone"] * 2)
        latest = undo_and_finish(stage, editor, latest)
        assert (editor.page, journal_states(stage, turn)) == (after, ["applied"] * 2)
    undo_and_finish(stage, editor, turn)
    assert editor.page == PAGE
    assert journal_states(stage, latest) == ["undone"] * 2, "the redo was taken back with what it redid"


def test_some_edits_can_be_redone_while_others_stay_undone(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["deleteNode"], ["insertHtml"])
    before_last = {name: text for name, text in editor.page.items() if name != "n2"}
    undo = undo_and_finish(stage, editor, turn, through=f"{turn.id}/2/0")
    undo_and_finish(stage, editor, undo, through=f"{undo.id}/2/0")
    assert journal_states(stage, turn) == ["applied", "applied", "undone"]
    assert editor.page == before_last
    undo_and_finish(stage, editor, turn)
    assert editor.page == PAGE
    assert journal_states(stage, turn) == ["undone"] * 3


def test_a_skipped_edit_stays_unchanged_through_undo_and_redo(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"], ["insertHtml"])
    after = dict(editor.page)
    editor.is_strict = False
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
    undo_and_finish(stage, editor, undo)
    assert (editor.page, journal_states(stage, turn)) == (after, ["applied", "applied"])
    undo_and_finish(stage, editor, turn)
    assert (editor.page, journal_states(stage, turn)) == (PAGE, ["undone", "undone"])


def test_the_refusal_names_the_turn_to_undo_instead(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    undo = undo_and_finish(stage, editor, turn)
    assert refusal_of_undo(stage, turn).endswith(f"To redo it, undo the turn {undo.id}.")
    redo = undo_and_finish(stage, editor, undo)
    assert refusal_of_undo(stage, undo).endswith(f"undo the turn {turn.id}.")
    again = undo_and_finish(stage, editor, turn)
    for candidate in (turn, undo, redo):
        assert refusal_of_undo(stage, candidate).endswith(f"To redo it, undo the turn {again.id}.")


def refusal_of_undo(stage: Stage, turn: Turn) -> str:
    with pytest.raises(Conflict) as refused:
        stage.start_undo(turn)
    return refused.value.message


def test_an_undo_that_cannot_be_undone_is_not_recommended(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    stage.start_undo(turn)
    stage.run_workflow()
    stage.answer_request({"ok": True})
    stage.run_workflow()
    assert refusal_of_undo(stage, turn).endswith("the editor reported no inverse to redo it with.")


def test_an_inverse_is_planned_on_the_newest_revision_number(stage: Stage) -> None:
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
    """Answer a request with each revision, and return the revisions that the requests named."""
    requested: list[str | None] = []
    inverse = {"tool": "restore", "input": {"patch": {}}}
    for revision in revisions:
        assert stage.run_workflow() == "waiting"
        requested.append(stage.tool_requests()[-1].revision)
        stage.answer_request({"ok": True, "revision": revision, "inverse": inverse})
    assert stage.run_workflow() == "finished"
    return requested


def test_the_newest_inverse_is_used(stage: Stage) -> None:
    """Reinserted nodes have new ids, so the first inverse no longer fits."""
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    answer_by_hand(stage, {"tool": "deleteNode", "input": {"nodeId": "n1"}})
    undo = stage.start_undo(turn)
    answer_by_hand(stage, {"tool": "insertHtml", "input": {"parentId": "r", "html": "x"}})
    stage.start_undo(undo)
    answer_by_hand(stage, {"tool": "deleteNode", "input": {"nodeId": "n2"}})
    stage.start_undo(turn)
    answer_by_hand(stage, {"tool": "restore", "input": {"patch": {}}})
    assert stage.tool_requests()[-1].input == {"nodeId": "n2"}


def answer_by_hand(stage: Stage, inverse: object) -> None:
    assert stage.run_workflow() == "waiting"
    stage.answer_request(OK | {"inverse": inverse})
    assert stage.run_workflow() == "finished"


def test_an_inverse_of_several_calls_is_redone_call_by_call(staged: MakeStage) -> None:
    stage = staged()
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": [restore_step("one"), restore_step("two")]})
    stage.run_workflow()
    for _ in range(3):
        undo = stage.start_undo(turn)
        assert undo_and_redo(stage) == ["one", "two"]
        assert journal_states(stage, turn) == ["undone"]
        stage.start_undo(undo)
        assert undo_and_redo(stage) == ["owt", "eno"]
        assert journal_states(stage, turn) == ["applied"]


def restore_step(text: str) -> dict[str, object]:
    return {"tool": "restore", "input": {"patch": {"text": text}}}


def undo_and_redo(stage: Stage) -> list[str]:
    """Answer all requests, each with the inverse of its step, and return the steps in the order of the requests."""
    while stage.run_workflow() == "waiting":
        [request] = stage.show_turn()["pending"]
        stage.answer_request(OK | {"inverse": restore_step(request["input"]["patch"]["text"][::-1])})
    return [request.input["patch"]["text"] for request in stage.tool_requests() if request.input]


def test_half_of_a_redo_leaves_the_edit_partly_undone(stage: Stage) -> None:
    turn = stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="r", html="x")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK | {"inverse": [restore_step("one"), restore_step("two")]})
    stage.run_workflow()
    undo = stage.start_undo(turn)
    undo_and_redo(stage)
    stage.start_undo(undo, through=f"{undo.id}/1/1")
    undo_and_redo(stage)
    assert journal_states(stage, turn) == ["partly"]
    stage.start_undo(turn)
    assert undo_and_redo(stage) == ["two"]
    assert journal_states(stage, turn) == ["undone"]


def test_the_journal_names_the_turn_that_redid_an_edit(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml"])
    redo = undo_and_finish(stage, editor, undo_and_finish(stage, editor, turn))
    [entry] = edit_journal.list_journal_entries(stage.resources, turn.tenant, turn.id)
    wire_entry = journal_entry_to_wire(entry)
    assert (wire_entry["state"], wire_entry["redoneBy"], "undoneBy" in wire_entry, "link" in wire_entry) == (
        "applied",
        redo.id,
        False,
        False,
    )


def test_the_note_of_a_redo_names_the_models_edits(stage: Stage, editor: Editor) -> None:
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"])
    undo = undo_and_finish(stage, editor, turn)
    redo = undo_and_finish(stage, editor, undo)
    note = str(stage.load_messages()[-1].content)
    assert "redid edits of yours" in note
    assert note.index("insertHtml") < note.index("deleteNode")
    undo_and_finish(stage, editor, redo)
    note = str(stage.load_messages()[-1].content)
    assert "took edits of yours back" in note
    assert note.index("deleteNode") < note.index("insertHtml")
    assert "restore" not in note


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(8))
def test_after_any_sequence_of_undos_the_journal_matches_the_page(stage: Stage, editor: Editor, seed: int) -> None:
    chance = Random(seed)
    turn = editor.run_editing_turn(["insertHtml", "deleteNode"], ["insertHtml"])
    turns = [turn]
    editor.is_strict = False
    undos = 0
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
        assert journal_states(stage, turn) == ["applied" if is_applied else "undone" for is_applied in is_there]
    assert undos > 3
