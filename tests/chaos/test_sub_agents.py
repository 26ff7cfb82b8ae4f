"""Sub-agents under faults: starts and ends that are lost, late or twice, and turns that end while they work."""

from collections import Counter
from functools import partial
from typing import Any

import pytest

from fermata.turns.sub_agents import child_start, parent_answer, stop_children, sub_agent_limits
from tests.chaos.scheduler import Stuck
from tests.chaos.simulation_kinds import draw_world, judge_run, run_simulation
from tests.quick_suite_samples import sample_for_quick_suite

SEEDS = range(6_000, 6_024)


run = partial(run_simulation, "sub-agents")


@pytest.mark.parametrize("seed", sample_for_quick_suite(list(SEEDS), every=12))
def test_under_faults_each_call_has_one_sub_agent_and_its_one_answer(seed: int) -> None:
    problems, _ = run(seed, faults=12)
    assert problems == []


@pytest.mark.exhaustive
def test_on_good_days_sub_agents_answer() -> None:
    reports = [run(seed, faults=0) for seed in range(6_100, 6_104)]
    assert [problem for problems, _ in reports for problem in problems] == []


def test_the_seeds_cancel_sub_agents_reach_every_limit_and_ask_people() -> None:
    """The seeds that once showed it come first; others may do it after the product has changed."""
    found: Counter[str] = Counter()
    for seed in (6_406, 6_413, *range(6_400, 6_440)):
        world = draw_world("sub-agents", seed)
        evidence = world.run()
        assert judge_run("sub-agents", world, evidence) == []
        told = " ".join(str(row) for row in evidence.bridges)
        found["a sub-agent was cancelled by itself"] += len(world.cancellers.cancelled)
        found["a sub-agent was asked too deep"] += told.count("Agents may ask each other at most")
        found["the time of a turn was over"] += told.count("did not answer in time")
        found["a person has decided"] += len(world.approvers.sent)
        if len(+found) == 4:
            return
    raise AssertionError(found)


def _ask_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sub_agent_limits, "MAX_DEPTH", 99)


def _add_no_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_answer, "_add_child", lambda state, *_: state)


def _leave_children_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_children, "stop_children", lambda *_: None)
    monkeypatch.setattr(stop_children, "has_lost_parent", lambda *_: False)


def _answer_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the answer in a transaction of its own, which a function that dies never writes."""
    build = parent_answer.ParentAnswer.build_writes

    def write_apart(answer: Any, *given: Any) -> tuple[Any, ...]:
        writes = build(answer, *given)
        answer._resources.tables.write_items(*writes)
        return ()

    monkeypatch.setattr(parent_answer.ParentAnswer, "build_writes", write_apart)


def _start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store that a sub-agent works, without its turn."""
    monkeypatch.setattr(child_start, "_build_start_writes", lambda *_: ())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("mutate", "first_seed"),
    [
        (_add_no_usage, 6_001),
        (_leave_children_alone, 6_002),
        (_answer_after_the_end, 6_003),
        (_start_none, 6_001),
        (_ask_without_end, 6_004),
    ],
)
def test_the_judge_notices_that_a_rule_is_missing(
    mutate: Any, first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seed that once showed it comes first; another one may do it after the product has changed."""
    mutate(monkeypatch)
    assert any(map(_is_noticed, (first_seed, *range(6_000, 6_100))))


def _is_noticed(seed: int) -> bool:
    try:
        return bool(run(seed, faults=12 * (seed % 2))[0])
    except (Stuck, TimeoutError):  # a run that comes to no end is noticed, too
        return True
