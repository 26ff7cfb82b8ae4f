"""One ordinary turn with everything in it, disturbed once, at any of the calls it makes to AWS.

A few of them in the daily run, other ones for each disturbance; `BAD_DAYS=1 pytest …` tries each single one.
"""

import os
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.faults import ProcessDied
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.disturbed_turn import DisturbedTurn

STRIDE = 1 if "BAD_DAYS" in os.environ else 25


def dies() -> NoReturn:
    raise ProcessDied


def is_lost() -> NoReturn:
    raise ConnectionClosedError(endpoint_url="dynamodb")


def conflicts() -> NoReturn:
    raise ClientError({"Error": {"Code": "TransactionConflictException", "Message": "no"}}, "TransactWriteItems")


def is_throttled() -> NoReturn:
    raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "TransactWriteItems")


FAULTS: dict[str, tuple[str, Callable[[], NoReturn]]] = {
    "its caller dies before it": ("before", dies),
    "its caller dies after it": ("after", dies),
    "its answer is lost": ("after", is_lost),
    "it never arrives": ("before", is_lost),
    "it meets another transaction": ("before", conflicts),
    "it is throttled": ("before", is_throttled),
}
DEEDS = (
    "answer",
    "other answer",
    "repeat",
    "cancel",
    "sweep",
    "zombie",
    "twice",
    "ring and go on",
    "fail and go on",
    "next prompt",
    "long time",
)


def ordinary_day(make: MakeStage, unanswered: str) -> DisturbedTurn:
    day = DisturbedTurn(make(unanswered_calls=unanswered))
    day.script("calls", ["bake", "deleteNode", "count"])
    day.script("breaks off", "")
    day.script("calls", ["ask_the_baker", "no_such_tool", "bake", "deleteNode"])
    day.script("pause", "")
    return day


@pytest.fixture(scope="module")
def many() -> list[int]:
    """How many calls the turn makes when nothing happens to it; found out by the first test."""
    return []


def numbers(many: list[int], make: MakeStage, place: int) -> range:
    """The calls that this disturbance is tried at."""
    if not many:
        day = ordinary_day(make, "fail")
        before = day.stage.faults.call_count
        day.take_its_course()
        day.stage.close()
        many.append(day.stage.faults.call_count - before)
    return range(1 + 3 * place % STRIDE, many[0] + 1, STRIDE)


def disturbed(
    make: MakeStage, number: int, when: str, act: Callable[[DisturbedTurn], object], unanswered: str = "fail"
) -> None:
    live_through(ordinary_day(make, unanswered), number, when, act)


def live_through(day: Any, number: int, when: str, act: Callable[[Any], object]) -> None:
    """Whatever happens at that call, the day ends as it should: `day.check()` asserts it."""
    day.stage.faults.interrupt_at_call(number, lambda: act(day), when=when)
    try:
        day.take_its_course()
        day.come_to_an_end()
        day.check()
    except BaseException as problem:
        problem.add_note(f"disturbed at call {number}")
        raise
    finally:
        day.stage.close()


@pytest.mark.parametrize(("place", "fault"), list(enumerate(FAULTS)))
def test_a_turn_survives_whatever_happens_to_one_call(
    staged: MakeStage, many: list[int], place: int, fault: str
) -> None:
    when, act = FAULTS[fault]
    for number in numbers(many, staged, place):
        disturbed(staged, number, when, lambda _day: act())


@pytest.mark.parametrize(("place", "deed"), list(enumerate(DEEDS)))
def test_a_turn_survives_whatever_others_do_before_one_call(
    staged: MakeStage, many: list[int], place: int, deed: str
) -> None:
    for number in numbers(many, staged, place):
        unanswered = ("fail", "tell_model")[number % 2]
        disturbed(staged, number, "before", lambda day: day.do(deed), unanswered)
