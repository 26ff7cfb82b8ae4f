"""Find the pages that a step back or forward takes together: those whose slugs a version has given to other pages.

Each slug has a history of its own. A page that a version has renamed is gone under one slug and there under another;
two pages may have changed their slugs with each other. A step over that takes all of these slugs, so that each page is
there once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fermata.domain.errors import Conflict
from fermata.plans.drafts.draft_rows import ABSENT, StoredDraft, StoredPage
from fermata.plans.drafts.draft_store import StackMove
from fermata.plans.page_model import Page

CHANGED_NAMESAKE_MESSAGE = "The page is called {} now, and has changed since. Go back on that page first."
TAKEN_SLUG_MESSAGE = "The page would be called {}, and that page has changed since. Go back on that page first."
ReadFormer = Callable[[str, int], Page | None]
"""Returns the content of a page, given its slug and the version of the content."""


class StepGroup(NamedTuple):
    """What a step takes: slugs, and which slug gets the page of which other one."""

    slugs: tuple[str, ...]
    new_slugs: Mapping[str, str]


class _Step(NamedTuple):
    slug: str
    current: Page | None
    goal: Page | None

    @property
    def is_other_page(self) -> bool:
        """Whether the slug is that of another page afterwards, or of none."""
        return _get_id(self.current) != _get_id(self.goal)


def find_step_group(stored: StoredDraft, slug: str, move: StackMove, read_former: ReadFormer) -> StepGroup:
    """Return what a step on a page takes: the page alone, unless its version gave its slug to another page.

    Args:
        stored: The draft.
        slug: The page of the step.
        move: The step.
        read_former: Reads a content that the step may lead to.

    Raises:
        Conflict: A page has other changes under its other slug, which have to be taken back first.
    """
    page = stored.get_stored_page(slug)
    if not (page.undo_versions if move == "undo" else page.redo_versions):
        return StepGroup((slug,), {})
    first, version = _read_step(page, move, read_former), _find_change(page, move)
    if not first.is_other_page:
        return StepGroup((slug,), {})
    together = [
        one for one in stored.stored_pages.values() if version is not None and _find_change(one, move) == version
    ]
    steps = [step for one in together if (step := _read_step(one, move, read_former)).is_other_page]
    group = _connect(first, steps)
    _require_page_is_nowhere_else(group, stored)
    if version is not None:
        others = [one for one in stored.stored_pages.values() if one not in together]
        _require_unchanged(group, others, version, move, read_former)
    return StepGroup(tuple(step.slug for step in group), _map_slugs(group))


def _find_change(page: StoredPage, move: StackMove) -> int | None:
    """Return the version whose change a step takes back or makes again; None if there is no such step."""
    versions = page.undo_versions if move == "undo" else page.redo_versions
    if not versions:
        return None
    before, after = (versions[-1], page.since) if move == "undo" else (page.since, versions[-1])
    if after != ABSENT:
        return after  # a content is named by the version that has made it
    previous = None
    for version, content in page.timeline:
        if content == ABSENT and previous in (None, before):
            return version
        previous = content
    return None


def _read_step(page: StoredPage, move: StackMove, read_former: ReadFormer) -> _Step:
    versions = page.undo_versions if move == "undo" else page.redo_versions
    return _Step(page.slug, page.page, read_former(page.slug, versions[-1]))


def _get_id(page: Page | None) -> str:
    return page.id if page else ""


def _connect(first: _Step, steps: list[_Step]) -> list[_Step]:
    """Return the steps through which pages go on from one slug to another, beginning with one of them."""
    group = [first]
    for step in group:
        ids = {_get_id(step.current), _get_id(step.goal)} - {""}
        group += [one for one in steps if one not in group and ids & {_get_id(one.current), _get_id(one.goal)}]
    return group


def _map_slugs(group: list[_Step]) -> dict[str, str]:
    goals = {_get_id(step.goal): step.slug for step in group}
    return {step.slug: goals[step.current.id] for step in group if step.current and step.current.id in goals}


def _require_page_is_nowhere_else(group: list[_Step], stored: StoredDraft) -> None:
    """Refuse to bring back a page that has another slug by now, whatever has given it that."""
    slugs, goal = {step.slug for step in group}, {_get_id(step.goal) for step in group}
    for other in stored.stored_pages.values():
        if other.page is not None and other.slug not in slugs and other.page.id in goal:
            raise Conflict(CHANGED_NAMESAKE_MESSAGE.format(other.slug))


def _require_unchanged(
    group: list[_Step], others: list[StoredPage], version: int, move: StackMove, read_former: ReadFormer
) -> None:
    current, goal = ({_get_id(step.current) for step in group}, {_get_id(step.goal) for step in group})
    for other in others:
        for content in _iter_contents_beside(other, version, move):
            if _get_id(read_former(other.slug, content)) in current - goal - {""}:
                raise Conflict(TAKEN_SLUG_MESSAGE.format(other.slug))


def _iter_contents_beside(page: StoredPage, version: int, move: StackMove) -> Iterator[int]:
    """Yield the content that a page had before a version that has changed it; before a redo, the one it got by it."""
    previous = ABSENT
    for changed_in, content in page.timeline:
        if changed_in == version:
            yield previous if move == "undo" else content
        previous = content
