"""Define what becomes of a submitted plan, as the log keeps it and clients are answered."""

from typing import Any, Literal

from fermata.domain.base import DomainModel
from fermata.plans.apply_operations import OperationOutcome
from fermata.plans.destructive_gate import DestructiveReason
from fermata.plans.edit_plan import EditPlan, PlanErrorCategory
from fermata.plans.normalization.normalize_plan import NormalizedOperation

PlanStatus = Literal["applied", "plan_ready", "info", "needs_clarification", "validation_error", "error", "canceled"]


class PlanOutcome(DomainModel):
    """What became of a plan.

    Attributes:
        ops: The operations as they were normalized: those that were applied, or would be.
        normalized_from: What was changed about the operations that were submitted.
        applied_count: Of a plan that failed, how many operations came before the one that could not be applied.
        feedback: What the model is told to correct.
        continuation: How far the chain of plans is to which the plan belongs, if steps are left.
        approval_id: Of the approval under which a plan that waits is listed.
    """

    status: PlanStatus
    intent: str = "edit_plan"
    summary: str
    changes: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    ops: tuple[dict[str, Any], ...] = ()
    outcomes: tuple[OperationOutcome, ...] = ()
    normalized_from: tuple[NormalizedOperation, ...] = ()
    preview_version: int | None = None
    pending_plan_id: str | None = None
    approval_id: str | None = None
    expires_at: str | None = None
    destructive_reasons: tuple[DestructiveReason, ...] = ()
    continuation: dict[str, Any] | None = None
    error_code: PlanErrorCategory | None = None
    applied_count: int | None = None
    feedback: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the plan needs no correction."""
        return self.status not in ("validation_error", "error")


def describe_plan(plan: EditPlan, status: PlanStatus) -> dict[str, Any]:
    """Return the members of an outcome that repeat what the plan says."""
    return {
        "status": status,
        "intent": plan.intent,
        "summary": plan.summary_for_user,
        "changes": plan.change_log,
        "suggestions": plan.suggested_next_actions,
        "ops": tuple(plan.list_wire_operations()),
    }
