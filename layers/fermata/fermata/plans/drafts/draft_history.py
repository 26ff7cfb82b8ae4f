"""Undo, redo and restore a draft, page by page or a whole change at once, and list what has changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.plans.drafts.draft_rows import DraftLocation, StoredDraft, dump_page, history_sort_key, order_home_first
from fermata.plans.drafts.draft_store import (
    MAX_CHANGED_BYTES,
    MAX_CHANGED_PAGES,
    DraftChange,
    HistoryEntry,
    MadeChange,
    StackMove,
    change_draft,
    load_draft,
    read_former_page,
)
from fermata.plans.drafts.renamed_pages import find_step_group
from fermata.plans.page_model import HOME_SLUG, Page, SiteConfig, SiteDraft
from fermata.plans.page_operations import redirect_links

CHANGED_SINCE_MESSAGE = "Page {} has changed since version {}, so that it cannot be undone by itself. Undo the page."
CHANGED_SETTINGS_MESSAGE = (
    "The settings of the site have changed since version {}, so that it cannot be undone by itself."
)


def get_history_status(stored: StoredDraft, slug: str) -> dict[str, Any]:
    """Return how many steps of a page can be undone and redone."""
    page = stored.get_stored_page(slug)
    undo, redo = len(page.undo_versions), len(page.redo_versions)
    return {"canUndo": undo > 0, "canRedo": redo > 0, "undoCount": undo, "redoCount": redo}


def list_history(resources: Resources, location: DraftLocation, limit: int) -> list[HistoryEntry]:
    """Return what the newest versions have changed, the newest first.

    Args:
        resources: Of the process.
        location: The draft.
        limit: The greatest number of versions.
    """
    items = resources.tables.query_items(
        resources.settings.conversations_table,
        location.pk,
        min_sk="d#h#",
        max_sk="d#h#~",
        descending=True,
        limit=limit,
    )
    return [HistoryEntry.from_wire(json.loads(item["entry"])) for item in items]


def step_page(resources: Resources, location: DraftLocation, slug: str, move: StackMove, key: str = "") -> MadeChange:
    """Undo or redo the newest change of a page. Pages that it renames get their other slugs, and links follow.

    Args:
        key: The same for every repetition of this request; empty for a request that is not repeated.

    Raises:
        InvalidRequest: There is nothing to undo or redo.
        Conflict: The page was renamed, and has changed since under its other slug.
    """
    decide = partial(_decide_page_step, resources, slug, move, effect_key := key or new_id())
    return change_draft(resources, location, effect_key, decide)


def _decide_page_step(
    resources: Resources, slug: str, move: StackMove, effect_key: str, stored: StoredDraft
) -> DraftChange:
    group = find_step_group(stored, slug, move, partial(read_former_page, resources, stored))
    change = _decide_steps(resources, group.slugs, move, effect_key, stored)
    if not group.new_slugs:
        return change
    draft = redirect_links(change.draft, group.new_slugs, group.slugs, resources.clock.now_iso())
    order = [group.new_slugs.get(one, one) for one in stored.draft.slugs]
    outcome = {"navigateToSlug": group.new_slugs.get(slug, slug)}
    return replace(change, draft=_order_pages(draft, order), outcome=outcome)


def undo_version(resources: Resources, location: DraftLocation, version: int, key: str = "") -> MadeChange:
    """Undo all that a version has changed at once: pages, their order, and settings. What it has undone comes back.

    Args:
        key: As in `step_page`.

    Raises:
        NotFound: The version is not kept any more.
        InvalidRequest: It has changed nothing.
        Conflict: A page has changed since, or the settings have.
    """
    item = _read_history(resources, location, version)
    entry, site = HistoryEntry.from_wire(json.loads(item["entry"])), json.loads(item["site"])
    former = _find_history(resources, location, version - 1)
    former_site = json.loads(former["site"]) if former else site
    decide = partial(_decide_version_undo, resources, entry, site, former_site, effect_key := key or new_id())
    return change_draft(resources, location, effect_key, decide)


def _decide_version_undo(
    resources: Resources,
    entry: HistoryEntry,
    site: Mapping[str, Any],
    former_site: Mapping[str, Any],
    effect_key: str,
    stored: StoredDraft,
) -> DraftChange:
    # An undo has moved the page to its redos, so that only a redo brings back what was there before.
    move: StackMove = "redo" if entry.kind == "undo" else "undo"
    change = _decide_steps(resources, entry.slugs, move, effect_key, stored, version=entry.version)
    draft = _take_back_settings(change.draft, entry.version, site, former_site)
    if [slug for slug in stored.draft.slugs if slug in site["order"]] == site["order"]:
        draft = _order_pages(draft, former_site["order"])
    if draft == stored.draft:
        raise InvalidRequest(f"nothing to {move}")
    return replace(change, draft=draft)


def _take_back_settings(
    draft: SiteDraft, version: int, site: Mapping[str, Any], former_site: Mapping[str, Any]
) -> SiteDraft:
    if site["config"] == former_site["config"]:
        return draft
    if draft.config != SiteConfig.from_wire(site["config"]):
        raise Conflict(CHANGED_SETTINGS_MESSAGE.format(version))
    return draft.model_copy(update={"config": SiteConfig.from_wire(former_site["config"])})


def _decide_steps(
    resources: Resources,
    slugs: tuple[str, ...],
    move: StackMove,
    effect_key: str,
    stored: StoredDraft,
    version: int | None = None,
) -> DraftChange:
    pages: dict[str, Page | None] = {}
    for slug in slugs:
        page = stored.get_stored_page(slug)
        versions = page.undo_versions if move == "undo" else page.redo_versions
        newest = page.timeline[-1][0] if page.timeline else None
        if version is not None and newest != version:
            raise Conflict(CHANGED_SINCE_MESSAGE.format(slug, version))
        if not versions:
            raise InvalidRequest(f"nothing to {move}")
        pages[slug] = read_former_page(resources, stored, slug, versions[-1])
    draft = replace_pages(stored.draft, pages)
    if not draft.pages:
        raise Conflict("The last page cannot be removed.")
    outcome = _describe_step(stored, pages, draft)
    summary = f"{move.capitalize()} on {', '.join(slugs) or 'the settings of the site'}"
    return DraftChange(move, summary, draft, effect_key, outcome=outcome, moves=dict.fromkeys(slugs, move))


def _describe_step(stored: StoredDraft, pages: Mapping[str, Page | None], draft: SiteDraft) -> dict[str, Any]:
    """Say where the editor goes if the page is gone now, or was gone before: to a page that the draft has."""
    if not pages:
        return {}
    slug, page = next(iter(pages.items()))
    if page is None:
        return {"navigateToSlug": order_home_first(draft.slugs)[0]}
    return {"navigateToSlug": slug} if stored.get_stored_page(slug).page is None else {}


def replace_pages(draft: SiteDraft, pages: Mapping[str, Page | None]) -> SiteDraft:
    """Return a draft with other contents of some pages. One that comes back stands at the end."""
    merged: dict[str, Page | None] = {**{page.slug: page for page in draft.pages}, **pages}
    slugs = order_home_first([slug for slug, page in merged.items() if page])
    return draft.model_copy(update={"pages": tuple(page for slug in slugs if (page := merged[slug]))})


def restore_version(resources: Resources, location: DraftLocation, version: int, key: str = "") -> MadeChange:
    """Bring back the whole draft as it was at a version. This is itself a change, which can be undone.

    Args:
        key: As in `step_page`.

    Raises:
        NotFound: The version is not kept any more.
        PayloadTooLarge: More pages have changed since than one change has.
    """
    item = _read_history(resources, location, version)
    site = json.loads(item["site"])
    decide = partial(_decide_restore, resources, version, site, effect_key := key or new_id())
    return change_draft(resources, location, effect_key, decide)


def _decide_restore(
    resources: Resources, version: int, site: Mapping[str, Any], effect_key: str, stored: StoredDraft
) -> DraftChange:
    pages: list[Page] = []
    for slug in site["order"]:
        page = stored.get_stored_page(slug)
        former = read_former_page(resources, stored, slug, page.find_content_version(version))
        pages += [former] if former else []
    draft = SiteDraft(pages=tuple(pages), config=SiteConfig.from_wire(site["config"]))
    outcome = {"restoredVersion": version, "slugs": list(draft.slugs)}
    return DraftChange("restore", f"Restored version {version}", draft, effect_key, outcome=outcome)


def _read_history(resources: Resources, location: DraftLocation, version: int) -> dict[str, Any]:
    item = _find_history(resources, location, version)
    if item is None:
        raise NotFound(f"Version {version} does not exist, or is not kept any more.")
    return item


def _find_history(resources: Resources, location: DraftLocation, version: int) -> dict[str, Any] | None:
    return resources.tables.get_item(resources.settings.conversations_table, location.pk, history_sort_key(version))


def import_pages(
    resources: Resources, location: DraftLocation, pages: tuple[Page, ...], *, overwrite: bool
) -> StoredDraft | None:
    """Begin a draft with the pages of a site, in as many changes as they need.

    Args:
        overwrite: Replace the pages of a draft that has some.

    Returns:
        The draft; None if it has pages already and is not overwritten.
    """
    stored = load_draft(resources, location)
    if stored.draft.pages and not overwrite and not stored.is_incomplete:
        return None
    target = {page.slug: page for page in pages}
    while True:
        stored = load_draft(resources, location)
        gone: dict[str, Page | None] = {slug: None for slug in stored.draft.slugs if slug not in target}
        missing = {slug: page for slug, page in target.items() if stored.draft.find_page(slug) != page}
        steps = list((missing | gone).items())
        if not steps and not stored.is_incomplete:
            return stored
        part = _take_part(steps)
        decide = partial(_decide_import, part, tuple(target), len(part) < len(steps), effect_key := new_id())
        change_draft(resources, location, effect_key, decide)


def _take_part(steps: Sequence[tuple[str, Page | None]]) -> dict[str, Page | None]:
    """Return the first pages that fit into one change, at least one."""
    part: dict[str, Page | None] = {}
    size = 0
    for slug, page in steps[:MAX_CHANGED_PAGES]:
        size += len(dump_page(page).encode()) if page else 0
        if part and size > MAX_CHANGED_BYTES // 2:
            break
        part[slug] = page
    return part


def _decide_import(
    part: Mapping[str, Page | None], order: tuple[str, ...], is_incomplete: bool, effect_key: str, stored: StoredDraft
) -> DraftChange:
    draft = replace_pages(stored.draft, part)
    summary = f"Imported {len(part)} pages"
    return DraftChange("bootstrap", summary, _order_pages(draft, order), effect_key, is_incomplete=is_incomplete)


def _order_pages(draft: SiteDraft, order: Sequence[str]) -> SiteDraft:
    """Return a draft whose pages have this order: the home page first, those that are not in it last."""
    places = {slug: place for place, slug in enumerate(order)}
    pages = sorted(draft.pages, key=lambda page: (page.slug != HOME_SLUG, places.get(page.slug, len(places))))
    return draft.model_copy(update={"pages": tuple(pages)})
