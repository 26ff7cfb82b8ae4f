"""Decide which calls run, which a person has to approve, and which are refused: by rules of the agent and the tenant.

`judge_call` is the one place that decides, when a call is admitted to run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.base import DomainModel
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Access, Approval, Risk, Tool
from fermata.tools.toolset import list_tool_names

DEFAULT_APPROVAL_SECONDS = 7 * 86_400
"""How long a call waits for a decision, where no policy says otherwise."""
_Names = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=200)]


def fold_tool_name(name: str) -> str:
    """Return the form in which names of tools are compared, as those of registered tools are: trimmed, without case."""
    return name.strip().casefold()


def list_folded_names(tool: Tool) -> set[str]:
    """Return all names by which a tool is known, in the form in which they are compared."""
    return set(map(fold_tool_name, list_tool_names(tool)))


class Effect(StrEnum):
    """What becomes of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PolicyRule(DomainModel):
    """What becomes of the calls that meet all of its conditions. A condition that is empty is met by every call.

    `tools` are names by which tools are known, in any case. A remote tool is known by the name that it was registered
    with, and by the one that models read. `access` is what the API calls a tool's capability.
    """

    effect: Literal["allow", "ask", "deny"]
    agents: _Names = ()
    tools: _Names = ()
    toolsets: _Names = ()
    access: Access | None = Field(default=None, alias="capability")
    risks: tuple[Risk, ...] = ()

    def matches(self, agent: str, tool: Tool) -> bool:
        """Return whether a call of this tool by this agent meets all conditions."""
        return (
            (not self.agents or agent in self.agents)
            and (not self.tools or self._has_name_of(tool))
            and (not self.toolsets or tool.toolset in self.toolsets)
            and (self.access is None or tool.access is self.access)
            and (not self.risks or tool.risk in self.risks)
        )

    def names(self, tool: Tool) -> bool:
        """Return whether the rule is about this tool or its toolset by name."""
        return self._has_name_of(tool) or tool.toolset in self.toolsets

    def _has_name_of(self, tool: Tool) -> bool:
        return not self.folded_tools.isdisjoint(list_folded_names(tool))

    @cached_property
    def folded_tools(self) -> frozenset[str]:
        """The names of tools in the form in which they are compared."""
        return frozenset(map(fold_tool_name, self.tools))


class ApprovalPolicy(DomainModel, defer_build=False):
    """Which calls need a person. The first rule that matches counts; without one, the tool itself says so.

    Attributes:
        rules: In the order in which they are looked at.
        writes_after_outside_content: Whether a write needs approval once the conversation holds outside content.
        new_tools: Whether a tool needs approval until a person has approved it as it is.
        turn_cost_usd: What a turn may cost before a person has to let it go on; then the same amount again.
        separate_approver: Whether the user who started a turn may not decide about its calls.
        wait_seconds: How long a call waits for a decision.
    """

    rules: tuple[PolicyRule, ...] = ()
    writes_after_outside_content: bool = False
    new_tools: bool = False
    turn_cost_usd: Annotated[Decimal, Field(gt=0, le=1_000_000)] | None = None
    separate_approver: bool = False
    wait_seconds: Annotated[int, Field(ge=60, le=30 * 86_400)] | None = None


NO_POLICY = ApprovalPolicy()


@value_dataclass(frozen=True, kw_only=True)
class CallFacts:
    """What is known about a call and its turn when it is judged.

    Attributes:
        follows_outside_content: Whether the model has read outside content before it made the call.
        known_tools: Digests of the tools that the tenant has approved, by canonical name.
        cost_since_approval: What the turn has cost since it began, or since a person let it go on.
    """

    agent: str
    tool: Tool
    follows_outside_content: bool = False
    known_tools: Mapping[str, str] = field(default_factory=dict)
    cost_since_approval: Decimal = Decimal(0)


@value_dataclass(frozen=True)
class Verdict:
    """What becomes of a call, and why a person has to be asked."""

    effect: Effect
    reasons: tuple[ApprovalReason, ...] = ()


def judge_call(facts: CallFacts, tenant_policy: ApprovalPolicy, agent_policy: ApprovalPolicy) -> Verdict:
    """Decide what becomes of an admitted call.

    A tool that always needs approval is asked for whatever a rule allows. One that needs it unless it is named is asked
    for unless the rule that allows it is the tenant's and names it. What the policies say besides their rules only adds
    reasons to ask.

    Args:
        facts: The call and its turn.
        tenant_policy: Its rules are looked at first.
        agent_policy: Of the turn's agent.
    """
    rule = _find_rule((tenant_policy, agent_policy), facts)
    effect = Effect(rule.effect) if rule else None
    if facts.tool.approval is Approval.UNLESS_NAMED and effect is Effect.ALLOW:
        effect = effect if _find_rule((tenant_policy,), facts) is rule and rule and rule.names(facts.tool) else None
    if effect is Effect.DENY:
        return Verdict(Effect.DENY)
    reasons = tuple(_iter_reasons(facts, effect, (tenant_policy, agent_policy)))
    return Verdict(Effect.ASK, reasons) if reasons else Verdict(Effect.ALLOW)


def get_approval_seconds(tenant_policy: ApprovalPolicy, agent_policy: ApprovalPolicy) -> int:
    """Return how long a call waits for a decision: the shortest time that a policy names."""
    named = [policy.wait_seconds for policy in (tenant_policy, agent_policy) if policy.wait_seconds is not None]
    return min(named, default=DEFAULT_APPROVAL_SECONDS)


def _find_rule(policies: Iterable[ApprovalPolicy], facts: CallFacts) -> PolicyRule | None:
    rules = (rule for policy in policies for rule in policy.rules)
    return next((rule for rule in rules if rule.matches(facts.agent, facts.tool)), None)


def _iter_reasons(
    facts: CallFacts, effect: Effect | None, policies: tuple[ApprovalPolicy, ...]
) -> Iterator[ApprovalReason]:
    tool = facts.tool
    if tool.approval is Approval.ALWAYS or (effect is None and tool.needs_approval):
        yield ApprovalReason.TOOL
    elif effect is Effect.ASK:
        yield ApprovalReason.RULE
    is_write = tool.access is Access.WRITE
    if is_write and facts.follows_outside_content and any(it.writes_after_outside_content for it in policies):
        yield ApprovalReason.OUTSIDE_CONTENT
    if any(it.new_tools for it in policies) and facts.known_tools.get(tool.name) != tool.digest:
        yield ApprovalReason.NEW_TOOL
    limits = [it.turn_cost_usd for it in policies if it.turn_cost_usd is not None]
    if limits and facts.cost_since_approval > min(limits):
        yield ApprovalReason.TURN_COST
