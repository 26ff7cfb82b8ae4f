"""Remote tools under faults: results that come later, early, twice, and to turns that have ended."""

from functools import partial
from typing import Any

import pytest

from fermata.turns import call_transitions
from fermata.turns.answer import submit_remote_result
from tests.chaos.fault_rules import FaultRule
from tests.chaos.judge import judge
from tests.chaos.mutations import replace
from tests.chaos.simulation_kinds import run_simulation
from tests.chaos.world import World
from tests.quick_suite_samples import sample_for_quick_suite

SEEDS = range(4_000, 4_026)


run = partial(run_simulation, "remote-tools")


@pytest.mark.parametrize("seed", sample_for_quick_suite(list(SEEDS), every=30))
def test_under_faults_a_result_that_was_accepted_is_in_the_conversation_once(seed: int) -> None:
    problems, _ = run(seed, faults=12)
    assert problems == []


@pytest.mark.exhaustive
def test_on_good_days_results_come_at_once_and_later() -> None:
    reports = [run(seed, faults=0) for seed in range(4_100, 4_106)]
    assert [problem for problems, _ in reports for problem in problems] == []
    results = {(seed, token) for seed, (_, world) in enumerate(reports) for token in world.tool_server.tokens.values()}
    posted = {(seed, result.token) for seed, (_, world) in enumerate(reports) for result in world.tool_server.posted}
    assert set() < results & posted < results


def _acknowledge_without_storing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit_remote_result, "store_pause_version", lambda *_: None)


def _take_every_result(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = submit_remote_result._accept

    def accept_again(resources: Any, pause: Any, call: Any, *rest: Any) -> bool:
        return accept(resources, pause, call.model_copy(update={"answer_hash": rest[-1].result_hash}), *rest)

    def accept_any(resources: Any, pause: Any, call: Any, *rest: Any) -> bool:
        return (accept_again if call.answer_hash else accept)(resources, pause, call, *rest)

    monkeypatch.setattr(submit_remote_result, "_accept", accept_any)


def _forget_the_hash_of_an_early_result(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = call_transitions._answer_call

    def answer_anew(transition: Any, call: Any, output: Any, answer_hash: str, *state: Any) -> Any:
        return answer(transition, call, output, "" if call.runner == "settled" else answer_hash, *state)

    monkeypatch.setattr(call_transitions, "_answer_call", answer_anew)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("mutate", "first_seed"),
    [
        (_acknowledge_without_storing, 4_004),
        (_take_every_result, 4_015),
        (_forget_the_hash_of_an_early_result, 4_009),
    ],
)
def test_the_judge_notices_that_a_rule_is_missing(
    mutate: Any, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed that once showed it comes first; another one may do it after the product has changed."""
    mutate(monkeypatch)
    assert any(map(is_noticed, (first_seed, *SEEDS)))


def is_noticed(seed: int) -> bool:
    """A result that is lost lets its turn wait for a day, longer than a simulation."""
    try:
        return bool(run(seed, faults=12)[0])
    except TimeoutError:
        return True


CANCELLER_DIES = FaultRule("kill before", ("stepfunctions.SendTaskSuccess",))
"""Whoever has ended a turn dies before its execution, which waits for a tool's result for a day, is told of it."""
SEED_OF_A_HELD_TURN = 4_001


def run_with_dying_cancellers(seed: int) -> list[str]:
    world = World(seed, fault_rate=1.0, fault_budget=2, rules=(CANCELLER_DIES,), focus="api", has_remote_tool=True)
    problems = judge(world.run())
    assert world.faults.injected
    return problems


def test_a_held_execution_does_not_outlive_its_turn() -> None:
    assert run_with_dying_cancellers(SEED_OF_A_HELD_TURN) == []


@pytest.mark.exhaustive
def test_a_held_execution_outlives_its_turn_where_the_sweep_looks_at_running_turns_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace("fermata.turns.recover.recover_turn._finish_ended_turn", lambda *_: None)(monkeypatch)
    with pytest.raises(TimeoutError):
        run_with_dying_cancellers(SEED_OF_A_HELD_TURN)
