"""Decide about an edit plan that waits: apply it, or drop it, together with its row and an entry of the trail.

The turn of the plan has ended, so nothing is resumed. The change of the draft, the plan that waits no more, the row of
the approval and the trail are one transaction (decision 0388).
"""

from collections.abc import Mapping
from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Update, Write
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.domain.events import ApprovalOutcome
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.apply_plan import PlanAgreement, apply_pending_plan
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.multi_step_request import build_chain_drop
from fermata.plans.drafts.pending_plan import PendingPlan, discard_pending_plan
from fermata.plans.edit_plan import InvalidPlan
from fermata.plans.plan_outcome import PlanOutcome
from fermata.turns.approvals.approval_answer import CLOSED_MESSAGES, ApprovalAnswer, ApprovalClosed, require_approver
from fermata.turns.approvals.approval_record import (
    ApprovalRecord,
    approval_from_item,
    build_approval_key,
    build_plan_decision_update,
    parse_approval_id,
)
from fermata.turns.approvals.call_input_hash import hash_call_input
from fermata.turns.approvals.decision_trail import TrailHead, build_head_key, build_trail_writes
from fermata.turns.turn import Turn, turn_from_item
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.turn_toolset import open_turn_toolset

PLAN_OPERATIONS_MESSAGE = "The input of a plan has 'ops', a list of at least one operation."


class _PlanStale(Exception):
    """The tool or the agent has changed since the plan was made."""


@value_dataclass(frozen=True)
class _PlanDecision:
    """What is decided about a plan, and by whom. `build_closing` is asked again for each attempt to store it."""

    resources: Resources
    caller: Caller
    outcome: ApprovalOutcome
    reason: str = ""
    decided_input_hash: str = ""
    allows_own: bool = False

    def build_closing(self, pending: PendingPlan) -> tuple[Write, ...]:
        """Return the writes that store the decision.

        Raises:
            Forbidden: The policies want another person than the one who started the turn.
            ApprovalClosed: It was decided meanwhile.
            _PlanStale: It is approved, and is not what the tool and the agent would do now.
        """
        place = parse_approval_id(pending.outcome.approval_id or "")
        if place is None:
            return ()  # it is listed nowhere
        key = build_approval_key(self.resources, self.caller.tenant, place)
        turn_key, head_key = key._replace(sk="turn"), build_head_key(self.resources, self.caller.tenant)
        items = self.resources.tables.batch_get_by_keys((key, turn_key, head_key))
        turn = turn_from_item(items.get(turn_key), self.resources.clock.time())
        row = items.get(key)
        if turn is None or row is None:
            return ()  # its turn was erased
        record = approval_from_item(row)
        self._check(record, turn)
        head = TrailHead.from_item(items.get(head_key))
        return (self._build_row_update(record), *self._build_trail_writes(record, head))

    def _check(self, record: ApprovalRecord, turn: Turn) -> None:
        if not self.allows_own:
            require_approver(self.resources, open_turn_agent(self.resources, turn), turn, self.caller)
        if record.state != "waiting":
            raise ApprovalClosed(CLOSED_MESSAGES[record.state])
        if self.outcome == "approved" and not _is_current(self.resources, record, turn):
            raise _PlanStale

    def _build_row_update(self, record: ApprovalRecord) -> Update:
        values = {
            "decided_at": self.resources.clock.now_iso(),
            "decided_by": self.caller.user,
            "decision_reason": self.reason,
            "decided_input_hash": self.decided_input_hash,
        }
        return build_plan_decision_update(self.resources, record, self.outcome, values)

    def _build_trail_writes(self, record: ApprovalRecord, head: TrailHead) -> tuple[Write, ...]:
        facts: Mapping[str, Any] = {
            "kind": "planApproval",
            "at": self.resources.clock.now_iso(),
            "approval": record.id,
            "turn": record.turn,
            "round": record.place.round,
            "tool": record.tool_name,
            "toolDigest": record.tool_digest,
            "agent": record.agent,
            "inputHash": record.input_hash,
            "decidedInputHash": self.decided_input_hash or record.input_hash,
            "reasons": list(record.reasons),
            "outcome": self.outcome,
        }
        values = {"askedFor": record.user, "decidedBy": self.caller.user, "reason": self.reason}
        personal = {name: value for name, value in values.items() if value}
        return build_trail_writes(self.resources, record.tenant, head, ((facts, personal),))


def _is_current(resources: Resources, record: ApprovalRecord, turn: Turn) -> bool:
    agent = open_turn_agent(resources, turn)
    tool = open_turn_toolset(resources, turn).find_tool(record.tool_name)
    return tool is not None and (agent.reference, tool.digest) == (record.agent, record.tool_digest)


