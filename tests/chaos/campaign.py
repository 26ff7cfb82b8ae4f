"""Run many simulations, count the faults that were injected, and report every seed that broke a promise."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.chaos.judge import judge
from tests.chaos.world import World

FAULT_RATES = (0.01, 0.03, 0.08)
FAULT_BUDGETS = (2, 6, 15)
"""Of a seed: how likely a call is disturbed, and how many calls at most. Few faults find what many hide."""


@dataclass
class RunReport:
    seed: int
    problems: list[str]
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    turns: int = 0
    provider_requests: int = 0

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


def make_world(seed: int) -> World:
    return World(seed, fault_rate=FAULT_RATES[seed % 3], fault_budget=FAULT_BUDGETS[seed // 3 % 3])


def run_seed(seed: int) -> RunReport:
    world = make_world(seed)
    try:
        world.run()
    except (AssertionError, TimeoutError) as stuck:
        problems = [f"the simulation did not come to an end: {type(stuck).__name__}: {stuck}"]
    else:
        problems = judge(world)
    faults = world.faults.counts + Counter(
        {(kind, "provider"): count for kind, count in world.provider.faults_injected.items()}
    )
    return RunReport(seed, problems, faults, len(world.turns), len(world.provider.served))


def run_campaign(seeds: Iterable[int], *, max_faults: int, max_seconds: float, processes: int) -> Iterator[RunReport]:
    """Yield a report for each seed until so many faults were injected or the time is over."""
    deadline, faults = time.monotonic() + max_seconds, 0
    with get_context("fork").Pool(processes) as pool:
        for report in pool.imap_unordered(run_seed, seeds):
            faults += report.fault_count
            yield report
            if faults >= max_faults or time.monotonic() > deadline:
                return
