"""An undo, disturbed once at any of the calls it makes to AWS: what it says it took back, it took back.

A few of the calls in the daily run, other ones for each disturbance; `BAD_DAYS=1 pytest …` tries each single one.
"""

import os
from collections.abc import Callable
from contextlib import suppress

import pytest

from fermata.domain.errors import Conflict
from tests.faults import ProcessDied
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.disturbed_undo import DisturbedEditing, DisturbedUndo
from tests.unit.turns.editor import PAGE, Editor
from tests.unit.turns.stage import Stage
from tests.unit.turns.state_machine import EXPECTED_ERRORS
from tests.unit.turns.test_fault_at_every_call import DEEDS, FAULTS, live_through

EACH = "BAD_DAYS" in os.environ
STRIDE = 1 if EACH else 20
MORE_DEEDS = (*DEEDS, "another undo", "the same undo")


@pytest.fixture(scope="module")
def many() -> list[int]:
    """How many calls an undo makes when nothing happens to it; found out by the first test."""
    return []


def numbers(many: list[int], make: MakeStage, place: int) -> range:
    if not many:
        day = DisturbedUndo(make())
        before = day.stage.faults.call_count
        day.take_its_course()
        day.stage.close()
        many.append(day.stage.faults.call_count - before)
    return range(1 + 3 * place % STRIDE, many[0] + 1, STRIDE)


def disturbed(
    make: MakeStage,
    number: int,
    when: str,
    act: Callable[[DisturbedUndo], object],
    kind: type[DisturbedUndo] = DisturbedUndo,
) -> None:
    live_through(kind(make()), number, when, act)


@pytest.mark.parametrize(("place", "fault"), list(enumerate(FAULTS)))
def test_an_undo_survives_whatever_happens_to_one_call(
    staged: MakeStage, many: list[int], place: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in numbers(many, staged, place):
        disturbed(staged, number, when, lambda _day: act())


@pytest.mark.parametrize(("place", "deed"), list(enumerate(MORE_DEEDS)))
def test_an_undo_survives_whatever_others_do_before_one_call(
    staged: MakeStage, many: list[int], place: int, deed: str
) -> None:
    for number in numbers(many, staged, place):
        disturbed(staged, number, "before", lambda day: day.do(deed))


@pytest.mark.parametrize(("place", "fault"), list(enumerate(FAULTS)))
def test_whatever_happens_to_an_edit_it_is_in_the_journal_once_and_can_be_taken_back(
    staged: MakeStage, place: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in range(1 + 3 * place % STRIDE, 60, STRIDE):
        disturbed(staged, number, when, lambda _day: act(), DisturbedEditing)


@pytest.mark.parametrize(("place", "deed"), list(enumerate(MORE_DEEDS[:-2])))
def test_whatever_others_do_an_edit_is_in_the_journal_once_and_can_be_taken_back(
    staged: MakeStage, place: int, deed: str
) -> None:
    for number in range(1 + 3 * place % STRIDE, 60, STRIDE):
        disturbed(staged, number, "before", lambda day: day.do(deed), DisturbedEditing)


@pytest.mark.parametrize(("place", "fault"), list(enumerate(FAULTS)))
def test_an_undo_whose_start_is_disturbed_is_started_once_by_the_same_request(
    staged: MakeStage, place: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in range(1, 12) if EACH else range(1 + place % 4, 12, 4):
        stage = staged()
        editor = Editor(stage)
        turn = editor.run_editing_turn(["insertHtml"], ["deleteNode"])
        stage.faults.interrupt_at_call(number, act, when=when)
        started: set[str] = set()
        for _ in range(3):
            try:
                started.add(stage.start_undo(turn, idempotency_key="once").id)
            except (*EXPECTED_ERRORS, ProcessDied):
                continue
        stage.faults.clear()
        started.add(stage.start_undo(turn, idempotency_key="once").id)
        assert len(started) == 1
        editor.finish()
        assert editor.page == PAGE
        stage.close()


@pytest.mark.parametrize("number", range(1, 10, 1 if EACH else 2))
def test_two_undos_at_once_are_one(stage: Stage, number: int) -> None:
    """Right before one of its calls, somebody else asks for the same without a key."""
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"], ["deleteNode"])
    winners: list[str] = []
    stage.faults.interrupt_at_call(number, lambda: winners.append(stage.start_undo(turn).id))
    with suppress(Conflict):
        winners.append(stage.start_undo(turn).id)
    stage.faults.clear()
    [winner] = winners
    assert stage.turn.id == winner
    editor.finish()
    assert editor.page == PAGE


@pytest.mark.parametrize("number", range(1, 10, 1 if EACH else 2))
def test_an_undo_and_a_prompt_at_once_are_one_of_them(stage: Stage, number: int) -> None:
    editor = Editor(stage)
    turn = editor.run_editing_turn(["insertHtml"])
    started: list[str] = []
    stage.script_replies("Hello.")
    stage.faults.interrupt_at_call(number, lambda: started.append(stage.start_turn("And now?").id))
    with suppress(Conflict):
        started.append(stage.start_undo(turn).id)
    stage.faults.clear()
    [winner] = started
    assert stage.claim() == winner
    editor.finish()
    assert stage.claim() is None
