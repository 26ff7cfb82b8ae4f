"""Many calls of one round whose approvals end at once fit the limits of a transaction."""

from tests.unit.turns import invariants
from tests.unit.turns.approvals.bakery import NO, Bakery

MANY = 60
ASKED = 25
WEEKS_SECONDS = 9 * 86_400


def ask_for_many(bakery: Bakery) -> None:
    """Ask for more calls than a person is asked about at once: the others are answered without one."""
    bakery.ask_for(*(("bake", number) for number in range(MANY)))
    assert len(bakery.requested) == ASKED


def test_all_approvals_of_a_round_may_expire_at_once(bakery: Bakery) -> None:
    ask_for_many(bakery)
    bakery.stage.clock.advance(WEEKS_SECONDS)
    assert bakery.stage.run_workflow() == "finished"
    assert [event.outcome for event in bakery.decided] == ["expired"] * ASKED
    assert len(bakery.results()) == MANY
    invariants.check_invariants(bakery.stage)


def test_the_last_denial_of_a_round_answers_all_of_its_calls(bakery: Bakery) -> None:
    ask_for_many(bakery)
    for index in range(ASKED):
        bakery.decide(NO, index=index)
    assert bakery.stage.run_workflow() == "finished"
    assert len(bakery.results()) == MANY
    invariants.check_invariants(bakery.stage)


def test_a_cancelled_turn_closes_all_of_its_approvals(bakery: Bakery) -> None:
    ask_for_many(bakery)
    bakery.stage.cancel_turn()
    assert [event.type for event in bakery.stage.terminal_events()] == ["cancelled"]
    invariants.check_invariants(bakery.stage)
