"""Decide whether a plan destroys so much that a person has to agree first."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from fermata.plans.slugs import make_copy_slug

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
        *_find_several_pages(operations, block_counts),
        *_find_removed_blocks(operations, block_counts),
    )


def _find_removed_pages(
    operations: Sequence[PlanOperation], block_counts: Mapping[str, int]
) -> list[DestructiveReason]:
    touched = _iter_touched_pages(operations, block_counts)
    pages = [page for operation, names in touched for page in names if isinstance(operation, RemovePage)]
    return [
        DestructiveReason(kind="remove_page", slug=page, message=f"Delete page {page} with {_say_blocks(count)}.")
        for page in pages
        for count in (block_counts.get(page, 0),)
    ]


def _say_blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _find_several_pages(operations: Sequence[PlanOperation], slugs: Collection[str]) -> list[DestructiveReason]:
    pages = list(dict.fromkeys(page for _, touched in _iter_touched_pages(operations, slugs) for page in touched))
    if len(pages) < 2:
        return []
    return [
        DestructiveReason(kind="multi_page_plan", message=f"Change {len(pages)} pages in one step: {', '.join(pages)}.")
    ]


def _iter_touched_pages(
    operations: Sequence[PlanOperation], slugs: Collection[str]
) -> Iterator[tuple[PlanOperation, tuple[str, ...]]]:
    """Yield each operation with the pages that it changes, by the names that they have before the plan.

    A page that the plan renames is one page, and whatever gets its former slug, or that of a removed one, is another.
    """
    names = {slug: slug for slug in slugs}
    for operation in operations:
        touched = _list_slugs(operation, names)
        yield operation, tuple(names.setdefault(slug, slug) for slug in touched)
        if isinstance(operation, RemovePage):
            names[operation.page_slug] = f"{operation.page_slug} (new)"
        if isinstance(operation, RenamePage) and operation.new_page_slug:
            old_slug, new_slug = operation.page_slug, operation.new_page_slug
            name = names.pop(old_slug)
            names |= {old_slug: f"{old_slug} (new)", new_slug: name} if old_slug != new_slug else {new_slug: name}


def _list_slugs(operation: PlanOperation, taken: Collection[str]) -> tuple[str, ...]:
    if isinstance(operation, DuplicatePage) and operation.new_page_slug is None:
        return (make_copy_slug(operation.page_slug, taken),)
    return list_touched_slugs(operation)


def _find_removed_blocks(
    operations: Sequence[PlanOperation], block_counts: Mapping[str, int]
) -> list[DestructiveReason]:
    touched = _iter_touched_pages(operations, block_counts)
    removals = Counter(page for operation, pages in touched for page in pages if isinstance(operation, RemoveBlock))
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
