"""Bring a staged commit to its end: take the marks off its rows, forwards if it was switched, else backwards.

Anybody may do it, at any moment, and several at once: each chunk ends in one transaction with the row that lists it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Delete,
    Item,
    Put,
    TransactionCanceled,
    Update,
    Write,
)
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document_rows import VERSION_PREFIX
from fermata.content.documents.document_writes import build_head_update
from fermata.content.documents.staged_rows import (
    COMMIT_PREFIX,
    COMMITTED,
    MARK_ATTRIBUTES,
    RELEASED,
    STAGE,
    STAGED_AFTER,
    STAGED_BY,
    RowStage,
    commit_sort_key,
)
from fermata.domain.errors import ServiceUnavailable

LEASE_SECONDS = 15
"""A commit that has marked nothing for so long is taken back by whoever meets it."""
MAX_SETTLE_SECONDS = 3.0
MAX_FINISH_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1
_PENDING, _ABORTED = "pending", "aborted"
_KEPT_SECONDS = 86_400
"""How long the row of a commit stays behind its last mark, for whoever has read one before."""


class MarkedRow(NamedTuple):
    """A row that a chunk has marked.

    Attributes:
        added: By how many documents a model has more, of whose head it is the row.
        is_count: Whether only the number of a model's documents changes, and nothing is marked.
    """

    sort_key: str
    added: int = 0
    is_count: bool = False


def build_commit_start(resources: Resources, space: SpaceKey, commit_id: str) -> Put:
    """Build the row of a commit that begins."""
    item = {
        "pk": space.pk,
        "sk": commit_sort_key(commit_id),
        "v": 1,
        "status": _PENDING,
        "lease": _make_lease(resources),
    }
    return Put(resources.settings.content_table, item, if_absent=True)


def _make_lease(resources: Resources) -> int:
    return int(resources.clock.time()) + LEASE_SECONDS


def build_chunk_put(
    resources: Resources, space: SpaceKey, commit_id: str, number: int, rows: Sequence[MarkedRow]
) -> Put:
    """Build the row that lists what a chunk marks.

    Args:
        resources: Of the process.
        space: The space.
        commit_id: The commit.
        number: Of the chunk.
        rows: What it marks.
    """
    sort_key = f"{commit_sort_key(commit_id)}#{number:05d}"
    item = {"pk": space.pk, "sk": sort_key, "v": 1, "rows": json.dumps(rows)}
    return Put(resources.settings.content_table, item, if_absent=True)


def build_fence(resources: Resources, space: SpaceKey, commit_id: str) -> Update:
    """Build the write without which no further chunk is marked: the commit goes on, and was not taken back."""
    return _build_commit_update(resources, space, commit_id, "SET lease = :lease", {":lease": _make_lease(resources)})


def build_switch(resources: Resources, space: SpaceKey, commit_id: str) -> Update:
    """Build the write that lets all marked rows be what they become."""
    return _build_commit_update(resources, space, commit_id, "SET #status = :to", {":to": COMMITTED})


def _build_commit_update(
    resources: Resources, space: SpaceKey, commit_id: str, expression: str, values: Item
) -> Update:
    table, names = resources.settings.content_table, {"#status": "status"}
    values = {":pending": _PENDING, **values}
    return Update(table, space.pk, commit_sort_key(commit_id), expression, values, names, "#status = :pending")


def settle_commit(resources: Resources, space: SpaceKey, commit_id: str) -> None:
    """Wait until a commit is switched or given up, and take its marks off. One whose process is gone is given up.

    Args:
        resources: Of the process.
        space: The space.
        commit_id: The commit.

    Raises:
        ServiceUnavailable: It still goes on after `MAX_SETTLE_SECONDS`.
    """
    for _ in range(int(MAX_SETTLE_SECONDS / _PAUSE_SECONDS)):
        row = resources.tables.get_item(resources.settings.content_table, space.pk, commit_sort_key(commit_id))
        if row is None or row["status"] != _PENDING:
            finish_commit(resources, space, commit_id)
            return
        if row["lease"] < resources.clock.time():
            give_up_commit(resources, space, commit_id)
            return
        resources.clock.sleep(_PAUSE_SECONDS)
    raise ServiceUnavailable("Many documents are being stored together at this moment. Try again.", retry_after=1)


def settle_dead_commits(resources: Resources, space: SpaceKey) -> int:
    """Bring commits to their end whose processes are gone, and which nobody has met since; return how many.

    Args:
        resources: Of the process.
        space: The space.
    """
    prefix, settled = COMMIT_PREFIX, 0
    rows = resources.tables.query_items(resources.settings.content_table, space.pk, min_sk=prefix, max_sk=f"{prefix}~")
    for row in rows:
        if "status" not in row or "ttl" in row or row["lease"] >= resources.clock.time():
            continue  # the row of a chunk, or a commit that has come to its end or goes on
        settle_commit(resources, space, row["sk"].removeprefix(COMMIT_PREFIX))
        settled += 1
    return settled


def give_up_commit(resources: Resources, space: SpaceKey, commit_id: str) -> bool:
    """Take a commit back, with all of its marks. Return False if it was switched already, and stays.

    Args:
        resources: Of the process.
        space: The space.
        commit_id: The commit.
    """
    give_up = _build_commit_update(resources, space, commit_id, "SET #status = :to", {":to": _ABORTED})
    try:
        resources.tables.write_items(give_up)
    except ConditionFailed as refused:
        if refused.item is not None and refused.item["status"] == COMMITTED:
            return False
    finish_commit(resources, space, commit_id)
    return True


def finish_commit(resources: Resources, space: SpaceKey, commit_id: str) -> None:
    """Take the marks of a commit off that is switched or given up.

    Args:
        resources: Of the process.
        space: The space.
        commit_id: The commit.

    Raises:
        ServiceUnavailable: Others keep changing its rows.
    """
    table, prefix = resources.settings.content_table, commit_sort_key(commit_id)
    for _ in range(MAX_FINISH_ATTEMPTS):
        rows = resources.tables.query_items(table, space.pk, min_sk=prefix, max_sk=f"{prefix}#~")
        own = rows[0] if rows and rows[0]["sk"] == prefix else {}
        chunks = [row for row in rows if row["sk"] != prefix]
        if own.get("status") == _PENDING:
            return
        done = [_finish_chunk(resources, space, commit_id, chunk, own) for chunk in chunks]
        if all(done):
            _let_commit_expire(resources, space, own)
            return
    raise ServiceUnavailable("Other requests are changing these documents. Try again.", retry_after=1)


def _let_commit_expire(resources: Resources, space: SpaceKey, own: Item) -> None:
    if not own or "ttl" in own:
        return
    table, expires = resources.settings.content_table, int(resources.clock.time()) + _KEPT_SECONDS
    names, values = {"#ttl": "ttl", "#status": "status"}, {":expires": expires, ":status": own["status"]}
    update = Update(table, space.pk, own["sk"], "SET #ttl = :expires", values, names, "#status = :status")
    try:
        resources.tables.write_items(update)
    except ConditionFailed:  # it was erased with its space
        return


def _finish_chunk(
    resources: Resources, space: SpaceKey, commit_id: str, chunk: Item, own: Mapping[str, object]
) -> bool:
    """Take the marks of a chunk off, together with its row. Return False if somebody else has changed a row of it."""
    table, marked = resources.settings.content_table, [MarkedRow(*one) for one in json.loads(chunk["rows"])]
    found = resources.tables.batch_get_items(table, [(space.pk, one.sort_key) for one in marked])
    is_forward = own.get("status") == COMMITTED
    writes: list[Write] = [Delete(table, space.pk, chunk["sk"], "attribute_exists(pk)")]
    for one in marked:
        row = found.get((space.pk, one.sort_key))
        if row is not None and (one.is_count or row.get(STAGED_BY) == commit_id):
            writes += _plan_unmarking(table, row, one, is_forward=is_forward)
    try:
        resources.tables.write_items(*writes)
    except ConditionFailed:
        return True
    except TransactionCanceled as refused:
        return refused.reasons[0].condition_failed
    return True


def _plan_unmarking(table: str, row: Item, marked: MarkedRow, *, is_forward: bool) -> Iterator[Write]:
    added = min(0, marked.added) if is_forward else -max(0, marked.added)
    if marked.is_count:
        if added:
            count = {":added": added}
            yield Update(table, row["pk"], row["sk"], "ADD documents :added", count, condition="attribute_exists(pk)")
        return
    own, condition = {":by": row[STAGED_BY]}, f"{STAGED_BY} = :by"
    if row[STAGE] == (RowStage.GONE if is_forward else RowStage.NEW):
        yield Delete(table, row["pk"], row["sk"], condition, own)
        return
    after = json.loads(row[STAGED_AFTER]) if is_forward and row[STAGE] == RowStage.CHANGED else {}
    if is_forward and row["sk"].startswith(VERSION_PREFIX):
        after[RELEASED] = True
    added = 0 if row[STAGE] == RowStage.NEW else added
    expression, values, names = build_head_update(after, added) if after else _build_count(added)
    expression = f"{expression} REMOVE {', '.join(MARK_ATTRIBUTES)}".strip()
    yield Update(table, row["pk"], row["sk"], expression, values | own, names, condition)


def _build_count(added: int) -> tuple[str, Item, dict[str, str]]:
    return ("ADD documents :added", {":added": added}, {}) if added else ("", {}, {})
