"""List an edit plan that waits for a person as an approval, in the transaction that holds it (decision 0388)."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fermata.aws.dynamodb_items_and_writes import Put, Update, Write
from fermata.domain.approval_reasons import ApprovalReason
from fermata.domain.events import ApprovalRequestedEvent, EditPlanEvent, Event
from fermata.domain.json_shortening import shorten_value
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.drafts.pending_plan import PendingPlan, make_pending_plan_id
from fermata.plans.plan_outcome import PlanOutcome
from fermata.tools.planner.toolset import SUBMIT_PLAN_TOOL
from fermata.turns.approvals.approval_answer import CLOSED_MESSAGES, ApprovalClosed
from fermata.turns.approvals.approval_record import (
    MAX_PREVIEW_CHARS,
    ApprovalRecord,
    approval_to_item,
    build_approval_key,
    parse_approval_id,
)
from fermata.turns.approvals.call_input_hash import hash_call_input

if TYPE_CHECKING:
    from fermata.turns.round.turn_context import TurnContext


def make_plan_approval_id(effect_key: str) -> str:
    """Return the id of the approval of the plan that a call has submitted: it carries the place of the call."""
    return f"{effect_key.replace('/', '.')}.{make_pending_plan_id(effect_key)}"


@value_dataclass(frozen=True)
class HeldPlanListing:
    """Lists the plan that a call submits, if it is held.

    Attributes:
        context: The invocation that runs the call.
        tool_call_id: The model's id of the call.
    """

    context: "TurnContext"
    tool_call_id: str

    def build_writes(self, plan: PendingPlan, replaced: PendingPlan | None) -> tuple[Write, ...]:
        """Return the writes that list a plan, and take the one that it replaces from the list.

        Args:
            plan: The plan.
            replaced: The plan that has waited until now.

        Raises:
            ApprovalClosed: It was listed by an earlier run of the same call, and does not wait any more.
        """
        record = self._build_record(plan)
        self._require_undecided(record)
        # What nobody decides about is deleted when the plan is. A decision extends its life to that of the turn.
        item = approval_to_item(record) | {"ttl": plan.expires}
        put = Put(self.context.resources.settings.bridges_table, item, if_absent=True)
        old_id = replaced.outcome.approval_id if replaced else None
        return (put, self._build_replacement(old_id)) if old_id else (put,)

    def _require_undecided(self, record: ApprovalRecord) -> None:
        place = parse_approval_id(record.id)
        assert place is not None, record.id
        resources = self.context.resources
        item = resources.tables.get_item_by_key(build_approval_key(resources, record.tenant, place))
        if item is not None:
            raise ApprovalClosed(CLOSED_MESSAGES.get(item["state"], CLOSED_MESSAGES["expired"]))

    def _build_replacement(self, approval_id: str) -> Update:
        place = parse_approval_id(approval_id)
        assert place is not None, approval_id
        return Update(
            *build_approval_key(self.context.resources, self.context.turn.tenant, place),
            "SET #state = :cancelled REMOVE #open, openSince",
            {":cancelled": "cancelled", ":waiting": "waiting"},
            names={"#state": "state", "#open": "open"},
            condition="#state = :waiting",
        )

    def _build_record(self, plan: PendingPlan) -> ApprovalRecord:
        context, turn, outcome = self.context, self.context.turn, plan.outcome
        tool = context.toolset.find_tool(SUBMIT_PLAN_TOOL)
        assert tool is not None, turn.scope
        shown = build_plan_input(outcome)
        return ApprovalRecord(
            id=outcome.approval_id or "",
            tenant=turn.tenant,
            turn=turn.id,
            user=turn.user,
            scope=turn.scope,
            conversation=turn.conversation,
            agent=context.agent.reference,
            tool_call_id=self.tool_call_id,
            tool_name=SUBMIT_PLAN_TOOL,
            description=describe_held_plan(outcome),
            risk="high" if outcome.destructive_reasons else tool.risk.value,
            access=tool.access.value,
            reasons=list_plan_reasons(outcome),
            input_preview=json.dumps(shorten_value(shown, MAX_PREVIEW_CHARS), separators=(",", ":")),
            input_hash=hash_call_input(SUBMIT_PLAN_TOOL, shown),
            tool_digest=tool.digest,
            requested_at=plan.at,
            deadline=plan.expires,
            expires=turn.expires,
            plan_id=plan.id,
        )


def build_plan_input(outcome: PlanOutcome) -> dict[str, Any]:
    """Return what is decided about: the operations as they would be applied, and what the plan says of them."""
    return {"summary": outcome.summary, "ops": list(outcome.ops)}


def list_plan_reasons(outcome: PlanOutcome) -> tuple[str, ...]:
    """Return why a person is asked about a plan."""
    return (ApprovalReason.DESTRUCTIVE_PLAN if outcome.destructive_reasons else ApprovalReason.PLAN_FIRST,)


def describe_held_plan(outcome: PlanOutcome) -> str:
    """Say in words what a plan would do, and why it is held."""
    why = [reason.message for reason in outcome.destructive_reasons] or ["Its user wants to see it first."]
    return " ".join([outcome.summary, *why])


def build_plan_requests(
    events: Sequence[Event], tool_call_id: str, requested_at: str
) -> tuple[ApprovalRequestedEvent, ...]:
    """Return the events that ask about the plans which wait.

    Args:
        events: What the log keeps of a call.
        tool_call_id: The model's id of the call.
        requested_at: When its plan was held.
    """
    outcomes = (PlanOutcome.from_wire(event.outcome) for event in events if isinstance(event, EditPlanEvent))
    return tuple(_build_request(outcome, tool_call_id, requested_at) for outcome in outcomes if outcome.approval_id)


def _build_request(outcome: PlanOutcome, tool_call_id: str, requested_at: str) -> ApprovalRequestedEvent:
    shown = build_plan_input(outcome)
    return ApprovalRequestedEvent(
        approval_id=outcome.approval_id or "",
        tool_call_id=tool_call_id,
        tool_name=SUBMIT_PLAN_TOOL,
        input=shown,
        input_hash=hash_call_input(SUBMIT_PLAN_TOOL, shown),
        description=describe_held_plan(outcome),
        reasons=list_plan_reasons(outcome),
        timestamp=requested_at,
        deadline=outcome.expires_at or "",
    )
