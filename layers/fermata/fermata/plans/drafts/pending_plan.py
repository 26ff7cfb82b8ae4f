"""Keep the plan that waits for its user to agree: one of a session, for an hour (decision 0338)."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Delete,
    Item,
    Put,
    TransactionCanceled,
    Write,
)
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.errors import Conflict, ServiceUnavailable
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.operations import PlanOperation
from fermata.plans.page_model import SiteDraft
from fermata.plans.plan_outcome import PlanOutcome

PENDING_PLAN_SECONDS = 3600
PENDING_KEY = "d#plan"
NO_PENDING_PLAN = "There is no plan that waits to be applied. It may have expired; ask for it again."
OTHER_PENDING_PLAN = "Another plan waits to be applied. Look at it first."
APPLIED_PLAN = "This plan was applied already. Undo it if it is not wanted."
MAX_PENDING_ATTEMPTS = 5


class PendingPlan(DomainModel):
    """A plan that waits.

    Attributes:
        outcome: What the user was shown, with the normalized operations and the id of the approval.
        targets_digest: Of what the plan changes, as it was when the plan was made.
        expires: Epoch seconds.
        allows_structure: As of the submission, for what is applied in its place.
    """

    id: str
    turn: str
    outcome: PlanOutcome
    targets_digest: str
    at: str
    expires: int
    allows_structure: bool = True


def make_pending_plan_id(effect_key: str) -> str:
    """Return the id of the plan that a call has submitted: the same for every repetition of the call."""
    return hashlib.sha256(effect_key.encode()).hexdigest()[:24]


BuildListing = Callable[[PendingPlan, PendingPlan | None], tuple[Write, ...]]
"""Returns further writes of the transaction that holds a plan, given it and the one that it replaces."""
BuildClosing = Callable[[PendingPlan], tuple[Write, ...]]
"""Returns further writes of the transaction with which a plan stops waiting. What it raises refuses that."""


def list_nowhere(_plan: PendingPlan, _replaced: PendingPlan | None) -> tuple[Write, ...]:
    """Hold a plan without listing it for others."""
    return ()


def close_nothing(_plan: PendingPlan) -> tuple[Write, ...]:
    """Let a plan that is listed nowhere stop waiting."""
    return ()


def store_pending_plan(
    resources: Resources, location: DraftLocation, plan: PendingPlan, build_listing: BuildListing = list_nowhere
) -> None:
    """Store a plan that waits, in place of an older one. A newer one stays.

    Args:
        resources: Of the process.
        location: The draft.
        plan: The plan.
        build_listing: Builds the writes that list it for whoever may approve it, and unlist the one it replaces.

    Raises:
        ServiceUnavailable: What waits has changed in each of `MAX_PENDING_ATTEMPTS` attempts.
    """
    item: Item = {"pk": location.pk, "sk": PENDING_KEY, "v": 1, "id": plan.id, "at": plan.at, "ttl": plan.expires}
    item |= {"plan": json.dumps(plan.to_wire(), ensure_ascii=False), "turn": plan.turn}
    table = resources.settings.conversations_table
    for _ in range(MAX_PENDING_ATTEMPTS):
        replaced = load_pending_plan(resources, location)
        if replaced is not None and (replaced.id == plan.id or replaced.at > plan.at):
            return
        condition = "id = :replaced" if replaced else "attribute_not_exists(pk) OR #ttl <= :now"
        values: Item = {":replaced": replaced.id} if replaced else {":now": int(resources.clock.time())}
        put = Put(table, item, condition=condition, values=values, names={} if replaced else {"#ttl": "ttl"})
        try:
            resources.tables.write_items(put, *build_listing(plan, replaced))
        except (TransactionCanceled, ConditionFailed):
            continue
        return
    raise ServiceUnavailable("Other requests are changing the plans of this draft. Try again.", retry_after=1)


def load_pending_plan(resources: Resources, location: DraftLocation) -> PendingPlan | None:
    """Return the plan that waits, or None if there is none or its hour is over."""
    item = resources.tables.get_item(resources.settings.conversations_table, location.pk, PENDING_KEY)
    if item is None or item["ttl"] <= resources.clock.time():
        return None
    return PendingPlan.from_wire(json.loads(item["plan"]))


def require_pending_plan(resources: Resources, location: DraftLocation, plan_id: str) -> PendingPlan:
    """Return the plan that waits.

    Args:
        plan_id: The plan that the user means; empty for whichever waits.

    Raises:
        Conflict: None waits, or another one.
    """
    plan = load_pending_plan(resources, location)
    if plan is None:
        raise Conflict(NO_PENDING_PLAN)
    if plan_id and plan_id != plan.id:
        raise Conflict(OTHER_PENDING_PLAN)
    return plan


def build_pending_delete(resources: Resources, location: DraftLocation, plan_id: str) -> Delete:
    """Build the write that takes a plan from where it waits. It fails if another one waits there, or none."""
    return Delete(
        resources.settings.conversations_table,
        location.pk,
        PENDING_KEY,
        condition="id = :plan",
        values={":plan": plan_id},
    )


def discard_pending_plan(
    resources: Resources, location: DraftLocation, plan_id: str, build_closing: BuildClosing = close_nothing
) -> PendingPlan | None:
    """Drop the plan that waits.

    Args:
        resources: Of the process.
        location: The draft.
        plan_id: The plan that the user means; empty for whichever waits.
        build_closing: Builds the writes that say so where the plan is listed.

    Returns:
        The plan; None if none waits.

    Raises:
        Conflict: Another plan waits, or this one was applied.
        ServiceUnavailable: What waits has changed in each of `MAX_PENDING_ATTEMPTS` attempts.
    """
    for _ in range(MAX_PENDING_ATTEMPTS):
        plan = load_pending_plan(resources, location)
        if (plan is None or plan.id != plan_id) and plan_id and _was_applied(resources, location, plan_id):
            raise Conflict(APPLIED_PLAN)
        if plan is None:
            return None
        if plan_id and plan_id != plan.id:
            raise Conflict(OTHER_PENDING_PLAN)
        try:
            resources.tables.write_items(build_pending_delete(resources, location, plan.id), *build_closing(plan))
        except (TransactionCanceled, ConditionFailed):
            continue
        return plan
    raise ServiceUnavailable("Other requests are changing the plans of this draft. Try again.", retry_after=1)


def make_apply_effect_key(plan_id: str) -> str:
    """Return the effect key of the change that applies a plan which has waited."""
    return f"plan/{plan_id}"


def _was_applied(resources: Resources, location: DraftLocation, plan_id: str) -> bool:
    return make_apply_effect_key(plan_id) in load_draft(resources, location).effects


def make_expiry(resources: Resources) -> tuple[int, str]:
    """Return when a plan that is made now expires, in epoch seconds and as an ISO instant."""
    expires = int(resources.clock.time()) + PENDING_PLAN_SECONDS
    return expires, iso_from_epoch(expires)


def digest_targets(draft: SiteDraft, operations: Sequence[PlanOperation]) -> str:
    """Return a digest of what operations change or remove, so that a plan is not applied to something else.

    It covers the blocks that are named, and the pages that are renamed, copied or removed; not what stands beside them.
    """
    targets = [_describe_target(draft, operation) for operation in operations]
    return hashlib.sha256(json.dumps(targets, sort_keys=True).encode()).hexdigest()


def _describe_target(draft: SiteDraft, operation: PlanOperation) -> Any:
    slug, block_id = getattr(operation, "page_slug", None), getattr(operation, "block_id", None)
    page = draft.find_page(slug) if slug else None
    if page is None:
        return None
    if block_id is not None:
        block = page.find_block(block_id)
        return block.to_wire() if block else None
    is_about_page = operation.op in ("remove_page", "rename_page", "duplicate_page")
    return page.to_wire() if is_about_page else page.id
