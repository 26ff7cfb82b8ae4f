"""Look at each space once a day, and take away what nobody needs any more (decision 0525).

The row of a space is in an index that lists what is to be looked at, by the instant of the next look. So a sweep reads
what is due, and not all spaces.
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Update
from fermata.aws.resources import Resources
from fermata.content.change_sets.discard_stale_change_sets import discard_stale_change_sets
from fermata.content.content_space import (
    DUE_INDEX,
    SWEEP_SHARDS,
    SpaceKey,
    is_live_space,
    read_space_row,
    space_item_key,
    sweep_partition,
)
from fermata.content.documents.settle_commit import settle_dead_commits
from fermata.content.files.sweep_copies import sweep_copies
from fermata.content.media.sweep_media import sweep_media

SPACE_SWEEP_SECONDS = 86_400
_PAGE_SIZE = 200


def sweep_due_spaces(resources: Resources, has_time: Callable[[], bool] = lambda: True) -> int:
    """Look at the spaces that are due, until the time is over, and return how many were. The rest is due still.

    Args:
        resources: Of the process.
        has_time: Asked before each space.
    """
    swept = 0
    for space, due in _iter_due(resources):
        if not has_time():
            return swept
        swept += _sweep_space(resources, space)
        _plan_next_look(resources, space, due)
    return swept


def _iter_due(resources: Resources) -> Iterator[tuple[SpaceKey, str]]:
    now = resources.clock.now_iso()
    for shard in range(SWEEP_SHARDS):
        start: Item | None = None
        while True:
            rows = resources.tables.query_index(
                resources.settings.content_table,
                DUE_INDEX,
                ("gpk", sweep_partition(shard)),
                limit=_PAGE_SIZE,
                start_after=start,
                max_sort=("gsk", now),
            )
            for row in rows:
                yield SpaceKey(row["pk"].split("#")[1], *row["sk"].split("#")), row["gsk"]
            if len(rows) < _PAGE_SIZE:
                break
            start = {name: rows[-1][name] for name in ("gpk", "gsk", "pk", "sk")}


def _sweep_space(resources: Resources, space: SpaceKey) -> int:
    """Sweep a space, and return how many were swept. A failure is logged, and the next day tries again."""
    if not is_live_space(read_space_row(resources, space)):
        return 0  # it is being erased with all that it has
    try:
        done = {
            "changeSets": discard_stale_change_sets(resources, space),
            "commits": settle_dead_commits(resources, space),
            "images": sweep_media(resources, space),
            "copies": sweep_copies(resources, space),
        }
    except Exception:  # noqa: BLE001 - logged with its traceback; the next look tries again
        observability.log_exception("content.sweep_failed", tenant=space.tenant, space=space.name)
        return 0
    if any(done.values()):
        observability.log_event("content.swept", tenant=space.tenant, space=space.name, **done)
    return 1


def _plan_next_look(resources: Resources, space: SpaceKey, due: str) -> None:
    """Let a space be looked at in a day, unless another sweep has planned that already, or the space is gone."""
    key = space_item_key(resources, space)
    spread = zlib.crc32(space.pk.encode()) % 3600
    following = iso_from_epoch(resources.clock.time() + SPACE_SWEEP_SECONDS + spread)
    values = {":due": following, ":read": due}
    update = Update(key.table, key.pk, key.sk, "SET gsk = :due", values, condition="gsk = :read")
    with suppress(ConditionFailed):
        resources.tables.write_items(update)
