"""Disturb a turn with all kinds of calls once, at each of the AWS calls it makes.

By default every disturbance is tried at some of the calls, each at others; `FAULT_AT_EVERY_CALL=1 pytest …` tries all.
"""

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.faults import ProcessDied
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.disturbed_turn import DisturbedTurn

pytestmark = pytest.mark.exhaustive

STRIDE = 1 if "FAULT_AT_EVERY_CALL" in os.environ else 25


def die() -> NoReturn:
    raise ProcessDied


def lose() -> NoReturn:
    raise ConnectionClosedError(endpoint_url="dynamodb")


def conflict() -> NoReturn:
    raise ClientError({"Error": {"Code": "TransactionConflictException", "Message": "no"}}, "TransactWriteItems")


def throttle() -> NoReturn:
    raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "TransactWriteItems")


FAULTS: dict[str, tuple[str, Callable[[], NoReturn]]] = {
    "the process dies before it": ("before", die),
    "the process dies after it": ("after", die),
    "its response is lost": ("after", lose),
    "it never arrives": ("before", lose),
    "it meets another transaction": ("before", conflict),
    "it is throttled": ("before", throttle),
}
CLIENT_ACTIONS = (
    "answer",
    "answer differently",
    "repeat answers",
    "cancel",
    "recover silent turns",
    "deliver the first task again",
    "deliver the task again",
    "time out and continue",
    "fail and continue",
    "prompt again",
    "pass a day",
)


def make_disturbed_turn(make: MakeStage, unanswered: str) -> DisturbedTurn:
    run = DisturbedTurn(make(unanswered_calls=unanswered))
    run.script("calls", ["bake", "deleteNode", "count"])
    run.script("breaks off", "")
    run.script("calls", ["ask_the_baker", "no_such_tool", "bake", "deleteNode"])
    run.script("pause", "")
    return run


@pytest.fixture(scope="module")
def call_counts() -> list[int]:
    """The number of AWS calls of an undisturbed turn, once the first test has counted it."""
    return []


def select_calls(call_counts: list[int], make: MakeStage, index: int) -> range:
    """Return the numbers of the calls at which this disturbance is tried."""
    if not call_counts:
        run = make_disturbed_turn(make, "fail")
        before = run.stage.faults.call_count
        run.run_to_end()
        run.stage.close()
        call_counts.append(run.stage.faults.call_count - before)
    return range(1 + 3 * index % STRIDE, call_counts[0] + 1, STRIDE)


def disturb(
    make: MakeStage, number: int, when: str, act: Callable[[DisturbedTurn], object], unanswered: str = "fail"
) -> None:
    run_disturbed(make_disturbed_turn(make, unanswered), number, when, act)


def run_disturbed(run: Any, number: int, when: str, act: Callable[[Any], object]) -> None:
    """Act at one call, let the turn end, and check the invariants."""
    run.stage.faults.interrupt_at_call(number, lambda: act(run), when=when)
    try:
        run.run_to_end()
        run.finish_undisturbed()
        run.check()
    except BaseException as error:
        error.add_note(f"disturbed at call {number}")
        raise
    finally:
        run.stage.close()


@pytest.mark.parametrize(("index", "fault"), list(enumerate(FAULTS)))
def test_a_turn_survives_any_fault_of_one_call(
    staged: MakeStage, call_counts: list[int], index: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in select_calls(call_counts, staged, index):
        disturb(staged, number, when, lambda _run: act())


@pytest.mark.parametrize(("index", "action"), list(enumerate(CLIENT_ACTIONS)))
def test_a_turn_survives_any_client_action_before_one_call(
    staged: MakeStage, call_counts: list[int], index: int, action: str
) -> None:
    for number in select_calls(call_counts, staged, index):
        unanswered = ("fail", "tell_model")[number % 2]
        disturb(staged, number, "before", lambda run: run.do(action), unanswered)
