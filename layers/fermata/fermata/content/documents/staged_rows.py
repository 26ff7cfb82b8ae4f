"""Show rows that a staged commit has marked: as they were before it, or as they are after it, all at one moment.

    k#<commit>            the commit: pending, committed or aborted
    k#<commit>#<number>   which rows a chunk of it has marked

A commit of more rows than one transaction takes marks them first, in chunks. A marked row says what it was and what it
becomes. The row of the commit decides for all of them, with one write (decision 0485).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey

STAGED_BY, STAGE, STAGED_AFTER = "staged_by", "stage", "staged_after"
"""The attributes of a mark: the commit, what it does with the row, and the attributes that change, as JSON."""
MARK_ATTRIBUTES = (STAGED_BY, STAGE, STAGED_AFTER)
COMMIT_PREFIX = "k#"
RELEASED = "released"
"""The attribute of a version that a commit has marked and released. By it the outbox knows when it was there."""
COMMITTED = "committed"
_KNOWN_SECONDS = 600


class RowStage(StrEnum):
    """What a commit does with a row."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


def commit_sort_key(commit_id: str) -> str:
    """Return the sort key of a staged commit."""
    return f"{COMMIT_PREFIX}{commit_id}"


def is_committed(resources: Resources, space: SpaceKey, commit_id: str) -> bool:
    """Return whether a staged commit has come to its switch. One request, until it has."""
    key = _name_commit(space, commit_id)
    if resources.cache.get_value(key):
        return True
    row = resources.tables.get_item(resources.settings.content_table, space.pk, commit_sort_key(commit_id))
    if row is None or row["status"] != COMMITTED:
        return False
    resources.cache.put_value(key, _KNOWN_SECONDS, True)
    return True


def _name_commit(space: SpaceKey, commit_id: str) -> tuple[str, SpaceKey, str]:
    return ("staged commit", space, commit_id)


def show_rows(resources: Resources, space: SpaceKey, rows: Iterable[Item]) -> list[Item]:
    """Return rows as they are at this moment. Rows that are not there yet, or not any more, are left out.

    Only rows that a commit has just marked cost a request, one for each commit.

    Args:
        resources: Of the process.
        space: The space of the rows.
        rows: As they were read, with the attributes of marks.
    """
    found = list(rows)
    commits = {row[STAGED_BY] for row in found if STAGED_BY in row}
    if not commits:
        return found
    committed = {one for one in commits if is_committed(resources, space, one)}
    shown = (_show_row(row, is_after=row.get(STAGED_BY) in committed) for row in found)
    return [row for row in shown if row is not None]


def read_rows_together(
    resources: Resources, space: SpaceKey, read: Callable[[], Sequence[Item]]
) -> tuple[Sequence[Item], list[Item]]:
    """Return the rows of one request as they were read, and as they are, all of one moment.

    A commit that is switched behind the request, which has met some of its marks only, lets it be made again.

    Args:
        resources: Of the process.
        space: The space of the rows.
        read: Makes the request.
    """
    rows = read()
    met = {row[STAGED_BY] for row in rows if STAGED_BY in row}
    news = [one for one in met if not resources.cache.get_value(_name_commit(space, one))]
    if any(is_committed(resources, space, one) for one in news):
        rows = read()
    return rows, show_rows(resources, space, rows)


def show_row(resources: Resources, space: SpaceKey, row: Item | None) -> Item | None:
    """Return a row as it is at this moment; None for one that is not there."""
    shown = show_rows(resources, space, [row]) if row else []
    return shown[0] if shown else None


def show_items(resources: Resources, space: SpaceKey, items: Mapping[ItemKey, Item]) -> dict[ItemKey, Item]:
    """Return rows of one table by their keys, as they are at this moment."""
    names = {(key.pk, key.sk): key for key in items}
    return {names[(row["pk"], row["sk"])]: row for row in show_rows(resources, space, items.values())}


def _show_row(row: Item, *, is_after: bool) -> Item | None:
    if STAGED_BY not in row:
        return row
    if row[STAGE] == (RowStage.GONE if is_after else RowStage.NEW):
        return None
    plain: dict[str, Any] = {name: value for name, value in row.items() if name not in MARK_ATTRIBUTES}
    if is_after and row[STAGE] == RowStage.CHANGED:
        plain |= json.loads(row[STAGED_AFTER])
    return plain