def decide_held_plan(
    resources: Resources, caller: Caller, record: ApprovalRecord, answer: ApprovalAnswer
) -> ApprovalRecord:
    """Apply or drop a plan, as an approver has decided. The same decision of the same person again changes nothing.

    Args:
        resources: Tables and clock.
        caller: A user with the capability `ai.tools.approve`.
        record: The approval, as it was read.
        answer: The decision. Its input has the operations that are applied in place of the plan's.

    Returns:
        The approval with what was decided.

    Raises:
        Forbidden: The policies want another person than the one who started the turn.
        InvalidRequest: The changed operations cannot be applied.
        ApprovalClosed: It was decided otherwise, has expired, was replaced, its tool or agent was changed, or the
            approver has seen other operations.
        Conflict: What the plan changes has been changed since.
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    operations = _read_operations(answer)
    decided_hash = hash_call_input(record.tool_name, answer.input) if answer.input is not None else ""
    if record.state == "waiting":
        if record.deadline <= resources.clock.time():
            raise ApprovalClosed(CLOSED_MESSAGES["expired"])
        if answer.input_hash and answer.input_hash != record.input_hash:
            raise ApprovalClosed("The plan is another one than the one that was decided about. Read it again.")
        outcome: ApprovalOutcome = "approved" if answer.is_approved else "denied"
        decision = _PlanDecision(resources, caller, outcome, answer.reason, decided_hash)
        _store(decision, record, operations)
        record = _read_record(resources, record)
    if not _is_of(record, caller, answer, decided_hash):
        raise ApprovalClosed(CLOSED_MESSAGES.get(record.state, CLOSED_MESSAGES["expired"]))
    return record


def _read_operations(answer: ApprovalAnswer) -> list[Any] | None:
    if answer.input is None:
        return None
    operations = answer.input.get("ops")
    if not isinstance(operations, list) or not operations:
        raise InvalidRequest(PLAN_OPERATIONS_MESSAGE)
    return operations


def _store(decision: _PlanDecision, record: ApprovalRecord, operations: list[Any] | None) -> None:
    location = DraftLocation(record.tenant, record.conversation)
    try:
        if decision.outcome == "approved":
            _apply(decision, location, record.plan_id, operations)
        else:
            _discard(decision, location, record.plan_id)
    except InvalidPlan as invalid:
        raise InvalidRequest(str(invalid)) from None
    except Conflict as conflict:
        now = _read_record(decision.resources, record)
        if now.state != "waiting" and not isinstance(conflict, ApprovalClosed):
            return  # another decision was faster; the caller compares it with this one
        raise


def _apply(decision: _PlanDecision, location: DraftLocation, plan_id: str, operations: list[Any] | None) -> PlanOutcome:
    resources = decision.resources
    try:
        outcome = apply_pending_plan(resources, location, plan_id, PlanAgreement(operations, decision.build_closing))
    except _PlanStale:
        _discard(_PlanDecision(resources, decision.caller, "stale", decision.reason), location, plan_id)
        raise ApprovalClosed(CLOSED_MESSAGES["stale"]) from None
    _log_decision(decision, location, plan_id)
    return outcome


def _discard(decision: _PlanDecision, location: DraftLocation, plan_id: str) -> PendingPlan | None:
    plan = discard_pending_plan(decision.resources, location, plan_id, decision.build_closing)
    if plan is not None:
        _log_decision(decision, location, plan.id)
    return plan


def _read_record(resources: Resources, record: ApprovalRecord) -> ApprovalRecord:
    item = resources.tables.get_item_by_key(build_approval_key(resources, record.tenant, record.place))
    return approval_from_item(item) if item else record


def _is_of(record: ApprovalRecord, caller: Caller, answer: ApprovalAnswer, decided_hash: str) -> bool:
    """Return whether the stored decision is this one, which was perhaps sent twice."""
    return (
        record.decided_by == caller.user
        and record.state == ("approved" if answer.is_approved else "denied")
        and record.decision_reason == answer.reason
        and record.decided_input_hash == decided_hash
    )


def apply_held_plan(resources: Resources, caller: Caller, location: DraftLocation, plan_id: str) -> PlanOutcome:
    """Apply the plan of a user's own session. Applying it again has the same outcome.

    Args:
        resources: Tables and clock.
        caller: The user of the session.
        location: The draft.
        plan_id: The plan that the user means; empty for whichever waits.

    Raises:
        Forbidden: The policies want another person to decide about it.
        Conflict: None waits, or another one; what it changes has been changed since; or the tool or agent was changed.
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    return _apply(_PlanDecision(resources, caller, "approved"), location, plan_id, None)


def discard_held_plan(
    resources: Resources, caller: Caller, location: DraftLocation, plan_id: str
) -> PendingPlan | None:
    """Drop the plan of a user's own session, which needs nobody else, and give up the chain of plans with it.

    Args:
        resources: Tables and clock.
        caller: The user of the session.
        location: The draft.
        plan_id: The plan that the user means; empty for whichever waits.

    Returns:
        The plan; None if none waits.

    Raises:
        Conflict: Another plan waits.
        ServiceUnavailable: As `discard_pending_plan`.
    """
    decision = _PlanDecision(resources, caller, "denied", allows_own=True)

    def build_closing(pending: PendingPlan) -> tuple[Write, ...]:
        return (*decision.build_closing(pending), *build_chain_drop(resources, location))

    plan = discard_pending_plan(resources, location, plan_id, build_closing)
    if plan is not None:
        _log_decision(decision, location, plan.id)
    return plan


def _log_decision(decision: _PlanDecision, location: DraftLocation, plan_id: str) -> None:
    observability.log_audit_event(
        "ai.plan.decided",
        tenant=location.tenant,
        user=decision.caller.user,
        conversation=location.conversation,
        plan=plan_id,
        outcome=decision.outcome,
    )
