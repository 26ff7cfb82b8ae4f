"""Disturb an undo once, at each of the AWS calls it makes, and check that it took back what it reports.

By default every disturbance is tried at some of the calls, each at others; `FAULT_AT_EVERY_CALL=1 pytest …` tries all.
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
from tests.unit.turns.test_fault_at_every_call import CLIENT_ACTIONS, FAULTS, run_disturbed

pytestmark = pytest.mark.exhaustive

EACH = "FAULT_AT_EVERY_CALL" in os.environ
STRIDE = 1 if EACH else 20
UNDO_ACTIONS = (*CLIENT_ACTIONS, "undo again", "repeat the undo")


@pytest.fixture(scope="module")
def call_counts() -> list[int]:
    """The number of AWS calls of an undisturbed undo, once the first test has counted it."""
    return []


def select_calls(call_counts: list[int], make: MakeStage, index: int) -> range:
    if not call_counts:
        run = DisturbedUndo(make())
        before = run.stage.faults.call_count
        run.run_to_end()
        run.stage.close()
        call_counts.append(run.stage.faults.call_count - before)
    return range(1 + 3 * index % STRIDE, call_counts[0] + 1, STRIDE)


def disturb(
    make: MakeStage,
    number: int,
    when: str,
    act: Callable[[DisturbedUndo], object],
    kind: type[DisturbedUndo] = DisturbedUndo,
) -> None:
    run_disturbed(kind(make()), number, when, act)


@pytest.mark.parametrize(("index", "fault"), list(enumerate(FAULTS)))
def test_an_undo_survives_any_fault_of_one_call(
    staged: MakeStage, call_counts: list[int], index: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in select_calls(call_counts, staged, index):
        disturb(staged, number, when, lambda _run: act())


@pytest.mark.parametrize(("index", "action"), list(enumerate(UNDO_ACTIONS)))
def test_an_undo_survives_any_client_action_before_one_call(
    staged: MakeStage, call_counts: list[int], index: int, action: str
) -> None:
    for number in select_calls(call_counts, staged, index):
        disturb(staged, number, "before", lambda run: run.do(action))


@pytest.mark.parametrize(("index", "fault"), list(enumerate(FAULTS)))
def test_after_any_fault_an_edit_is_in_the_journal_once_and_can_be_undone(
    staged: MakeStage, index: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in range(1 + 3 * index % STRIDE, 60, STRIDE):
        disturb(staged, number, when, lambda _run: act(), DisturbedEditing)


@pytest.mark.parametrize(("index", "action"), list(enumerate(UNDO_ACTIONS[:-2])))
def test_after_any_client_action_an_edit_is_in_the_journal_once_and_can_be_undone(
    staged: MakeStage, index: int, action: str
) -> None:
    for number in range(1 + 3 * index % STRIDE, 60, STRIDE):
        disturb(staged, number, "before", lambda run: run.do(action), DisturbedEditing)


@pytest.mark.parametrize(("index", "fault"), list(enumerate(FAULTS)))
def test_an_undo_whose_start_is_disturbed_is_started_once_by_the_same_request(
    staged: MakeStage, index: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in range(1, 12) if EACH else range(1 + index % 4, 12, 4):
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
    """Right before one of its calls, another client starts the same undo without a key."""
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
