"""Judge the calls of a round, and ask a person about those that need it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from fermata.agents.approval_policy import CallFacts, Effect, Verdict, get_approval_seconds, judge_call
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.settings import TURN_RETENTION_SECONDS
from fermata.domain.agent_ids import read_agent_id
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.events import ApprovalRequestedEvent
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.pipeline import AdmittedCall, split_own_members
from fermata.turns.approvals.call_input_hash import hash_call_input
from fermata.turns.approvals.confirmations import ConfirmationCheck
from fermata.turns.offered_tools import is_find_tools
from fermata.turns.pause import Pause
from fermata.turns.round_call import CallApproval
from fermata.turns.turn import Turn

if TYPE_CHECKING:
    from fermata.turns.approvals.approval_record import ApprovalRecord
    from fermata.turns.round.turn_context import TurnContext

MAX_APPROVALS_PER_ROUND = 25
"""Each is a row of the transactions that begin and end it."""
REFUSED_BY_POLICY = "A rule of this workspace does not allow this call. Go on without it, or tell the user."
DENIED_BEFORE = "A person has already denied this call in this turn. Go on without it, or ask the user."
TOO_MANY_APPROVALS = (
    f"A person can be asked about {MAX_APPROVALS_PER_ROUND} calls at once. Call this again after those are decided."
)


@dataclass
class CallJudge:
    """Judges the calls of one round in their order: a call may depend on the ones before it.

    Attributes:
        cost: What the turn has cost, including the request that has made the calls.
    """

    context: "TurnContext"
    cost: Decimal
    confirmations: ConfirmationCheck = field(init=False)
    _has_outside_content: bool | None = None
    _asked_reasons: set[ApprovalReason] = field(default_factory=set)
    _asked_count: int = 0

    def __post_init__(self) -> None:
        self.confirmations = ConfirmationCheck(self.context)

    def judge(self, call_index: int, admitted: AdmittedCall) -> CallApproval | ToolOutput | None:
        """Return the approval that a call needs, or why it is refused; None if it may run.

        Args:
            call_index: The call's index in its round.
            admitted: The call.
        """
        if is_find_tools(admitted.tool):
            return None  # it only names tools, whose own calls are judged
        if refusal := self.confirmations.check(admitted):
            return refusal
        verdict = judge_call(self._collect_facts(admitted), self.context.turn.policy, self.context.agent.policy)
        if admitted.tool.reads_outside_content:
            self._has_outside_content = True
        if verdict.effect is Effect.DENY:
            return ToolOutput.failure(REFUSED_BY_POLICY)
        reasons = self._select_reasons(verdict)
        if runs_unasked(self.context.turn):
            reasons = tuple(reason for reason in reasons if reason is not ApprovalReason.TOOL)
        if not reasons:
            return None
        input_hash = hash_call_input(admitted.tool.name, admitted.arguments)
        if input_hash in self.context.log.state.denied_inputs:
            return ToolOutput.failure(DENIED_BEFORE)
        if self._asked_count == MAX_APPROVALS_PER_ROUND:
            return ToolOutput.failure(TOO_MANY_APPROVALS)
        self._asked_count += 1
        self._asked_reasons |= set(reasons)
        return self._build_approval(call_index, admitted, input_hash, reasons)

    def _select_reasons(self, verdict: Verdict) -> tuple[ApprovalReason, ...]:
        """Leave out the cost where an earlier call of the round asks about it already."""
        asked = self._asked_reasons & {ApprovalReason.TURN_COST}
        return tuple(reason for reason in verdict.reasons if reason not in asked)

    def _collect_facts(self, admitted: AdmittedCall) -> CallFacts:
        context = self.context
        return CallFacts(
            agent=context.agent.id,
            tool=admitted.tool,
            follows_outside_content=self._follows_outside_content(),
            known_tools=self._list_known_tools(),
            cost_since_approval=self.cost - Decimal(context.log.state.approved_cost),
        )

    def _follows_outside_content(self) -> bool:
        """Return whether the conversation that the model was sent, or an earlier call of the round, has some."""
        if self._has_outside_content is None:
            history = self.context.history
            names = {message.tool_name for message in history.stored_messages} if history else set()
            tools = (self.context.toolset.find_tool(name) for name in names if name)
            self._has_outside_content = any(tool.reads_outside_content for tool in tools if tool)
        return self._has_outside_content

    def _list_known_tools(self) -> dict[str, str]:
        """Return the digests of the tools that were approved before the turn or in it."""
        context = self.context
        approved = map(context.toolset.find_tool, context.log.state.approved_new_tools)
        return context.turn.known_tools | {tool.name: tool.digest for tool in approved if tool}

    def _build_approval(
        self, call_index: int, admitted: AdmittedCall, input_hash: str, reasons: tuple[ApprovalReason, ...]
    ) -> CallApproval:
        from fermata.turns.approvals.approval_record import build_approval_id  # few calls need a person

        context = self.context
        turn, now = context.turn, context.resources.clock.time()
        seconds = get_approval_seconds(turn.policy, context.agent.policy)
        return CallApproval(
            id=build_approval_id(turn.id, context.log.state.round, call_index, context.new_nonce()),
            tool=admitted.tool.name,
            input_hash=input_hash,
            tool_digest=admitted.tool.digest,
            agent=context.agent.reference,
            reasons=reasons,
            deadline=min(now + seconds, turn.expires - TURN_RETENTION_SECONDS),
        )


def runs_unasked(turn: Turn) -> bool:
    """Return whether tools that a definition lets ask run unasked in a turn, because there is no page to ask on.

    What the workspace's policy asks for is asked for all the same. A tenant's own agent has no other tools that always
    ask than those of its definition (decision 0384).
    """
    return turn.runs_confirmed_tools and bool(read_agent_id(turn.scope))


@value_dataclass(frozen=True)
class ApprovalRequests:
    """The approvals that a round asks for: what clients are told, and the rows that list them."""

    events: tuple[ApprovalRequestedEvent, ...] = ()
    puts: tuple[Put, ...] = ()


def build_approval_requests(context: "TurnContext", pause: Pause) -> ApprovalRequests:
    """Return the requests for the approvals of a round's calls.

    Args:
        context: The invocation that commits the calls.
        pause: The round's pause, before it is stored.
    """
    requested = tuple(_iter_requested(context, pause))
    if not requested:
        return ApprovalRequests()
    from fermata.turns.approvals.approval_record import build_approval_put  # few calls need a person

    return ApprovalRequests(
        tuple(_build_event(record, arguments) for record, arguments in requested),
        tuple(build_approval_put(context.resources, record) for record, _ in requested),
    )


def _iter_requested(context: "TurnContext", pause: Pause) -> Iterator[tuple["ApprovalRecord", dict[str, Any]]]:
    now = context.resources.clock.time()
    for call in pause.calls:
        tool = context.toolset.find_tool(call.tool_name) if call.state == "approval" else None
        if tool is not None:
            from fermata.turns.approvals.approval_record import build_approval_record  # few calls need a person

            arguments, _ = split_own_members(tool, call.input)
            yield build_approval_record(pause, call, tool, arguments, now), arguments


def _build_event(record: "ApprovalRecord", arguments: dict[str, Any]) -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        approval_id=record.id,
        tool_call_id=record.tool_call_id,
        tool_name=record.tool_name,
        input=arguments,
        input_hash=record.input_hash,
        description=record.description,
        reasons=record.reasons,
        timestamp=record.requested_at,
        deadline=iso_from_epoch(record.deadline),
    )
