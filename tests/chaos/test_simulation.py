"""Whole turns on simulated AWS: every promise is kept under the faults of 300 seeds, and a seed repeats exactly."""

import pytest

from fermata.drivers.registry import PROVIDER_MODULES
from tests.chaos.campaign import FIXED_SEEDS, make_world, run_seed
from tests.chaos.judge import judge
from tests.chaos.provider_responses import PROTOCOLS
from tests.chaos.world import World
from tests.quick_suite_samples import sample_for_quick_suite

GROUPS = 50
EXPECTED_ERRORS = {"no_answer", "budget_exhausted", "superseded"}
"""Of users who do not answer in time, set a budget too small, or prompt again before the answer is there."""


@pytest.mark.parametrize("group", sample_for_quick_suite(range(GROUPS), every=50))
def test_under_faults_every_promise_is_kept(group: int) -> None:
    reports = [run_seed(seed) for seed in FIXED_SEEDS if seed % GROUPS == group]
    assert {f"make chaos SEED={report.seed}": report.problems for report in reports if report.problems} == {}
    assert sum(report.fault_count for report in reports) > len(reports)


@pytest.mark.parametrize("seed", sample_for_quick_suite(range(15), every=15))
def test_on_a_good_day_every_promise_is_kept_and_nothing_fails(seed: int) -> None:
    evidence = World(seed).run()
    assert judge(evidence) == []
    ends = [turn.received[-1][1] for turn in evidence.turns if turn.bridge]
    assert {end.get("code") for end in ends if end["type"] == "error"} <= EXPECTED_ERRORS
    assert any(end["type"] == "done" for end in ends)


def test_every_provider_is_simulated() -> None:
    assert set(PROTOCOLS) == set(PROVIDER_MODULES)


def test_the_judge_notices_a_request_after_the_end_of_its_turn() -> None:
    evidence = World(0).run()
    evidence.served[-1].sent_at += 600
    assert [problem for problem in judge(evidence) if "after the end of its turn" in problem]


def test_the_same_seed_repeats_switches_faults_and_events() -> None:
    first, second = make_world(7), make_world(7)
    assert first.run().turns == second.run().turns
    assert first.scheduler.switches == second.scheduler.switches
    assert first.faults.counts == second.faults.counts
