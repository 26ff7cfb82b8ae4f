"""Run many simulations, count the faults that were injected, and report every seed that broke a promise."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

from tests.chaos.fault_rules import RULES
from tests.chaos.habits import RARE_DAY_EVERY, RARE_DAYS
from tests.chaos.judge import judge, judge_after_expiry
from tests.chaos.simulation_kinds import draw_world, judge_run
from tests.chaos.world import World

FIXED_SEEDS = range(300)
"""Those that `make test` runs."""
FAULT_RATES = (0.01, 0.03, 0.08, 0.2)
FAULT_BUDGETS = (2, 6, 15, 25)
GOOD_DAY_RATE = 0.07
FOCUS_RATE = 0.3
FOCI = ("stream", "round", "round", "tool_result", "reader", "hold", "rollup", "rebuild", "sweep", "api")
"""Functions that a focused seed disturbs alone, and more than others."""
RIVALS_RATE = 0.5
"""How many of the seeds that disturb the round alone let two of its invocations write at the same time."""
RIVALS_FAULTS = ("invoked twice", "freeze", "freeze before", "freeze after")
FOCUSED_RATES = (0.15, 0.5)
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
    """Draw rate, budget and rules from the seed. With half of the rules, the others come to strike more often."""
    if seed % RARE_DAY_EVERY == RARE_DAY_EVERY - 1:
        day = RARE_DAYS[seed // RARE_DAY_EVERY % len(RARE_DAYS)]
        return World(seed, fault_rate=day.rate, fault_budget=day.budget, rules=day.rules, focus=day.focus, day=day)
    draw = random.Random(f"plan {seed}")
    rules = tuple(rule for rule in RULES if draw.random() < 0.5) or RULES
    rules = RULES if draw.random() < 0.3 else rules
    rate, budget = draw.choice(FAULT_RATES), draw.choice(FAULT_BUDGETS)
    if draw.random() < GOOD_DAY_RATE:
        return World(seed)
    if draw.random() < FOCUS_RATE:
        rate, focus = draw.choice(FOCUSED_RATES), draw.choice(FOCI)
        if focus == "round" and draw.random() < RIVALS_RATE:
            rules = tuple(rule for rule in RULES if rule.kind in RIVALS_FAULTS)
        return World(seed, fault_rate=rate, fault_budget=budget, rules=rules, focus=focus)
    return World(seed, fault_rate=rate, fault_budget=budget, rules=rules)


def run_seed(seed: int, kind: str = "") -> RunReport:
    """Run a seed of a kind of `simulation_kinds`; without one, a usual seed."""
    world = draw_world(kind, seed) if kind else make_world(seed)
    try:
        evidence = world.run()
    except Exception as stuck:  # noqa: BLE001 (whatever it is, the seed that repeats it is reported)
        evidence = world.evidence
        problems = [f"the simulation did not come to an end: {type(stuck).__name__}: {stuck}"]
    else:
        problems = judge_run(kind, world, evidence) if kind else judge(evidence)
        problems = problems or judge_after_expiry(world.much_later)
    return RunReport(seed, problems, world.faults.counts, len(evidence.turns), len(evidence.served))


def run_campaign(
    seeds: Iterable[int], *, max_faults: int, max_seconds: float, processes: int, kind: str = ""
) -> Iterator[RunReport]:
    """Yield a report for each seed until so many faults were injected or the time is over."""
    deadline, faults = time.monotonic() + max_seconds, 0
    with get_context("fork").Pool(processes) as pool:
        for report in pool.imap_unordered(partial(run_seed, kind=kind), seeds):
            faults += report.fault_count
            yield report
            if faults >= max_faults or time.monotonic() > deadline:
                return
