"""Take a submitted plan: normalize and validate it, and apply it at once or hold it for its user (decision 0338)."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.plans.apply_operations import AppliedOperations, PlanFailed, apply_operations
from fermata.plans.destructive_gate import DestructiveReason, find_destructive_reasons
from fermata.plans.drafts.draft_rows import DraftLocation, StoredDraft
from fermata.plans.drafts.draft_store import ChangeKind, DraftChange, MadeChange, change_draft, load_draft
from fermata.plans.drafts.pending_plan import (
    PendingPlan,
    build_pending_delete,
    digest_targets,
    load_pending_plan,
    make_expiry,
    make_pending_plan_id,
    require_pending_plan,
    store_pending_plan,
)
from fermata.plans.edit_plan import EditPlan, InvalidPlan, parse_edit_plan
from fermata.plans.message_words import asks_to_plan_first
from fermata.plans.normalization.normalize_plan import NormalizedPlan, normalize_plan
from fermata.plans.normalization.plan_context import PlanContext
from fermata.plans.operations import PLAN_OPERATIONS, STRUCTURAL_OPERATIONS
from fermata.plans.plan_outcome import PlanOutcome, describe_plan

CHANGED_TARGETS_MESSAGE = "What the plan changes has been changed since. Ask for the plan again."
STRUCTURAL_MESSAGE = "Structural edits are disabled for this site context."


@dataclass(frozen=True)
class PlanSubmission:
    """A plan as a model has submitted it, and what its user wants.

    Attributes:
        is_only_planned: Hold the plan, whatever it changes.
        allows_structure: Whether the editor lets plans add, remove and move blocks and items.
        effect_key: The same for every repetition of the call.
    """

    candidate: Any
    default_slug: str
    message: str
    effect_key: str
    turn: str = ""
    is_only_planned: bool = False
    allows_structure: bool = True


@dataclass(frozen=True)
class PreparedPlan:
    """A valid plan, the draft as it would be, and why it is held; no reasons for one that is applied at once."""

    normalized: NormalizedPlan
    plan: EditPlan
    applied: AppliedOperations
    reasons: tuple[DestructiveReason, ...] = ()
    is_held: bool = False


class _Held(Exception):
    """The plan waits for its user instead of being applied."""

    def __init__(self, prepared: PreparedPlan, stored: StoredDraft) -> None:
        super().__init__()
        self.prepared, self.stored = prepared, stored


class _Answered(Exception):
    """The plan changes nothing: it answers or asks its user."""

    def __init__(self, plan: EditPlan) -> None:
        super().__init__()
        self.plan = plan


def submit_plan(resources: Resources, location: DraftLocation, submission: PlanSubmission) -> PlanOutcome:
    """Take a plan. The same submission again has the same outcome, and is applied once.

    Returns:
        What became of it. A plan that cannot be accepted is a `validation_error` with feedback for the model.

    Raises:
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    pending = load_pending_plan(resources, location)
    if pending is not None and pending.id == make_pending_plan_id(submission.effect_key):
        return pending.outcome
    decide = partial(_decide, resources, submission)
    try:
        return _to_outcome(change_draft(resources, location, submission.effect_key, decide))
    except InvalidPlan as invalid:
        return _describe_invalid(submission, load_draft(resources, location), invalid, resources.clock.now_iso())
    except _Answered as answered:
        is_question = answered.plan.intent != "content_answer"
        return PlanOutcome(**describe_plan(answered.plan, "needs_clarification" if is_question else "info"))
    except _Held as held:
        return _hold(resources, location, submission, held)


def _to_outcome(made: MadeChange) -> PlanOutcome:
    return PlanOutcome.from_wire({**made.outcome, "previewVersion": made.version})


def prepare_plan(submission: PlanSubmission, stored: StoredDraft, now: str) -> PreparedPlan:
    """Normalize and validate a plan, and apply it to a copy of the draft.

    Raises:
        InvalidPlan: It cannot be accepted.
    """
    normalized = _normalize(submission, stored, now)
    plan = parse_edit_plan(normalized.candidate)
    if not plan.ops:
        return PreparedPlan(normalized, plan, AppliedOperations(stored.draft, ()))
    if not submission.allows_structure and any(operation.op in STRUCTURAL_OPERATIONS for operation in plan.ops):
        raise Conflict(STRUCTURAL_MESSAGE)
    applied = apply_operations(stored.draft, plan.ops, now)
    block_counts = {page.slug: len(page.blocks) for page in stored.draft.pages}
    reasons = find_destructive_reasons(plan.ops, block_counts)
    is_wanted = submission.is_only_planned or asks_to_plan_first(submission.message)
    return PreparedPlan(normalized, plan, applied, reasons, is_held=bool(reasons) or is_wanted)


