"""Apply the operations of a plan to a draft: all of them, or none (decision 0336)."""

from collections.abc import Sequence
from typing import Any

from fermata.domain.base import DomainModel
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.block_operations import apply_block_operation
from fermata.plans.edit_plan import InvalidPlan, PlanViolation
from fermata.plans.operations import (
    CreatePage,
    DuplicatePage,
    MovePage,
    PlanOperation,
    RemovePage,
    RenamePage,
    UpdatePageMeta,
    UpdateSiteConfig,
    list_touched_slugs,
)
from fermata.plans.page_model import SiteDraft
from fermata.plans.page_operations import apply_page_operation
from fermata.plans.staged_site import OperationFailed, StagedSite

_PAGE_OPERATIONS = (
    CreatePage,
    DuplicatePage,
    MovePage,
    RemovePage,
    RenamePage,
    UpdatePageMeta,
    UpdateSiteConfig,
)


class OperationOutcome(DomainModel):
    """What became of one operation, `index` counted from 1. `skipped`: it would have changed nothing."""

    index: int
    op: dict[str, Any]
    skipped: str | None = None
    focus_block_id: str | None = None
    updated_slug: str | None = None


@value_dataclass(frozen=True)
class AppliedOperations:
    """The draft after all operations, and what became of each."""

    draft: SiteDraft
    outcomes: tuple[OperationOutcome, ...]


class PlanFailed(InvalidPlan):
    """An operation could not be applied, so that none was. `applied_count` came before it."""

    def __init__(self, index: int, failure: OperationFailed) -> None:
        super().__init__([PlanViolation(f"ops[{index}]", failure.message)], failure.category)
        self.applied_count = index


def apply_operations(draft: SiteDraft, operations: Sequence[PlanOperation], now: str) -> AppliedOperations:
    """Return the draft with all operations applied. The given draft does not change.

    Args:
        draft: The pages before.
        operations: The validated operations of a plan.
        now: The ISO instant at which changed pages are marked as updated.

    Raises:
        PlanFailed: An operation cannot be applied, or no operation would change anything.
    """
    site = StagedSite(draft, now)
    outcomes: list[OperationOutcome] = []
    for index, operation in enumerate(operations):
        slugs_before = frozenset(site.slugs)
        try:
            is_effective = _apply_operation(site, operation)
        except OperationFailed as failure:
            raise PlanFailed(index, failure) from None
        new_slugs = [slug for slug in site.slugs if slug not in slugs_before]
        outcomes.append(_describe_outcome(index, operation, new_slugs, is_effective=is_effective))
    if outcomes and all(outcome.skipped for outcome in outcomes):
        raise PlanFailed(0, OperationFailed("no_effective_change", "Everything is as the plan wants it already."))
    return AppliedOperations(site.to_draft(), tuple(outcomes))


def _apply_operation(site: StagedSite, operation: PlanOperation) -> bool:
    if isinstance(operation, _PAGE_OPERATIONS):
        return apply_page_operation(site, operation)
    return apply_block_operation(site, operation)


def _describe_outcome(
    index: int, operation: PlanOperation, new_slugs: Sequence[str], *, is_effective: bool
) -> OperationOutcome:
    """Say what became of an operation. `new_slugs` are those that a page has since it."""
    block = getattr(operation, "block", None)
    slugs = new_slugs or list_touched_slugs(operation)
    return OperationOutcome(
        index=index + 1,
        op=operation.to_wire(),
        skipped=None if is_effective else "unchanged_value",
        focus_block_id=block.id if block is not None else getattr(operation, "block_id", None),
        updated_slug=slugs[0] if slugs else None,
    )
