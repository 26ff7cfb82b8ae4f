"""Approvals under faults: decided twice at once, while a turn is cancelled, too late, and by functions that die."""

from collections import Counter

import pytest

from fermata.turns.approvals import decision_commit, settle_call
from tests.chaos.simulation_kinds import APPROVAL_POLICIES, run_simulation
from tests.chaos.world import World
from tests.quick_suite_samples import sample_for_quick_suite


def run(seed: int, *, faults: int) -> tuple[list[str], int]:
    problems, world = run_simulation("approvals", seed, faults=faults)
    return problems, sum(decision.status == 200 for decision in world.approvers.sent)


@pytest.mark.parametrize("seed", sample_for_quick_suite(list(range(1_000, 1_020)), every=60))
def test_under_faults_every_call_is_decided_once_and_runs_only_if_approved(seed: int) -> None:
    problems, _ = run(seed, faults=12)
    assert problems == []


@pytest.mark.exhaustive
def test_on_good_days_decisions_count() -> None:
    reports = [run(seed, faults=0) for seed in range(1_100, 1_108)]
    assert [problem for problems, _ in reports for problem in problems] == []
    assert sum(accepted for _, accepted in reports) > len(reports)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("bug", "complaint"),
    [
        ("a denial lets the call run", "was requested without an approval"),
        ("the trail is not written", "the trail and the logs differ"),
    ],
)
def test_the_judge_notices_a_broken_promise(bug: str, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bug == "a denial lets the call run":
        # A call that keeps its approval is caught by the comparison before it is requested.
        freed = {"state": "waiting", "approval": None}
        monkeypatch.setattr(settle_call, "_deny", lambda call, _output: call.model_copy(update=freed))
    else:
        monkeypatch.setattr(decision_commit, "build_trail_writes", lambda *_: ())
    problems = (problem for seed in range(1_000, 1_012) for problem in run(seed, faults=0)[0])
    assert any(complaint in problem for problem in problems)


@pytest.mark.exhaustive
def test_the_seeds_decide_at_the_same_time_and_too_late() -> None:
    statuses: Counter[int] = Counter()
    outcomes: Counter[str] = Counter()
    endings = {"approved", "denied", "expired", "cancelled"}
    for seed in range(1_000, 1_024):
        world = World(seed, fault_rate=0.03, fault_budget=12, policy=APPROVAL_POLICIES[0])
        evidence = world.run()
        statuses.update(decision.status for decision in world.approvers.sent)
        outcomes.update(str(row["state"]) for row in evidence.bridges if row["sk"].startswith("a#"))
        if statuses[409] and endings <= outcomes.keys():
            break
    assert statuses[409]
    assert endings <= outcomes.keys()
