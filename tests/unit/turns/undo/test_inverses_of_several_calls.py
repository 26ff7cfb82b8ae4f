"""Undo and redo where an inverse has several calls, each of which may be refused (decision 0155)."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.domain.errors import Conflict
from fermata.turns.pause import InverseCallKey, UndoTarget
from fermata.turns.turn import Turn
from fermata.turns.undo.inverse_plan import HALF_REDONE_REASON
from tests.quick_suite_samples import sample_for_quick_suite
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.editor import journal_entries, journal_states, undo_report
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

CELLS_OF_AN_EDIT = 6
EDITS = 3
CONFLICT = {"ok": False, "conflict": True, "error": "Somebody was here."}
Result = dict[str, Any]
Split = Callable[[list[int]], list[list[int]]]


class CellEditor:
    """An editor whose page is a row of cells. Edit `n` sets its own cells to 1; an inverse has one to four calls."""

    def __init__(self, stage: Stage, seed: int = 0, split: Split | None = None, edits: int = EDITS) -> None:
        self.stage = stage
        self.random = Random(seed)
        self.cells = [0] * (edits * CELLS_OF_AN_EDIT)
        self.edits = 0
        self.no_inverse_rate = 0.0
        self.split = split or self._split_randomly

    def run_editing_turn(self) -> Turn:
        turn = self.stage.start_turn()
        calls = [
            tool_call_block("insertHtml", parentId="r", html="x") for _ in range(len(self.cells) // CELLS_OF_AN_EDIT)
        ]
        self.stage.script_replies(reply_with_calls(*calls), "Done.")
        self.answer_until_end()
        return turn

    def undo(self, turn: Turn, refuse: Callable[[Result], bool] = lambda _request: False, through: str = "") -> Turn:
        undo = self.stage.start_undo(turn, through=through)
        self.answer_until_end(refuse)
        return undo

    def answer_until_end(self, refuse: Callable[[Result], bool] = lambda _request: False) -> None:
        while self.stage.run_workflow() == "waiting":
            [request] = self.stage.show_turn()["pending"]
            self.stage.answer_request(CONFLICT if refuse(request) else self.apply(request))

    def apply(self, request: Result) -> Result:
        if request["toolName"] == "restore":
            return self._set_cells({int(cell): value for cell, value in request["input"]["patch"].items()})
        first = self.edits * CELLS_OF_AN_EDIT
        self.edits += 1
        return self._set_cells(dict.fromkeys(range(first, first + CELLS_OF_AN_EDIT), 1))

    def _set_cells(self, values: dict[int, int]) -> Result:
        for cell, value in values.items():
            assert self.cells[cell] != value, "a call that stands already was requested"
            self.cells[cell] = value
        groups = self.split(list(values))
        calls = [
            {"tool": "restore", "input": {"patch": {str(cell): 1 - values[cell] for cell in group}}} for group in groups
        ]
        has_inverse = self.random.random() >= self.no_inverse_rate
        return {"ok": True} | ({"inverse": calls} if has_inverse else {})

    def _split_randomly(self, cells: list[int]) -> list[list[int]]:
        self.random.shuffle(cells)
        count = self.random.randint(1, min(4, len(cells)))
        return [cells[index::count] for index in range(count)]

    @property
    def states(self) -> list[str]:
        """Return what the page says about each edit, the oldest first."""
        firsts = range(0, len(self.cells), CELLS_OF_AN_EDIT)
        sums = [sum(self.cells[first : first + CELLS_OF_AN_EDIT]) for first in firsts]
        return ["applied" if total == CELLS_OF_AN_EDIT else "partly" if total else "undone" for total in sums]


def one_by_one(cells: list[int]) -> list[list[int]]:
    return [[cell] for cell in cells[:3]] + ([cells[3:]] if cells[3:] else [])


def in_two(cells: list[int]) -> list[list[int]]:
    half = len(cells) // 2
    return [cells[:half], cells[half:]] if half else [cells]


def refuse_nth(*numbers: int) -> Callable[[Result], bool]:
    requests: list[Result] = []

    def refuse(request: Result) -> bool:
        requests.append(request)
        return len(requests) in numbers

    return refuse


def test_a_redo_with_a_conflict_at_its_first_call_leaves_the_edit_partly_undone(stage: Stage) -> None:
    editor = CellEditor(stage, split=in_two, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    editor.undo(undo, refuse_nth(1))
    assert journal_states(stage, turn) == editor.states == ["partly"]
    editor.undo(undo)
    assert journal_states(stage, turn) == editor.states == ["applied"]


def test_an_undo_requests_only_the_calls_that_do_not_stand(stage: Stage) -> None:
    editor = CellEditor(stage, split=one_by_one, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    editor.undo(undo, refuse_nth(1, 3, 4))
    assert journal_states(stage, turn) == editor.states == ["partly"]
    editor.undo(turn)
    assert len(stage.tool_requests()) == 1
    assert journal_states(stage, turn) == editor.states == ["undone"]


def test_half_of_one_call_that_is_redone_leaves_the_edit_partly_undone(stage: Stage) -> None:
    editor = CellEditor(stage, split=in_two, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    editor.undo(undo, refuse_nth(2, 3))
    assert journal_states(stage, turn) == editor.states == ["partly"]
    editor.undo(turn)
    assert journal_states(stage, turn) == editor.states == ["undone"]
    assert undo_report(stage).undone == (f"{turn.id}/1/0",)


def test_a_redo_without_an_inverse_leaves_the_call_of_the_edit_itself(stage: Stage) -> None:
    editor = CellEditor(stage, split=in_two, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    editor.no_inverse_rate = 1
    editor.undo(undo)
    assert journal_states(stage, turn) == editor.states == ["applied"]
    editor.undo(turn)
    assert len(stage.tool_requests()) == 2
    assert journal_states(stage, turn) == editor.states == ["undone"]


def test_half_of_a_redo_that_the_editor_cannot_take_back_is_reported(stage: Stage) -> None:
    editor = CellEditor(stage, split=in_two, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    editor.no_inverse_rate = 1
    editor.undo(undo, refuse_nth(2, 3))
    editor.undo(turn)
    assert [edit.reason for edit in undo_report(stage).skipped] == [HALF_REDONE_REASON]
    assert journal_states(stage, turn) == editor.states == ["partly"]
    editor.undo(undo)
    assert journal_states(stage, turn) == editor.states == ["applied"]


def test_a_redo_that_was_repeated_by_the_first_inverse_cannot_be_undone_itself(stage: Stage) -> None:
    """One of the two edits that redid a call has no inverse, so the call itself is requested again, in one piece."""
    editor = CellEditor(stage, split=in_two, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn)
    redo = stage.start_undo(undo)
    for number in range(4):
        editor.no_inverse_rate = number % 2
        stage.run_workflow()
        [request] = stage.show_turn()["pending"]
        stage.answer_request(editor.apply(request))
    assert stage.run_workflow() == "finished"
    editor.no_inverse_rate = 0
    editor.undo(turn)
    assert journal_states(stage, turn) == editor.states == ["undone"]
    assert journal_states(stage, redo) == ["undone", "undone"]


def store_old_mark(stage: Stage, turn: Turn, **mark: Any) -> None:
    """Store a mark in the form that counts calls."""
    table = stage.resources.settings.bridges_table
    item = {"pk": turn.pk, "sk": "j#000001#0000#u", "v": 1, "data": json.dumps(mark), "ttl": turn.expires}
    stage.resources.tables.write_items(Put(table, item))


def test_a_count_in_an_old_mark_means_the_first_calls(stage: Stage) -> None:
    editor = CellEditor(stage, split=one_by_one, edits=1)
    turn = editor.run_editing_turn()
    editor.cells[:2] = [0, 0]
    store_old_mark(stage, turn, by="an undo", done=2, first=1, reason="No.")
    assert journal_states(stage, turn) == editor.states == ["partly"]
    editor.undo(turn)
    assert len(stage.tool_requests()) == 2
    assert journal_states(stage, turn) == editor.states == ["undone"]


def test_an_edit_with_an_old_mark_can_be_redone(stage: Stage) -> None:
    editor = CellEditor(stage, split=one_by_one, edits=1)
    turn = editor.run_editing_turn()
    undo = editor.undo(turn, refuse_nth(3))
    store_old_mark(stage, turn, by=undo.id, done=2)
    editor.undo(undo)
    assert journal_states(stage, turn) == editor.states == ["applied"]


def test_a_redo_in_an_old_mark_takes_the_place_of_the_call(stage: Stage) -> None:
    editor = CellEditor(stage, split=lambda cells: [cells], edits=1)
    turn = editor.run_editing_turn()
    redo = editor.undo(editor.undo(turn))
    tip = {"step": 0, "turn": redo.id, "edit": "000001#0000", "tool": "restore"}
    store_old_mark(stage, turn, by=redo.id, done=0, redone=redo.id, tips=[tip])
    editor.undo(turn)
    assert journal_states(stage, turn) == journal_states(stage, redo) == editor.states == ["undone"]


def test_a_pause_stored_with_its_first_call_only_is_understood() -> None:
    target = UndoTarget.model_validate({"turn": "t", "edit": "e", "effect_key": "t/1/0", "first": 2, "of": 4})
    assert target.get_inverse_call(1) == InverseCallKey(turn="t", edit_key="e", step=3)


@pytest.mark.parametrize("has_stuck_redos", [False, True])
@pytest.mark.parametrize("seed", sample_for_quick_suite(range(6), every=6))
def test_after_any_day_of_undos_the_journal_says_what_the_page_shows(
    staged: MakeStage, seed: int, has_stuck_redos: bool
) -> None:
    stage = staged()
    chance = Random(seed)
    editor = CellEditor(stage, seed)
    turns = [editor.run_editing_turn()]
    turn = turns[0]
    editor.no_inverse_rate = 0.15 if has_stuck_redos else 0
    for _ in range(10):
        start_random_undo(editor, chance, turns)
        assert journal_states(stage, turn) == editor.states
    if "applied" in editor.states or "partly" in editor.states:
        editor.undo(turn)
    if not has_stuck_redos:
        assert editor.states == ["undone"] * EDITS
    assert journal_states(stage, turn) == editor.states


def start_random_undo(editor: CellEditor, chance: Random, turns: list[Turn]) -> None:
    """Undo one of the turns, or a part of it, with conflicts here and there; sometimes the undo is cancelled."""
    stage = editor.stage
    picked = chance.choice([turns[0], *turns])
    through = chance.choice(["", *(entry.edit.effect_key for entry in journal_entries(stage, picked))])
    conflict_rate = chance.choice([0, 0.2, 0.5])
    before = editor.states
    try:
        turns.append(stage.start_undo(picked, through=through))
    except Conflict:
        return
    while stage.run_workflow() == "waiting":
        if chance.random() < 0.05:
            stage.cancel_turn()
            return
        [request] = stage.show_turn()["pending"]
        stage.answer_request(CONFLICT if chance.random() < conflict_rate else editor.apply(request))
    if picked == turns[0]:
        keys = [f"{picked.id}/1/{index}" for index in range(EDITS)]
        newly_undone = {
            key
            for key, old, new in zip(keys, before, editor.states, strict=True)
            if old != "undone" and new == "undone"
        }
        assert set(undo_report(stage).undone) == newly_undone
