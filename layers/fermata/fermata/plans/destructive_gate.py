"""Decide whether a plan destroys so much that a person has to agree first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from fermata.domain.base import DomainModel
from fermata.plans.operations import (
    DuplicatePage,
    PlanOperation,
    RemoveBlock,
    RemovePage,
    RenamePage,
    list_touched_slugs,
)

BULK_REMOVAL_COUNT = 3
MAJORITY_RATIO = 0.5

DestructiveKind = Literal["remove_page", "multi_page_plan", "bulk_remove_blocks", "majority_page_wipe"]


class DestructiveReason(DomainModel):
    """Why a plan is held. `message` is for the person who decides."""

    kind: DestructiveKind
    message: str
    slug: str | None = None


def find_destructive_reasons(
    operations: Sequence[PlanOperation], block_counts: Mapping[str, int]
) -> tuple[DestructiveReason, ...]:
    """Return why a plan needs an approval; nothing if it needs none.

    Args:
        operations: The validated operations of the plan.
        block_counts: How many blocks each page has before the plan.
    """
    return (
        *_find_removed_pages(operations, block_counts),
        *_find_several_pages(operations),
        *_find_removed_blocks(operations, block_counts),
    )


def _find_removed_pages(
    operations: Sequence[PlanOperation], block_counts: Mapping[str, int]
) -> list[DestructiveReason]:
    slugs = [operation.page_slug for operation in operations if isinstance(operation, RemovePage)]
    return [
        DestructiveReason(kind="remove_page", slug=slug, message=f"Delete page {slug} with {_say_blocks(count)}.")
        for slug in slugs
        for count in (block_counts.get(slug, 0),)
    ]


def _say_blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _find_several_pages(operations: Sequence[PlanOperation]) -> list[DestructiveReason]:
    slugs = _follow_renames(operations)
    if len(slugs) < 2:
        return []
    return [
        DestructiveReason(kind="multi_page_plan", message=f"Change {len(slugs)} pages in one step: {', '.join(slugs)}.")
    ]


def _follow_renames(operations: Sequence[PlanOperation]) -> list[str]:
    """Return the slugs of changed pages. A page that the plan renames is one page, and so is an unnamed copy."""
    new_slugs: dict[str, str] = {}
    touched: dict[str, None] = {}
    for number, operation in enumerate(operations):
        for slug in list_touched_slugs(operation):
            is_unnamed_copy = isinstance(operation, DuplicatePage) and operation.new_page_slug is None
            name = f"{slug} ({number + 1})" if is_unnamed_copy and slug in touched else slug
            touched[new_slugs.get(name, name)] = None
        if isinstance(operation, RenamePage) and operation.new_page_slug:
            # Later operations name the page by its new slug, which stands for the old one here.
            new_slugs[operation.new_page_slug] = new_slugs.get(operation.page_slug, operation.page_slug)
    return list(touched)


def _find_removed_blocks(
    operations: Sequence[PlanOperation], block_counts: Mapping[str, int]
) -> list[DestructiveReason]:
    removals = Counter(operation.page_slug for operation in operations if isinstance(operation, RemoveBlock))
    reasons = []
    if removals.total() >= BULK_REMOVAL_COUNT:
        message = f"Delete {removals.total()} blocks in one step."
        reasons.append(DestructiveReason(kind="bulk_remove_blocks", message=message))
    for slug, count in removals.items():
        total = block_counts.get(slug, 0)
        if count > total * MAJORITY_RATIO and total:
            message = f"Remove {count} of {total} blocks of {slug}."
            reasons.append(DestructiveReason(kind="majority_page_wipe", slug=slug, message=message))
    return reasons
