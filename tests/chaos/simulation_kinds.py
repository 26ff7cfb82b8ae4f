"""Kinds of simulations in which one part of the service has more to do, each with a judge of its own.

problems, world = run_simulation("remote-tools", seed=4_003, faults=12)
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from tests.chaos.evidence import Evidence
from tests.chaos.fault_rules import RULES, TORN_BATCH
from tests.chaos.judge import judge
from tests.chaos.judge.approvals import judge_approvals
from tests.chaos.judge.queued_prompts import judge_queued_prompts
from tests.chaos.judge.remote_results import judge_remote_results
from tests.chaos.judge.sub_agents import judge_sub_agents
from tests.chaos.world import World

APPROVAL_POLICIES = (
    ApprovalPolicy(rules=(PolicyRule(effect="ask"),), wait_seconds=60),
    ApprovalPolicy(rules=(PolicyRule(effect="ask", tools=("insertHtml", "deleteNode")),), wait_seconds=90),
    ApprovalPolicy(new_tools=True, turn_cost_usd=Decimal("0.0001"), wait_seconds=120),
)
USUAL_FAULT_RATE = 0.03
FAULT_RATES = (0.01, USUAL_FAULT_RATE, USUAL_FAULT_RATE, 0.08)
FAULT_BUDGETS = (6, 12, 12, 25)


@dataclass(frozen=True)
class SimulationKind:
    """What is simulated.

    Attributes:
        make_world: Makes it of a seed, a fault rate and a fault budget.
        judge: Yields the promises that only this kind can show as broken.
    """

    make_world: Callable[[int, float, int], World]
    judge: Callable[[World, Evidence], Iterable[str]]


def make_world_with_approvers(seed: int, rate: float, budget: int) -> World:
    policy = APPROVAL_POLICIES[seed % len(APPROVAL_POLICIES)]
    return World(seed, fault_rate=rate, fault_budget=budget, policy=policy)


def make_world_with_sub_agents(seed: int, rate: float, budget: int) -> World:
    """In one seed of five, people decide about calls, those that ask other agents included."""
    policy = APPROVAL_POLICIES[seed // 5 % len(APPROVAL_POLICIES)] if seed % 5 == 1 else None
    return World(seed, fault_rate=rate, fault_budget=budget, policy=policy, has_sub_agents=True)


KINDS = {
    "approvals": SimulationKind(
        make_world_with_approvers, lambda world, evidence: judge_approvals(evidence, world.approvers.sent)
    ),
    "queued-prompts": SimulationKind(
        lambda seed, rate, budget: World(
            seed, fault_rate=rate, fault_budget=budget, rules=(*RULES, TORN_BATCH), has_queuers=True
        ),
        lambda world, evidence: judge_queued_prompts(evidence, world.queuers.sent, world.queuers.interrupters),
    ),
    "remote-tools": SimulationKind(
        lambda seed, rate, budget: World(seed, fault_rate=rate, fault_budget=budget, has_remote_tool=True),
        lambda world, evidence: judge_remote_results(evidence, world.tool_server.posted),
    ),
    "sub-agents": SimulationKind(
        make_world_with_sub_agents,
        lambda world, evidence: [*judge_sub_agents(evidence), *judge_approvals(evidence, world.approvers.sent)],
    ),
}


def run_simulation(kind: str, seed: int, *, faults: int) -> tuple[list[str], World]:
    """Run a seed under at most so many faults, and return the broken promises and what was simulated."""
    world = KINDS[kind].make_world(seed, USUAL_FAULT_RATE if faults else 0.0, faults)
    return judge_run(kind, world, world.run()), world


def judge_run(kind: str, world: World, evidence: Evidence) -> list[str]:
    return [*KINDS[kind].judge(world, evidence), *judge(evidence)]


def draw_world(kind: str, seed: int) -> World:
    """Draw the fault rate and the fault budget from the seed."""
    draw = random.Random(f"plan {seed}")
    return KINDS[kind].make_world(seed, draw.choice(FAULT_RATES), draw.choice(FAULT_BUDGETS))
