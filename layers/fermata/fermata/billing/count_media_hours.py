"""Count how many bytes of media a workspace has stored for how many hours (decision 0618).

    t#<tenant>#limits#reports   media   which hour was counted last, and what each space had then (bridges table)

It is counted once an hour, into the row of the month, in one transaction with the mark of the hour. Of a space in which
no asset has changed since, what was counted before holds.
"""

from collections.abc import Mapping

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    TransactionCanceled,
    Update,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.billing.usage_report import build_report_key
from fermata.content.content_space import list_spaces
from fermata.content.media.media_room import count_space_media_bytes, read_asset_mark
from fermata.domain.plan_refusals import to_month
from fermata.limits.month_counts import MEDIA_BYTE_HOURS, MONTH_ROW_SECONDS, build_month_addition, build_months_key

MEDIA_SORT_KEY = "media"
MAX_HOURS_AT_ONCE = 24
"""Of hours that nobody has counted, as many count as what is there now. Nobody knows what was there long before."""


def count_media_hours(resources: Resources, tenant: str) -> None:
    """Count what is stored for each hour since the last count. Nothing is counted twice, however often this is done.

    Args:
        resources: Of the process.
        tenant: The workspace.
    """
    hour = int(resources.clock.time()) // 3_600
    key = build_report_key(resources, tenant, MEDIA_SORT_KEY)
    before = resources.tables.get_item_by_key(key)
    if before is not None and before["hour"] >= hour:
        return
    spaces = _count_spaces(resources, tenant, before["spaces"] if before else {})
    stored = sum(int(size) for _, size in spaces.values())
    if before is None and not stored:
        return  # the hours of a workspace without media need no row
    hours = min(hour - before["hour"], MAX_HOURS_AT_ONCE) if before else 1
    read_version = int(before["version"]) if before else None
    expires = int(resources.clock.time()) + MONTH_ROW_SECONDS
    mark: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "hour": hour, "spaces": spaces, "ttl": expires}
    mark["version"] = (read_version or 0) + 1
    added = [_build_addition(resources, tenant, stored * hours)] if stored else []
    try:
        resources.tables.write_items(build_versioned_put(key.table, mark, read_version), *added)
    except (ConditionFailed, TransactionCanceled):
        observability.log_event("billing.counted_meanwhile", tenant=tenant, hour=hour)


def _count_spaces(resources: Resources, tenant: str, known: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return for each space the mark of its assets, and how many bytes they have."""
    found = {}
    for space, record in list_spaces(resources, tenant):
        # The mark is read first: what changes behind it is counted by the next run.
        mark = f"{record.created_at} {read_asset_mark(resources, space)}"
        before = known.get(space.name)
        is_same = before is not None and before[0] == mark
        found[space.name] = before if before and is_same else [mark, str(count_space_media_bytes(resources, space))]
    return found


def _build_addition(resources: Resources, tenant: str, amount: int) -> Update:
    now = resources.clock.time()
    key = build_months_key(resources, tenant, "", to_month(now))
    return build_month_addition(key, resources.tables.get_item_by_key(key), MEDIA_BYTE_HOURS, amount, now)
