"""Decisions that meet another decision, the end of the turn or the end of their time while they are stored."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.turns.approvals import decide_approval
from fermata.turns.approvals.approval_answer import ApprovalAnswer, ApprovalClosed
from fermata.turns.approvals.decision_trail import verify_trail
from fermata.turns.end import end_turn
from tests.unit.turns import invariants
from tests.unit.turns.approvals.bakery import ASKER, HEAD_BAKER, NO, YES, Bakery

DAY = 86_400


@pytest.fixture
def meet(bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return what lets something else happen between the next decision's reads and its write."""
    write = decide_approval.write_round_commit

    def meet(act: Callable[[], object]) -> None:
        waiting = [act]

        def act_and_write(*given: Any) -> Any:
            if waiting:
                waiting.pop()()
            return write(*given)

        monkeypatch.setattr(decide_approval, "write_round_commit", act_and_write)

    return meet


Meet = Callable[[Callable[[], object]], None]


def count_trail(bakery: Bakery) -> int:
    report = verify_trail(bakery.stage.resources, "bakery")
    assert report.problem == ""
    return report.entries


@pytest.mark.parametrize(("first", "second", "baked"), [(NO, YES, []), (YES, NO, [3])])
def test_of_two_decisions_at_once_the_first_counts_and_the_other_is_told(
    bakery: Bakery, meet: Meet, first: ApprovalAnswer, second: ApprovalAnswer, baked: list[int]
) -> None:
    bakery.ask_for(("bake", 3))
    meet(lambda: bakery.decide(first))
    with pytest.raises(ApprovalClosed, match="already been"):
        bakery.decide(second, caller=ASKER)
    assert bakery.stage.run_workflow() == "finished"
    assert (bakery.oven.baked, len(bakery.decided), count_trail(bakery)) == (baked, 1, 1)
    invariants.check_invariants(bakery.stage)


def test_the_same_decision_twice_at_once_is_one(bakery: Bakery, meet: Meet) -> None:
    bakery.ask_for(("bake", 3))
    meet(lambda: bakery.decide(YES))
    assert bakery.decide(YES).state == "approved"
    assert bakery.stage.run_workflow() == "finished"
    assert (bakery.oven.baked, len(bakery.decided), count_trail(bakery)) == ([3], 1, 1)


def test_two_calls_of_a_round_that_are_decided_at_once_are_both_decided(bakery: Bakery, meet: Meet) -> None:
    bakery.ask_for(("bake", 1), ("bake", 2))
    meet(lambda: bakery.decide(NO, 1))
    assert bakery.decide(YES, 0).state == "approved"
    assert bakery.stage.run_workflow() == "finished"
    assert (bakery.oven.baked, count_trail(bakery)) == ([1], 2)
    invariants.check_invariants(bakery.stage)


def test_a_decision_whose_turn_is_cancelled_meanwhile_is_refused_and_runs_nothing(bakery: Bakery, meet: Meet) -> None:
    bakery.ask_for(("bake", 3))
    meet(bakery.stage.cancel_turn)
    with pytest.raises(ApprovalClosed, match="has ended"):
        bakery.decide(YES)
    assert (bakery.oven.baked, bakery.decided) == ([], [])
    assert bakery.stage.terminal_events()[0].type == "cancelled"
    invariants.check_invariants(bakery.stage)


def test_a_turn_that_is_decided_about_while_it_is_cancelled_ends_once_and_runs_nothing(
    bakery: Bakery, monkeypatch: pytest.MonkeyPatch
) -> None:
    bakery.ask_for(("bake", 3))
    load, decisions = end_turn.load_pause, [lambda: bakery.decide(YES, caller=HEAD_BAKER)]

    def load_and_decide(*given: Any) -> Any:
        pause = load(*given)
        if decisions:
            decisions.pop()()
        return pause

    monkeypatch.setattr(end_turn, "load_pause", load_and_decide)
    bakery.stage.cancel_turn()
    assert bakery.stage.run_workflow() == "finished"
    assert (bakery.oven.baked, len(bakery.decided)) == ([], 1)
    assert [event.type for event in bakery.stage.terminal_events()] == ["cancelled"]
    invariants.check_invariants(bakery.stage)


def test_a_decision_that_is_stored_after_the_call_has_expired_is_refused(bakery: Bakery, meet: Meet) -> None:
    bakery.ask_for(("bake", 3))

    def expire() -> None:
        bakery.stage.pass_time(8 * DAY)
        bakery.stage.advance_turn(holds=True)
        bakery.stage.run_workflow()

    meet(expire)
    with pytest.raises(ApprovalClosed, match="in time"):
        bakery.decide(YES)
    assert (bakery.oven.baked, [event.outcome for event in bakery.decided]) == ([], ["expired"])
    invariants.check_invariants(bakery.stage)
