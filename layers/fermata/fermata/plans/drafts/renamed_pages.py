"""Find the page that a step back or forward belongs to as well: the same page under its other slug.

A page that a version has renamed is gone under its old slug and new under the other one, and each slug has a history of
its own. A step over the rename takes both, so that the page is there once.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from fermata.domain.errors import Conflict
from fermata.plans.drafts.draft_rows import ABSENT, StoredDraft, StoredPage
from fermata.plans.drafts.draft_store import StackMove
from fermata.plans.page_model import Page

CHANGED_NAMESAKE_MESSAGE = "The page is called {} now, and has changed since. Go back on that page first."
ReadFormer = Callable[[str, int], Page | None]
"""Returns the content of a page, given its slug and the version of the content."""


class RenameStep(NamedTuple):
    """A step over a rename: the slug under which the page is gone afterwards, and the one that it has then."""

    leaving: str
    returning: str


def find_rename_step(stored: StoredDraft, slug: str, move: StackMove, read_former: ReadFormer) -> RenameStep | None:
    """Return the rename that a step on a page goes over; None where it goes over none.

    Args:
        stored: The draft.
        slug: The page of the step.
        move: The step.
        read_former: Reads a content that the step may lead to.

    Raises:
        Conflict: The page has other changes under its other slug, which have to be taken back first.
    """
    page = stored.get_stored_page(slug)
    goal = _get_goal(page, move)
    if goal is None or (page.page is None) == (goal == ABSENT) or (page.page is not None and goal != ABSENT):
        return None
    if page.page is not None:
        for other in _iter_changed_at_once(stored, page, is_there=False):
            former = _read_goal(other, move, read_former)
            if former is not None and former.id == page.page.id:
                return RenameStep(slug, other.slug)
        return None
    former = read_former(slug, goal)
    for other in _iter_changed_at_once(stored, page, is_there=True):
        if former is not None and other.page is not None and other.page.id == former.id:
            if _get_goal(other, move) != ABSENT:
                raise Conflict(CHANGED_NAMESAKE_MESSAGE.format(other.slug))
            return RenameStep(other.slug, slug)
    return None


def _get_goal(page: StoredPage, move: StackMove) -> int | None:
    versions = page.undo_versions if move == "undo" else page.redo_versions
    return versions[-1] if versions else None


def _read_goal(page: StoredPage, move: StackMove, read_former: ReadFormer) -> Page | None:
    goal = _get_goal(page, move)
    return None if goal in (None, ABSENT) else read_former(page.slug, goal or ABSENT)


def _iter_changed_at_once(stored: StoredDraft, page: StoredPage, *, is_there: bool) -> Iterator[StoredPage]:
    """Yield the pages that came when the page went, or went when it came."""
    moment = _find_coming_or_going(page)
    for other in stored.stored_pages.values():
        if (other.page is not None) == is_there and _find_coming_or_going(other) == moment != ABSENT:
            yield other


def _find_coming_or_going(page: StoredPage) -> int:
    """Return the version since which the page is there, or since which it is not."""
    is_there, since = page.page is not None, ABSENT
    for version, content in reversed(page.timeline):
        if (content != ABSENT) != is_there:
            break
        since = version
    return since
