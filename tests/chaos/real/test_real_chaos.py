"""Turns on the local cloud keep every promise while its calls and processes are disturbed."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.real.fault_plan import ALL_FAULTS, FaultPlan, PlannedFault, plan_faults
from tests.chaos.real.real_cloud import open_real_cloud
from tests.chaos.real.real_seed import RealReport, RealSeed

SEED = 2
TRANSACTION, PUT, READ = "dynamodb.TransactWriteItems", "dynamodb.PutItem", "dynamodb.GetItem"
PLANS = (
    [
        PlannedFault("throttle", TRANSACTION, 1, repetitions=2),
        PlannedFault("conflict", TRANSACTION, 4),
        PlannedFault("late copy", PUT, 1, seconds=3),
        PlannedFault("freeze after", PUT, 2, seconds=8),
        PlannedFault("request lost", PUT, 3),
        PlannedFault("error before it ran", READ, 3),
    ],
    [
        PlannedFault("error though it ran", TRANSACTION, 1),
        PlannedFault("late request", TRANSACTION, 2, seconds=3),
        PlannedFault("delay", TRANSACTION, 3, seconds=0.5),
        PlannedFault("kill before", TRANSACTION, 4),
        PlannedFault("freeze before", PUT, 1, seconds=2),
        PlannedFault("response lost", PUT, 2),
    ],
    [
        PlannedFault("late response", TRANSACTION, 1, seconds=11),
        PlannedFault("emulator killed", TRANSACTION, 3),
        PlannedFault("execution stopped", PUT, 2),
        PlannedFault("kill after", PUT, 3),
    ],
)
"""Every two turns make that many calls, whatever happens to them."""


@pytest.mark.cloud
def test_promises_are_kept_on_the_local_cloud_under_a_fault_of_each_kind(tmp_path: Path) -> None:
    async def run() -> RealReport:
        async with open_real_cloud(tmp_path) as real:
            return await RealSeed(real, SEED, plans=[FaultPlan(list(planned)) for planned in PLANS]).run()

    report = asyncio.run(run())
    assert report.problems == [], "\n".join(report.problems)
    kinds = Counter(kind for kind, call in report.faults.elements() if call != "provider")
    assert kinds.keys() == set(ALL_FAULTS)


def test_a_seed_plans_the_same_faults_again() -> None:
    assert plan_faults(7, 1, 10).planned == plan_faults(7, 1, 10).planned
    assert plan_faults(7, 1, 10).planned != plan_faults(8, 1, 10).planned


def test_a_fault_disturbs_the_calls_that_it_is_planned_for() -> None:
    plan = FaultPlan([PlannedFault("throttle", PUT, 2, repetitions=2)], is_active=True)
    taken = [plan.take_fault(call) for call in (PUT, TRANSACTION, PUT, PUT, PUT)]
    assert [fault is not None for fault in taken] == [False, False, True, True, False]
    assert plan.occurred == {("throttle", PUT): 2}
