"""Policies of the tenant and the agent say which calls run, which need a person and which are refused."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from fermata.agents.approval_policy import ApprovalPolicy, CallFacts, Effect, PolicyRule, judge_call
from fermata.agents.policy_store import read_policy, set_policy
from fermata.agents.site.agent import SITE_AGENT
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.events import ApprovalRequestedEvent
from fermata.tools.tool import Access, Approval, Risk, Tool
from tests.unit.turns.approvals.bakery import NO, YES, Bakery, Oven, make_bake_tool, make_sell_tool
from tests.unit.turns.scenarios import make_server_tool
from tests.unit.turns.stage import ADA, OK, Stage, reply_with_calls, tool_call_block

NONE = ApprovalPolicy()
PLAIN = make_bake_tool(Oven(), approval=Approval.NEVER, risk=Risk.MODERATE)
BY_RISK = make_bake_tool(Oven(), approval=Approval.BY_RISK)
ALWAYS = make_bake_tool(Oven())
REMOTE = make_bake_tool(
    Oven(), name="orders_bake", aliases=("orders.bake",), toolset="remote", approval=Approval.UNLESS_NAMED
)


def rules(*members: dict[str, Any]) -> ApprovalPolicy:
    return ApprovalPolicy(rules=tuple(PolicyRule.from_wire(rule) for rule in members))


def judge(tool: Tool, tenant: ApprovalPolicy = NONE, agent: ApprovalPolicy = NONE, **facts: Any) -> tuple[Any, ...]:
    verdict = judge_call(CallFacts(agent="site", tool=tool, **facts), tenant, agent)
    return (verdict.effect, *verdict.reasons)


@pytest.mark.parametrize(
    ("tool", "tenant", "agent", "verdict"),
    [
        (PLAIN, NONE, NONE, (Effect.ALLOW,)),
        (BY_RISK, NONE, NONE, (Effect.ASK, "tool")),
        (ALWAYS, NONE, NONE, (Effect.ASK, "tool")),
        (BY_RISK, rules({"effect": "allow", "tools": ["bake"]}), NONE, (Effect.ALLOW,)),
        (ALWAYS, rules({"effect": "allow", "tools": ["bake"]}), NONE, (Effect.ASK, "tool")),
        (REMOTE, NONE, NONE, (Effect.ASK, "tool")),
        (REMOTE, rules({"effect": "allow"}), NONE, (Effect.ASK, "tool")),
        (REMOTE, rules({"effect": "allow", "capability": "write", "risks": ["high"]}), NONE, (Effect.ASK, "tool")),
        (REMOTE, rules({"effect": "allow", "tools": ["orders.bake"]}), NONE, (Effect.ALLOW,)),
        (REMOTE, rules({"effect": "allow", "toolsets": ["remote"]}), NONE, (Effect.ALLOW,)),
        (REMOTE, NONE, rules({"effect": "allow", "tools": ["orders.bake"]}), (Effect.ASK, "tool")),
        (REMOTE, rules({"effect": "ask"}), rules({"effect": "allow", "tools": ["orders_bake"]}), (Effect.ASK, "rule")),
        (REMOTE, rules({"effect": "deny", "tools": ["orders.bake"]}), NONE, (Effect.DENY,)),
        (REMOTE, rules({"effect": "deny", "tools": [" Orders.BAKE"]}), NONE, (Effect.DENY,)),
        (PLAIN, rules({"effect": "deny", "tools": ["site_bake"]}), NONE, (Effect.DENY,)),
        (PLAIN, rules({"effect": "ask", "toolsets": ["site"]}), NONE, (Effect.ASK, "rule")),
        (PLAIN, rules({"effect": "ask", "toolsets": ["content"]}), NONE, (Effect.ALLOW,)),
        (PLAIN, rules({"effect": "ask", "capability": "write"}), NONE, (Effect.ASK, "rule")),
        (PLAIN, rules({"effect": "ask", "capability": "read"}), NONE, (Effect.ALLOW,)),
        (PLAIN, rules({"effect": "ask", "risks": ["moderate", "high"]}), NONE, (Effect.ASK, "rule")),
        (PLAIN, rules({"effect": "ask", "risks": ["high"]}), NONE, (Effect.ALLOW,)),
        (PLAIN, rules({"effect": "deny", "agents": ["site"]}), NONE, (Effect.DENY,)),
        (PLAIN, rules({"effect": "deny", "agents": ["plugin"]}), NONE, (Effect.ALLOW,)),
        (PLAIN, NONE, rules({"effect": "deny"}), (Effect.DENY,)),
        (PLAIN, rules({"effect": "allow"}), rules({"effect": "deny"}), (Effect.ALLOW,)),
        (PLAIN, rules({"effect": "ask", "tools": ["sell"]}, {"effect": "deny"}), NONE, (Effect.DENY,)),
    ],
)
def test_the_first_rule_that_matches_counts_the_tenants_before_the_agents(
    tool: Tool, tenant: ApprovalPolicy, agent: ApprovalPolicy, verdict: tuple[Any, ...]
) -> None:
    assert judge(tool, tenant, agent) == verdict


def test_a_write_after_outside_content_needs_a_person_and_a_read_does_not() -> None:
    careful = ApprovalPolicy(writes_after_outside_content=True)
    assert judge(PLAIN, careful, follows_outside_content=True) == (Effect.ASK, ApprovalReason.OUTSIDE_CONTENT)
    assert judge(PLAIN, careful) == (Effect.ALLOW,)
    assert judge(replace(PLAIN, access=Access.READ), careful, follows_outside_content=True) == (Effect.ALLOW,)


def test_a_tool_needs_a_person_until_it_is_known_as_it_is() -> None:
    curious = ApprovalPolicy(new_tools=True)
    assert judge(PLAIN, curious) == (Effect.ASK, ApprovalReason.NEW_TOOL)
    assert judge(PLAIN, curious, known_tools={"bake": PLAIN.digest}) == (Effect.ALLOW,)
    changed = replace(PLAIN, description="Bakes and sells.")
    assert judge(changed, curious, known_tools={"bake": PLAIN.digest}) == (Effect.ASK, ApprovalReason.NEW_TOOL)


def test_a_turn_that_costs_more_than_it_may_needs_a_person() -> None:
    thrifty = ApprovalPolicy(turn_cost_usd=Decimal("0.5"))
    assert judge(PLAIN, thrifty, cost_since_approval=Decimal("0.5")) == (Effect.ALLOW,)
    assert judge(PLAIN, thrifty, cost_since_approval=Decimal("0.51")) == (Effect.ASK, ApprovalReason.TURN_COST)


@pytest.fixture
def plain_bakery(bakery: Bakery) -> Bakery:
    """A bakery whose tools do not ask by themselves, and one that reads the newspaper."""
    news = make_server_tool("read_news", lambda: "Bread is dear.", idempotent=True, reads_outside_content=True)
    bakery.stage.add_tools(
        make_bake_tool(bakery.oven, approval=Approval.NEVER), make_sell_tool(approval=Approval.NEVER), news
    )
    bakery.stage.set_price(input_per_mtok=100_000, output_per_mtok=0)  # a request of the stage costs one dollar
    return bakery


def set_tenant_policy(bakery: Bakery, **members: Any) -> None:
    set_policy(bakery.stage.resources, ADA, ApprovalPolicy(**members))


def start(stage: Stage, *replies: Any) -> str:
    stage.start_turn("Bake something")
    stage.script_replies(*replies)
    return stage.run_workflow()


def bake(loaves: int) -> Any:
    return tool_call_block("bake", loaves=loaves)


def test_a_policy_applies_to_turns_that_start_after_it_was_set(plain_bakery: Bakery) -> None:
    stage = plain_bakery.stage
    stage.start_turn("Bake something")
    set_tenant_policy(plain_bakery, rules=(PolicyRule(effect="ask"),))
    stage.script_replies(reply_with_calls(bake(1)), "Done.")
    assert stage.run_workflow() == "finished"
    assert start(stage, reply_with_calls(bake(2)), "Done.") == "waiting"
    assert plain_bakery.requested[0].reasons == ("rule",)


def test_a_refused_call_is_a_result_and_asks_nobody(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, rules=(PolicyRule(effect="deny", tools=("bake",)),))
    assert start(plain_bakery.stage, reply_with_calls(bake(1)), "Then not.") == "finished"
    assert plain_bakery.oven.baked == []
    assert "does not allow this call" in plain_bakery.results()[0].error


def test_a_write_in_the_same_round_after_an_outside_read_needs_a_person(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, writes_after_outside_content=True)
    assert start(plain_bakery.stage, reply_with_calls(bake(1), tool_call_block("read_news"), bake(2)), "Done.") == (
        "waiting"
    )
    assert plain_bakery.oven.baked == [1]
    assert [event.reasons for event in plain_bakery.requested] == [("outsideContent",)]


def test_a_write_in_a_later_turn_after_an_outside_read_needs_a_person(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, writes_after_outside_content=True)
    assert start(plain_bakery.stage, reply_with_calls(tool_call_block("read_news")), "Dear.") == "finished"
    assert start(plain_bakery.stage, reply_with_calls(bake(1)), "Done.") == "waiting"
    assert plain_bakery.requested[0].reasons == ("outsideContent",)


def test_a_new_tool_is_asked_about_once_a_tenant(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, new_tools=True)
    stage = plain_bakery.stage
    assert start(stage, reply_with_calls(bake(1)), reply_with_calls(bake(2)), "Done.") == "waiting"
    plain_bakery.decide(YES)
    assert stage.run_workflow() == "finished"
    assert plain_bakery.oven.baked == [1, 2]
    assert start(stage, reply_with_calls(bake(3)), "Done.") == "finished"
    assert plain_bakery.oven.baked == [1, 2, 3]


def test_a_dear_turn_goes_on_once_a_person_lets_it_and_asks_again_later(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, turn_cost_usd=Decimal("1.5"))
    stage = plain_bakery.stage
    replies = [reply_with_calls(bake(number)) for number in range(1, 5)]
    assert start(stage, *replies, "Done.") == "waiting"
    assert plain_bakery.oven.baked == [1]
    plain_bakery.decide(YES)
    assert stage.run_workflow() == "waiting"
    assert plain_bakery.oven.baked == [1, 2, 3]
    assert [event.reasons for event in plain_bakery.requested] == [("turnCost",), ("turnCost",)]
    plain_bakery.decide(YES, 1)
    assert stage.run_workflow() == "finished"


def test_a_dear_turn_that_may_not_go_on_answers_without_tools(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, turn_cost_usd=Decimal("0.5"))
    stage = plain_bakery.stage
    assert start(stage, reply_with_calls(bake(1), bake(2)), "That is all.") == "waiting"
    assert len(plain_bakery.requested) == 1
    plain_bakery.decide(NO)
    assert stage.run_workflow() == "finished"
    assert plain_bakery.oven.baked == []
    assert not stage.driver.requests[-1].call_tools
    assert stage.event_types()[-1] == "done"


def test_the_agents_policy_applies_too(plain_bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = replace(SITE_AGENT, policy=rules({"effect": "ask", "risks": ["high"]}))
    monkeypatch.setattr("fermata.agents.site.agent.SITE_AGENT", strict)
    assert start(plain_bakery.stage, reply_with_calls(bake(1)), "Done.") == "waiting"


def test_a_round_asks_about_a_limited_number_of_calls(plain_bakery: Bakery) -> None:
    set_tenant_policy(plain_bakery, rules=(PolicyRule(effect="ask"),))
    calls = [tool_call_block("sell", loaves=number) for number in range(30)]
    assert start(plain_bakery.stage, reply_with_calls(*calls), "Done.") == "waiting"
    asked = [event for event in plain_bakery.stage.events() if isinstance(event, ApprovalRequestedEvent)]
    assert len(asked) == 25
    for index in range(25):
        plain_bakery.decide(NO, index)
    assert plain_bakery.stage.run_workflow() == "finished"
    assert OK["ok"]


def test_a_policy_is_stored_with_who_has_set_it(bakery: Bakery) -> None:
    set_tenant_policy(bakery, new_tools=True)
    set_tenant_policy(bakery, separate_approver=True)
    stored = read_policy(bakery.stage.resources, "bakery")
    assert (stored.version, stored.updated_by) == (2, "ada")
    assert stored.policy == ApprovalPolicy(separate_approver=True)
