"""Apply what its user agrees to: a plan that waited (decision 0338), or operations that a client sends itself."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.plans.apply_operations import apply_operations
from fermata.plans.drafts.draft_rows import DraftLocation, StoredDraft
from fermata.plans.drafts.draft_store import DraftChange, change_draft
from fermata.plans.drafts.pending_plan import (
    BuildClosing,
    build_pending_delete,
    close_nothing,
    digest_targets,
    make_apply_effect_key,
    require_pending_plan,
)
from fermata.plans.edit_plan import InvalidPlan, parse_edit_plan
from fermata.plans.operations import PLAN_OPERATIONS
from fermata.plans.plan_change import build_plan_change, require_structure, to_plan_outcome
from fermata.plans.plan_outcome import PlanOutcome, describe_plan

CHANGED_TARGETS_MESSAGE = "What the plan changes has been changed since. Ask for the plan again."


@dataclass(frozen=True)
class PlanAgreement:
    """How a plan that waits is agreed to.

    Attributes:
        operations: What is applied in place of the plan's operations, as JSON; None to apply those.
        build_closing: Builds the writes that say so where the plan is listed.
    """

    operations: Any = None
    build_closing: BuildClosing = close_nothing


def apply_pending_plan(
    resources: Resources, location: DraftLocation, plan_id: str, agreement: PlanAgreement = PlanAgreement()
) -> PlanOutcome:
    """Apply the plan that waits, exactly as its user was shown it. Applying it again has the same outcome.

    Args:
        resources: Of the process.
        location: The draft.
        plan_id: The plan that the user means; empty for whichever waits.
        agreement: What is applied, and what is written with it.

    Raises:
        Conflict: None waits, or another one; or what it changes has been changed since.
        InvalidPlan: The operations in place of the plan's cannot be applied.
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    wanted = plan_id or require_pending_plan(resources, location, "").id
    effect_key = make_apply_effect_key(wanted)
    decide = partial(_decide_pending, resources, location, wanted, agreement)
    try:
        return to_plan_outcome(change_draft(resources, location, effect_key, decide))
    except InvalidPlan as invalid:
        if agreement.operations is not None:
            raise
        raise Conflict(f"{CHANGED_TARGETS_MESSAGE} ({invalid})") from None


def _decide_pending(
    resources: Resources, location: DraftLocation, plan_id: str, agreement: PlanAgreement, stored: StoredDraft
) -> DraftChange:
    pending = require_pending_plan(resources, location, plan_id)
    closing = agreement.build_closing(pending)
    if digest_targets(stored.draft, PLAN_OPERATIONS.validate_python(pending.outcome.ops)) != pending.targets_digest:
        raise Conflict(CHANGED_TARGETS_MESSAGE)
    plan = parse_edit_plan(
        {
            "intent": "edit_plan",
            "summary_for_user": pending.outcome.summary,
            "ops": pending.outcome.ops if agreement.operations is None else agreement.operations,
        }
    )
    require_structure(plan, pending.allows_structure)
    applied = apply_operations(stored.draft, plan.ops, resources.clock.now_iso())
    held_members = {"pending_plan_id": None, "expires_at": None, "destructive_reasons": (), "approval_id": None}
    changed = {"status": "applied", "outcomes": applied.outcomes, "ops": tuple(plan.list_wire_operations())}
    outcome = pending.outcome.model_copy(update={**changed, **held_members})
    change = build_plan_change("plan", outcome, applied, make_apply_effect_key(plan_id), pending.turn)
    return replace(change, extra_writes=(build_pending_delete(resources, location, plan_id), *closing))


def apply_submitted_operations(
    resources: Resources, location: DraftLocation, operations: Any, effect_key: str
) -> PlanOutcome:
    """Apply operations that a client sends itself, without a plan and its gate.

    Args:
        resources: Of the process.
        location: The draft.
        operations: A list of operations, as JSON.
        effect_key: The same for every repetition of the request.

    Raises:
        InvalidPlan: They do not match the schema, or cannot be applied.
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    plan = parse_edit_plan({"intent": "edit_plan", "summary_for_user": "Applied operations.", "ops": operations})

    def decide(stored: StoredDraft) -> DraftChange:
        applied = apply_operations(stored.draft, plan.ops, resources.clock.now_iso())
        outcome = PlanOutcome(**describe_plan(plan, "applied"), outcomes=applied.outcomes)
        return build_plan_change("ops", outcome, applied, effect_key, "")

    return to_plan_outcome(change_draft(resources, location, effect_key, decide))
