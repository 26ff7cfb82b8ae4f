"""Kinds of simulations in which one part of the service has more to do, each with a judge of its own.

problems, world = run_simulation("remote-tools", seed=4_003, faults=12)
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from fermata.agents.approval_policy import ApprovalPolicy, PolicyRule
from tests.chaos.chain_users import ChainUsers
from tests.chaos.evidence import Evidence
from tests.chaos.fault_rules import RULES, TORN_BATCH, WEBHOOK_RULES, FaultRule
from tests.chaos.generate_users import GenerateUsers
from tests.chaos.habits import GOOD_DAY_HABITS, USUAL_HABITS, DayKind
from tests.chaos.hooked_agents import HookedAgents
from tests.chaos.judge import judge
from tests.chaos.judge.agent_hooks import judge_agent_hooks
from tests.chaos.judge.approvals import judge_approvals
from tests.chaos.judge.held_plans import judge_held_plans
from tests.chaos.judge.plan_chains import judge_plan_chains
from tests.chaos.judge.plan_uses import judge_plan_uses
from tests.chaos.judge.queued_prompts import judge_queued_prompts
from tests.chaos.judge.remote_results import judge_remote_results
from tests.chaos.judge.requests_without_turns import judge_requests_without_turns
from tests.chaos.judge.sub_agents import judge_sub_agents
from tests.chaos.judge.tool_sources import judge_tool_sources
from tests.chaos.judge.webhooks import judge_webhooks
from tests.chaos.planner_users import PlannerUsers
from tests.chaos.studio_users import StudioUsers
from tests.chaos.tool_source_users import ToolSourceUsers
from tests.chaos.webhook_receivers import WebhookReceivers
from tests.chaos.world import World
from tests.chaos.world_extension import WorldExtension

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


DEATHS_OF_DELIVERIES = (FaultRule("kill after", ("dynamodb.PutItem", "dynamodb.DeleteItem")),)
DEATHS_AT_THE_QUEUE = (FaultRule("kill before", ("sqs",)), FaultRule("delivered twice", ("queue",)))


def make_world_with_webhooks(seed: int, rate: float, budget: int) -> World:
    """In one seed of four, people and a receiver decide about calls. In two of five, functions die around the queue."""
    policy = APPROVAL_POLICIES[seed // 4 % len(APPROVAL_POLICIES)] if seed % 4 == 2 else None
    rules, focus = (*RULES, *WEBHOOK_RULES), ""
    if seed % 5 == 1:
        rules, focus, rate = DEATHS_OF_DELIVERIES, "deliver", 10 * rate
    elif seed % 5 == 3:
        rules = DEATHS_AT_THE_QUEUE
    return World(
        seed,
        fault_rate=rate,
        fault_budget=budget,
        rules=rules,
        focus=focus,
        policy=policy,
        turns=2,
        extend=WebhookReceivers,
    )


LATE_READS = FaultRule("response late", ("dynamodb.GetItem", "dynamodb.Query"))
LATE_BATCHES = FaultRule("response late", ("dynamodb.BatchGetItem",))
"""What is true when it is read, and not any more when it is used."""


def make_world_with_planners(seed: int, rate: float, budget: int) -> World:
    """In one seed of three, only what is read is late."""
    return _make_calm_world(seed, rate, budget, PlannerUsers, LATE_READS)


def make_world_with_chains(seed: int, rate: float, budget: int) -> World:
    """In one seed of three, only what is read is late."""
    return _make_calm_world(seed, rate, budget, ChainUsers, LATE_READS)


DEATHS_BETWEEN_ENDPOINTS = (FaultRule("kill", ("point.endpoint",)), FaultRule("kill before", ("sqs",)))


def make_world_with_hooks(seed: int, rate: float, budget: int) -> World:
    """In one seed of four nothing is disturbed. In another one, functions die while they wait for an endpoint."""
    if seed % 4 == 0:
        rate, budget = 0.0, 0
    is_deadly = seed % 4 == 1 and budget
    return World(
        seed,
        fault_rate=(20 if is_deadly else 1) * rate,
        fault_budget=budget,
        turns=1,
        rules=DEATHS_BETWEEN_ENDPOINTS if is_deadly else (*RULES, *WEBHOOK_RULES),
        day=DayKind(habits=replace(USUAL_HABITS if budget else GOOD_DAY_HABITS, rush=0.0)),
        extend=HookedAgents,
    )


def make_world_with_studio(seed: int, rate: float, budget: int) -> World:
    """In one seed of three, only what is read together is late."""
    return _make_calm_world(seed, rate, budget, StudioUsers, LATE_BATCHES)


DEATHS_AT_A_SERVER = (FaultRule("kill", ("point.mcp server",)),)
ANSWERS_LOST_BY_A_SERVER = (FaultRule("cut", ("provider.mcp",)), FaultRule("silence", ("provider.mcp",)))


def make_world_with_tool_sources(seed: int, rate: float, budget: int) -> World:
    """In one seed of four nothing is disturbed. In one of eight each, functions die while they wait for the server,
    and answers of the server are lost."""
    if seed % 4 == 0:
        rate, budget = 0.0, 0
    if seed % 4 != 1 or not budget:
        return _make_calm_world(seed, rate, budget, ToolSourceUsers, LATE_BATCHES)
    is_deadly = seed % 8 == 1
    return World(
        seed,
        fault_rate=(30 if is_deadly else 3) * rate,
        fault_budget=budget,
        turns=1,
        rules=DEATHS_AT_A_SERVER if is_deadly else ANSWERS_LOST_BY_A_SERVER,
        focus="round",
        day=DayKind(habits=replace(USUAL_HABITS, rush=0.0)),
        extend=ToolSourceUsers,
    )


def _make_calm_world(
    seed: int, rate: float, budget: int, extend: Callable[[World], WorldExtension], late: FaultRule
) -> World:
    """Return a workspace with one turn besides, as what others do is what matters."""
    day = DayKind(habits=replace(USUAL_HABITS if budget else GOOD_DAY_HABITS, rush=0.0))
    if seed % 3 or not budget:
        return World(seed, fault_rate=rate, fault_budget=budget, turns=1, day=day, extend=extend)
    return World(
        seed,
        fault_rate=10 * rate,
        fault_budget=3 * budget,
        turns=1,
        rules=(late,),
        day=day,
        extend=extend,
    )


AT_A_PROVIDER = ("point.provider chunk",)
DEATHS_OF_REQUESTS = (FaultRule("kill", AT_A_PROVIDER),)
FAILURES_OF_PROVIDERS = (FaultRule("overloaded", ("provider",)), FaultRule("kill", AT_A_PROVIDER))


def make_world_with_generation(seed: int, rate: float, budget: int) -> World:
    """In one seed of four each, functions die while they wait for a provider, or repeat what has failed as well."""
    day = DayKind(habits=replace(USUAL_HABITS if budget else GOOD_DAY_HABITS, rush=0.0))
    rules, focus = RULES, ""
    if seed % 4 == 1:
        rules, focus, rate = DEATHS_OF_REQUESTS, "credentials", 30 * rate
    elif seed % 4 == 2:
        rules, rate = FAILURES_OF_PROVIDERS, 7 * rate
    return World(
        seed, fault_rate=rate, fault_budget=budget, turns=1, rules=rules, focus=focus, day=day, extend=GenerateUsers
    )


def judge_world_with_generation(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, GenerateUsers)
    yield from judge_requests_without_turns(evidence, world.extension.sent)


def judge_world_with_webhooks(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, WebhookReceivers)
    yield from judge_webhooks(evidence, world.extension)


def judge_world_with_planners(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, PlannerUsers)
    yield from judge_held_plans(evidence, world.extension)


def judge_world_with_chains(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, ChainUsers)
    yield from judge_plan_chains(evidence, world.extension)


def judge_world_with_hooks(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, HookedAgents)
    yield from judge_agent_hooks(evidence, world.extension)


def judge_world_with_studio(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, StudioUsers)
    yield from judge_plan_uses(evidence, world.extension.sent, world.extension.key_limits)


def judge_world_with_tool_sources(world: World, evidence: Evidence) -> Iterator[str]:
    assert isinstance(world.extension, ToolSourceUsers)
    yield from judge_tool_sources(evidence, world.extension)
    yield from judge_sub_agents(evidence)


KINDS = {
    "agent-hooks": SimulationKind(make_world_with_hooks, judge_world_with_hooks),
    "approvals": SimulationKind(
        make_world_with_approvers, lambda world, evidence: judge_approvals(evidence, world.approvers.sent)
    ),
    "generate": SimulationKind(make_world_with_generation, judge_world_with_generation),
    "held-plans": SimulationKind(make_world_with_planners, judge_world_with_planners),
    "plan-chains": SimulationKind(make_world_with_chains, judge_world_with_chains),
    "plan-uses": SimulationKind(make_world_with_studio, judge_world_with_studio),
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
    "tool-sources": SimulationKind(make_world_with_tool_sources, judge_world_with_tool_sources),
    "webhooks": SimulationKind(make_world_with_webhooks, judge_world_with_webhooks),
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
