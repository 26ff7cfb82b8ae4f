"""Read a draft, and store a change of it in one transaction that replaces one version (decision 0337)."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.errors import ApiError, PayloadTooLarge, ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.drafts.draft_rows import (
    ABSENT,
    HEAD_KEY,
    LOG_LENGTH,
    MAX_UNDO_STEPS,
    DraftLocation,
    StoredDraft,
    StoredPage,
    draft_from_items,
    dump_page,
    history_sort_key,
    load_page,
    order_home_first,
    page_sort_key,
    snapshot_sort_key,
)
from fermata.plans.drafts.repeated_request import require_same_request
from fermata.plans.edit_plan import InvalidPlan
from fermata.plans.page_model import Page, SiteDraft

MAX_CHANGED_PAGES = 18
"""Each takes up to five of the hundred writes of a transaction; seven are for head, log and a plan that was decided."""
MAX_DRAFT_PAGE_BYTES = 300_000
MAX_CHANGED_BYTES = 3_000_000
MAX_PAGES = 500
MAX_DRAFT_BYTES = 4_000_000
"""Of all pages together, which a round reads into its memory: a text with one emoji takes four times its length."""
MAX_DRAFT_ATTEMPTS = 5
_MAX_SNAPSHOT_DELETES = 3
"""Of a page and change. What is not needed any more and stays is deleted with the next change of the page."""

ChangeKind = Literal["plan", "ops", "undo", "redo", "restore", "bootstrap"]
StackMove = Literal["undo", "redo"]


@value_dataclass(frozen=True)
class DraftChange:
    """What becomes of a draft, and why.

    Attributes:
        effect_key: The same for every repetition of one change, which is then made once.
        outcome: What the request is answered, as JSON, also when it is repeated.
        moves: Pages whose content comes from their stacks instead of being new.
    """

    kind: ChangeKind
    summary: str
    draft: SiteDraft
    effect_key: str
    turn: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[str, StackMove] = field(default_factory=dict)
    is_incomplete: bool = False
    extra_writes: tuple[Write, ...] = ()
    """Further writes of the transaction."""


class HistoryEntry(DomainModel):
    """What a version has changed. `order` and `config` are those of the draft at this version."""

    version: int
    at: str
    kind: ChangeKind
    summary: str
    slugs: tuple[str, ...]
    turn: str | None = None


@value_dataclass(frozen=True)
class MadeChange:
    """A change that is stored: by this request, or by an earlier one with the same effect."""

    version: int
    outcome: Mapping[str, Any]
    is_repeated: bool = False


class DraftMoved(Exception):
    """Another change has been stored since the draft was read."""


def load_draft(resources: Resources, location: DraftLocation) -> StoredDraft:
    """Return a draft with all of its pages, by one query."""
    table = resources.settings.conversations_table
    items = resources.tables.query_items(table, location.pk, min_sk=HEAD_KEY, max_sk="d#p#~")
    return draft_from_items(location, [item for item in items if item["sk"].startswith((HEAD_KEY, "d#p#"))])


def change_draft(
    resources: Resources, location: DraftLocation, effect_key: str, decide: Callable[[StoredDraft], DraftChange]
) -> MadeChange:
    """Make a change once, on the newest version of the draft.

    Args:
        effect_key: Of the change. One that is stored already is not made again, and its outcome is returned.
        decide: Returns the change, given the draft. It is called again when another change was faster.

    Raises:
        Conflict: The client's key was used for another request.
        PayloadTooLarge: The change, or a page, is larger than what is stored together.
        ServiceUnavailable: Others were faster in each of `MAX_DRAFT_ATTEMPTS` attempts.
    """
    for _ in range(MAX_DRAFT_ATTEMPTS):
        stored = load_draft(resources, location)
        if effect_key in stored.effects:
            return _read_made_change(resources, stored, stored.effects[effect_key])
        require_same_request(stored.effects, effect_key)
        try:
            change = decide(stored)
        except (ApiError, InvalidPlan):
            # The same change, sent twice at once, may have been made since the draft was read.
            now = load_draft(resources, location)
            if effect_key in now.effects:
                return _read_made_change(resources, now, now.effects[effect_key])
            raise
        try:
            return _write_change(resources, stored, change)
        except DraftMoved:
            continue
    raise ServiceUnavailable("Other requests are changing this draft. Try again.", retry_after=1)


def _read_made_change(resources: Resources, stored: StoredDraft, version: int) -> MadeChange:
    table = resources.settings.conversations_table
    item = resources.tables.get_item(table, stored.location.pk, history_sort_key(version))
    return MadeChange(version, json.loads(item["outcome"]) if item else {}, is_repeated=True)


def _write_change(resources: Resources, stored: StoredDraft, change: DraftChange) -> MadeChange:
    version = stored.version + 1
    pages = _list_changed_pages(stored, change.draft)
    stored.location.count_bytes(_measure_change(stored, change, pages))
    changed = [_build_page(stored.get_stored_page(slug), page, version, change) for slug, page in pages.items()]
    table, pk = resources.settings.conversations_table, stored.location.pk
    writes = [
        _build_head_put(resources, stored, change, version),
        _build_history_put(resources, stored, change, version, tuple(pages)),
        *(write for page in changed for write in _build_page_writes(resources, stored, page)),
        *change.extra_writes,
    ]
    if version > LOG_LENGTH:
        writes.append(Delete(table, pk, history_sort_key(version - LOG_LENGTH)))
    try:
        resources.tables.write_items(*writes)
    except (TransactionCanceled, ConditionFailed) as refused:
        raise DraftMoved from refused
    return MadeChange(version, change.outcome)


def _list_changed_pages(stored: StoredDraft, draft: SiteDraft) -> dict[str, Page | None]:
    """Return the pages whose content has changed, by their slugs; None for one that is removed."""
    after: dict[str, Page | None] = {page.slug: page for page in draft.pages}
    gone = {slug: None for slug in stored.draft.slugs if slug not in after}
    new = {slug: page for slug, page in after.items() if stored.get_stored_page(slug).page != page}
    return {**gone, **new}


def _measure_change(stored: StoredDraft, change: DraftChange, pages: Mapping[str, Page | None]) -> int:
    """Return how many bytes a change stores: the new contents, the former ones that are kept, and its outcome.

    Raises:
        PayloadTooLarge: The change, a page, or the draft is larger than what may be stored.
    """
    sizes = {slug: len(dump_page(page).encode()) for slug, page in pages.items() if page}
    too_large = next((slug for slug, size in sizes.items() if size > MAX_DRAFT_PAGE_BYTES), None)
    if too_large:
        raise PayloadTooLarge(f"Page {too_large} is larger than {MAX_DRAFT_PAGE_BYTES // 1000} KB of JSON.")
    if len(pages) > MAX_CHANGED_PAGES or len(change.draft.pages) > MAX_PAGES:
        raise PayloadTooLarge(
            f"A change has at most {MAX_CHANGED_PAGES} pages, and a site {MAX_PAGES}. Make it in several steps."
        )
    outcome = len(json.dumps(change.outcome))
    if outcome > MAX_DRAFT_PAGE_BYTES:
        raise PayloadTooLarge("The operations of this change are too large to be stored together.")
    new, former = sum(sizes.values()), sum(stored.get_stored_page(slug).stored_bytes for slug in pages)
    if new + former > MAX_CHANGED_BYTES:
        raise PayloadTooLarge("The pages of this change are too large to be stored together. Make it in several steps.")
    if new > former and stored.stored_bytes - former + new > MAX_DRAFT_BYTES:
        raise PayloadTooLarge(
            f"The pages of a draft have at most {MAX_DRAFT_BYTES // 1_000_000} MB of JSON together. Remove some first."
        )
    return new + former + outcome


def _build_page(before: StoredPage, page: Page | None, version: int, change: DraftChange) -> StoredPage:
    move = change.moves.get(before.slug)
    undo, redo = before.undo_versions, before.redo_versions
    if move == "undo":
        since, undo, redo = undo[-1], undo[:-1], (*redo, before.since)
    elif move == "redo":
        since, undo, redo = redo[-1], (*undo, before.since), redo[:-1]
    else:
        since, undo, redo = (version if page else ABSENT), (*undo, before.since), ()
    return replace(
        before,
        page=page,
        since=since,
        undo_versions=undo[-MAX_UNDO_STEPS:],
        redo_versions=redo[-MAX_UNDO_STEPS:],
        timeline=_trim_timeline((*before.timeline, (version, since)), version - LOG_LENGTH),
    )


def _trim_timeline(timeline: tuple[tuple[int, int], ...], oldest: int) -> tuple[tuple[int, int], ...]:
    """Keep the pairs after the oldest version, and the one that held at it."""
    first = max((index for index, (version, _) in enumerate(timeline) if version <= oldest), default=0)
    return timeline[first:]


def _build_page_writes(resources: Resources, stored: StoredDraft, after: StoredPage) -> Sequence[Write]:
    """Build the writes of a page: its row, the content it had, and deletes of contents that nothing leads to."""
    table, pk = resources.settings.conversations_table, stored.location.pk
    before = stored.get_stored_page(after.slug)
    kept = set(after.kept_versions)
    writes: list[Write] = []
    if before.page is not None and before.since in after.needed_versions and before.since not in kept:
        sort_key = snapshot_sort_key(after.slug, before.since)
        writes.append(Put(table, {"pk": pk, "sk": sort_key, "v": 1, "page": dump_page(before.page)}))
        kept.add(before.since)
    unneeded = sorted(kept - after.needed_versions - {after.since})[:_MAX_SNAPSHOT_DELETES]
    writes += [Delete(table, pk, snapshot_sort_key(after.slug, version)) for version in unneeded]
    after = replace(after, kept_versions=tuple(sorted(kept - set(unneeded))))
    is_forgotten = after.page is None and not after.needed_versions and not after.kept_versions
    row = Delete(table, pk, page_sort_key(after.slug)) if is_forgotten else Put(table, after.to_item(pk))
    return [row, *writes]


def _build_head_put(resources: Resources, stored: StoredDraft, change: DraftChange, version: int) -> Put:
    newest = {key: made for key, made in stored.effects.items() if made > version - LOG_LENGTH}
    head = replace(
        stored,
        version=version,
        order=order_home_first(change.draft.slugs),
        config=change.draft.config,
        effects={**newest, change.effect_key: version},
        is_incomplete=change.is_incomplete,
    )
    condition = "#version = :read" if stored.version else "attribute_not_exists(pk)"
    return Put(
        resources.settings.conversations_table,
        head.head_to_item(),
        condition=condition,
        values={":read": stored.version} if stored.version else {},
        names={"#version": "version"} if stored.version else {},
    )


def _build_history_put(
    resources: Resources, stored: StoredDraft, change: DraftChange, version: int, slugs: tuple[str, ...]
) -> Put:
    entry = HistoryEntry(
        version=version,
        at=resources.clock.now_iso(),
        kind=change.kind,
        summary=change.summary,
        slugs=slugs,
        turn=change.turn or None,
    )
    item = {
        "pk": stored.location.pk,
        "sk": history_sort_key(version),
        "v": 1,
        "entry": json.dumps(entry.to_wire(), ensure_ascii=False),
        "site": json.dumps({"order": change.draft.slugs, "config": change.draft.config.to_wire()}, ensure_ascii=False),
        "outcome": json.dumps(change.outcome, ensure_ascii=False),
    }
    return Put(resources.settings.conversations_table, item | ({"turn": change.turn} if change.turn else {}))


def read_former_page(resources: Resources, stored: StoredDraft, slug: str, version: int) -> Page | None:
    """Return a former content of a page; None for `ABSENT`.

    Raises:
        LookupError: Its row is gone.
    """
    page = stored.get_stored_page(slug)
    if version == ABSENT:
        return None
    if version == page.since:
        return page.page
    table = resources.settings.conversations_table
    item = resources.tables.get_item(table, stored.location.pk, snapshot_sort_key(slug, version))
    if item is None:
        raise LookupError(f"Version {version} of page {slug} is not kept.")
    return load_page(item["page"])
