"""Make of an applied plan the change of its draft, and of the change that was stored the outcome of the plan."""

from fermata.domain.errors import Conflict
from fermata.plans.apply_operations import AppliedOperations
from fermata.plans.drafts.draft_store import ChangeKind, DraftChange, MadeChange
from fermata.plans.edit_plan import EditPlan
from fermata.plans.operations import STRUCTURAL_OPERATIONS
from fermata.plans.plan_outcome import PlanOutcome

STRUCTURAL_MESSAGE = "Structural edits are disabled for this site context."


def to_plan_outcome(made: MadeChange) -> PlanOutcome:
    """Return the outcome that is stored with a change, and the version that it has made."""
    return PlanOutcome.from_wire({**made.outcome, "previewVersion": made.version})


def require_structure(plan: EditPlan, is_allowed: bool) -> None:
    """Refuse a plan that adds, removes or moves blocks or items where the editor does not let plans do that.

    Raises:
        Conflict: The plan does, and it is not allowed.
    """
    if not is_allowed and any(operation.op in STRUCTURAL_OPERATIONS for operation in plan.ops):
        raise Conflict(STRUCTURAL_MESSAGE)


def build_plan_change(
    kind: ChangeKind, outcome: PlanOutcome, applied: AppliedOperations, effect_key: str, turn: str
) -> DraftChange:
    """Return the change of a draft by applied operations, with the outcome that a repetition is answered with.

    Args:
        kind: What has changed the draft.
        outcome: What becomes of the plan.
        applied: The draft as it will be.
        effect_key: The same for every repetition.
        turn: The turn in which the plan was submitted; empty for none.
    """
    return DraftChange(kind, outcome.summary, applied.draft, effect_key, turn=turn, outcome=outcome.to_wire())
