"""Take a submitted plan: normalize and validate it, and apply it at once or hold it for its user (decision 0338)."""

from dataclasses import replace
from functools import partial

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.apply_operations import AppliedOperations, PlanFailed, apply_operations
from fermata.plans.apply_plan import apply_pending_plan
from fermata.plans.destructive_gate import DestructiveReason, find_destructive_reasons
from fermata.plans.drafts.draft_rows import DraftLocation, StoredDraft
from fermata.plans.drafts.draft_store import DraftChange, change_draft, load_draft
from fermata.plans.drafts.multi_step_request import build_chain_writes
from fermata.plans.drafts.pending_plan import (
    BuildListing,
    PendingPlan,
    digest_targets,
    list_nowhere,
    load_pending_plan,
    make_apply_effect_key,
    make_expiry,
    store_pending_plan,
)
from fermata.plans.edit_plan import EditPlan, InvalidPlan, parse_edit_plan
from fermata.plans.normalization.normalize_plan import NormalizedPlan, normalize_plan
from fermata.plans.normalization.plan_context import PlanContext
from fermata.plans.plan_change import build_plan_change, require_structure, to_plan_outcome
from fermata.plans.plan_outcome import PlanOutcome, describe_plan
from fermata.plans.plan_submission import PlanSubmission
from fermata.plans.user_intent import asks_to_plan_first


@value_dataclass(frozen=True)
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


class _AppliedSince(Exception):
    """The call is repeated, and its plan, which has waited, was applied in the meantime."""


class _Answered(Exception):
    """The plan changes nothing: it answers or asks its user."""

    def __init__(self, plan: EditPlan) -> None:
        super().__init__()
        self.plan = plan


def submit_plan(
    resources: Resources,
    location: DraftLocation,
    submission: PlanSubmission,
    build_listing: BuildListing = list_nowhere,
) -> PlanOutcome:
    """Take a plan. The same submission again has the same outcome, and is applied once.

    Args:
        resources: Of the process.
        location: The draft.
        submission: The plan.
        build_listing: Lists a plan that has to wait, as `store_pending_plan`.

    Returns:
        What became of it. A plan that cannot be accepted is a `validation_error` with feedback for the model.

    Raises:
        PayloadTooLarge, ServiceUnavailable: As `change_draft`.
    """
    pending = load_pending_plan(resources, location)
    if pending is not None and pending.id == submission.plan_id:
        return pending.outcome
    decide = partial(_decide, resources, submission)
    try:
        return to_plan_outcome(change_draft(resources, location, submission.effect_key, decide))
    except InvalidPlan as invalid:
        return _describe_invalid(submission, load_draft(resources, location), invalid, resources.clock.now_iso())
    except _Answered as answered:
        is_question = answered.plan.intent != "content_answer"
        return PlanOutcome(**describe_plan(answered.plan, "needs_clarification" if is_question else "info"))
    except _AppliedSince:
        return apply_pending_plan(resources, location, submission.plan_id)
    except _Held as held:
        return _hold(resources, location, submission, held, build_listing)


def prepare_plan(submission: PlanSubmission, stored: StoredDraft, now: str) -> PreparedPlan:
    """Normalize and validate a plan, and apply it to a copy of the draft.

    Raises:
        InvalidPlan: It cannot be accepted.
    """
    normalized = _normalize(submission, stored, now)
    plan = parse_edit_plan(normalized.candidate)
    if not plan.ops:
        return PreparedPlan(normalized, plan, AppliedOperations(stored.draft, ()))
    require_structure(plan, submission.allows_structure)
    applied = apply_operations(stored.draft, plan.ops, now)
    block_counts = {page.slug: len(page.blocks) for page in stored.draft.pages}
    reasons = find_destructive_reasons(plan.ops, block_counts)
    is_wanted = submission.is_only_planned or asks_to_plan_first(submission.message)
    return PreparedPlan(normalized, plan, applied, reasons, is_held=bool(reasons) or is_wanted)


def _normalize(submission: PlanSubmission, stored: StoredDraft, now: str) -> NormalizedPlan:
    context = PlanContext(submission.default_slug, stored.draft.pages, submission.message, now=now)
    return normalize_plan(submission.candidate, context)


def _decide(resources: Resources, submission: PlanSubmission, stored: StoredDraft) -> DraftChange:
    if make_apply_effect_key(submission.plan_id) in stored.effects:
        raise _AppliedSince
    prepared = prepare_plan(submission, stored, resources.clock.now_iso())
    if not prepared.plan.ops:
        raise _Answered(prepared.plan)
    chain_writes = build_chain_writes(resources, stored.location, submission.plan_id, submission.place)
    if prepared.is_held:
        raise _Held(prepared, stored)
    outcome = PlanOutcome(
        **describe_plan(prepared.plan, "applied"),
        outcomes=prepared.applied.outcomes,
        normalized_from=prepared.normalized.normalized_from,
    )
    change = build_plan_change("plan", outcome, prepared.applied, submission.effect_key, submission.turn)
    return replace(change, extra_writes=chain_writes)


def _hold(
    resources: Resources,
    location: DraftLocation,
    submission: PlanSubmission,
    held: _Held,
    build_listing: BuildListing,
) -> PlanOutcome:
    expires, expires_at = make_expiry(resources)
    prepared, plan_id = held.prepared, submission.plan_id
    outcome = PlanOutcome(
        **describe_plan(prepared.plan, "plan_ready"),
        normalized_from=prepared.normalized.normalized_from,
        pending_plan_id=plan_id,
        approval_id=submission.approval_id or None,
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
        allows_structure=submission.allows_structure,
    )

    def list_with_chain(plan: PendingPlan, replaced: PendingPlan | None) -> tuple[Write, ...]:
        return (
            *build_listing(plan, replaced),
            *build_chain_writes(resources, location, plan_id, submission.place),
        )

    store_pending_plan(resources, location, pending, list_with_chain)
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