def _normalize(submission: PlanSubmission, stored: StoredDraft, now: str) -> NormalizedPlan:
    context = PlanContext(submission.default_slug, stored.draft.pages, submission.message, now=now)
    return normalize_plan(submission.candidate, context)


def _decide(resources: Resources, submission: PlanSubmission, stored: StoredDraft) -> DraftChange:
    prepared = prepare_plan(submission, stored, resources.clock.now_iso())
    if not prepared.plan.ops:
        raise _Answered(prepared.plan)
    if prepared.is_held:
        raise _Held(prepared, stored)
    outcome = PlanOutcome(
        **describe_plan(prepared.plan, "applied"),
        outcomes=prepared.applied.outcomes,
        normalized_from=prepared.normalized.normalized_from,
    )
    return _build_change("plan", outcome, prepared.applied, submission.effect_key, submission.turn)


def _build_change(
    kind: ChangeKind, outcome: PlanOutcome, applied: AppliedOperations, effect_key: str, turn: str
) -> DraftChange:
    return DraftChange(kind, outcome.summary, applied.draft, effect_key, turn=turn, outcome=outcome.to_wire())


def _hold(resources: Resources, location: DraftLocation, submission: PlanSubmission, held: _Held) -> PlanOutcome:
    expires, expires_at = make_expiry(resources)
    prepared = held.prepared
    plan_id = make_pending_plan_id(submission.effect_key)
    outcome = PlanOutcome(
        **describe_plan(prepared.plan, "plan_ready"),
        normalized_from=prepared.normalized.normalized_from,
        pending_plan_id=plan_id,
        expires_at=expires_at,
        destructive_reasons=prepared.reasons,
    )
    pending = PendingPlan(
        id=plan_id,
        turn=submission.turn,
        outcome=outcome,
        targets_digest=digest_targets(held.stored.draft, prepared.plan.ops),
        at=resources.clock.now_iso(),
        expires=expires,
    )
    store_pending_plan(resources, location, pending)
    return outcome


def _describe_invalid(submission: PlanSubmission, stored: StoredDraft, invalid: InvalidPlan, now: str) -> PlanOutcome:
    normalized = _normalize(submission, stored, now)
    return PlanOutcome(
        status="validation_error",
        summary=str(invalid),
        changes=tuple(f"{one.path}: {one.message}" for one in invalid.violations),
        ops=tuple(operation for operation in normalized.candidate["ops"] if isinstance(operation, dict)),
        normalized_from=normalized.normalized_from,
        error_code=invalid.category,
        applied_count=invalid.applied_count if isinstance(invalid, PlanFailed) else None,
        feedback=invalid.build_feedback(normalized.operation_count),
    )


def apply_pending_plan(resources: Resources, location: DraftLocation, plan_id: str) -> PlanOutcome:
    """Apply the plan that waits, exactly as its user was shown it. Applying it again has the same outcome.

    Args:
        plan_id: The plan that the user means; empty for whichever waits.

    Raises:
        Conflict: None waits, or another one; or what it changes has been changed since.
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    wanted = plan_id or require_pending_plan(resources, location, "").id
    effect_key = f"plan/{wanted}"
    decide = partial(_decide_pending, resources, location, wanted, effect_key)
    try:
        return _to_outcome(change_draft(resources, location, effect_key, decide))
    except InvalidPlan as invalid:
        raise Conflict(f"{CHANGED_TARGETS_MESSAGE} ({invalid})") from None


def _decide_pending(
    resources: Resources, location: DraftLocation, plan_id: str, effect_key: str, stored: StoredDraft
) -> DraftChange:
    pending = require_pending_plan(resources, location, plan_id)
    operations = PLAN_OPERATIONS.validate_python(pending.outcome.ops)
    if digest_targets(stored.draft, operations) != pending.targets_digest:
        raise Conflict(CHANGED_TARGETS_MESSAGE)
    applied = apply_operations(stored.draft, operations, resources.clock.now_iso())
    held_members = {"pending_plan_id": None, "expires_at": None, "destructive_reasons": ()}
    outcome = pending.outcome.model_copy(update={"status": "applied", "outcomes": applied.outcomes, **held_members})
    change = _build_change("plan", outcome, applied, effect_key, pending.turn)
    return replace(change, extra_writes=(build_pending_delete(resources, location, plan_id),))


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
        return _build_change("ops", outcome, applied, effect_key, "")

    return _to_outcome(change_draft(resources, location, effect_key, decide))
