"""Count what a workspace, and each of its users and API keys, uses of the plan in a month in UTC.

    t#<tenant>#limits#months        month#<2026-11>   all of the workspace
    t#<tenant>#limits#user#<hash>   month#<2026-11>   one user or API key

A row has a number for each meter, and how many came from where. A use counts in both rows in one transaction, on
condition that each has room for it, so that any number at once stay within the limit.
"""

import calendar
from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Update
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanMeter, PlanQuota, Subscription
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.is_count import is_count
from fermata.limits.limit_keys import user_limits_partition

MONTH_PREFIX = "month#"
MONTH_ROW_SECONDS = 400 * 86_400
"""How long a month can be looked at."""
SOURCE_PREFIX = "from."
MEDIA_BYTE_HOURS = "mediaByteHours"
"""What the row of a workspace counts besides the meters of plans: bytes of media, times the hours they were stored."""
DELIVERED_BYTES = "deliveredBytes"
"""What the row of a month's traffic counts."""


def get_included_in_month(subscription: Subscription, meter: str, month: str) -> int | None:
    """Return what a plan includes of a number of a month's row; of media, its room in every hour. None for any number.

    Args:
        subscription: Of the workspace.
        meter: A meter of plans, or one of the other numbers.
        month: Such as 2026-11.
    """
    if meter == DELIVERED_BYTES:
        return subscription.workspace_plan.traffic_bytes
    if meter != MEDIA_BYTE_HOURS:
        return subscription.get_included(PlanMeter(meter))
    room = subscription.get_included(PlanQuota.MEDIA_BYTES)
    return None if room is None else room * 24 * calendar.monthrange(int(month[:4]), int(month[5:]))[1]


def months_partition(tenant: str) -> str:
    """Return the partition of what a workspace has used, by month."""
    return f"t#{tenant}#limits#months"


def build_months_key(resources: Resources, tenant: str, user: str, month: str) -> ItemKey:
    """Return the key of a month's row.

    Args:
        resources: Of the process.
        tenant: The workspace.
        user: The user or API key that it counts; empty for all of the workspace.
        month: Such as 2026-11.
    """
    partition = user_limits_partition(tenant, user) if user else months_partition(tenant)
    return ItemKey(resources.settings.bridges_table, partition, f"{MONTH_PREFIX}{month}")


def read_month_count(item: Item | None, name: str) -> int:
    """Return a number of a month's row; a damaged one counts as missing."""
    count = (item or {}).get(name)
    return count if is_count(count) else 0


@value_dataclass(frozen=True)
class MonthUse:
    """One use that a month's row counts.

    Attributes:
        source: Where it comes from: `studio` or `api` of messages.
    """

    meter: PlanMeter
    source: str = ""

    def build_update(self, key: ItemKey, item: Item | None, limit: int | None, now: float) -> Update:
        """Build the write that counts it in a row. It fails if the row has no room.

        Args:
            key: Of the row.
            item: The row as it was read.
            limit: What the row may count; None for any number.
            now: In epoch seconds.
        """
        update = CountRowUpdate(key)
        update.set("ttl", int(now) + MONTH_ROW_SECONDS)
        _add(update, item or {}, self.meter.value, limit)
        if self.source:
            _add(update, item or {}, SOURCE_PREFIX + self.source, None)
        return update.build()


def build_month_addition(key: ItemKey, item: Item | None, name: str, amount: int, now: float) -> Update:
    """Build the write that adds an amount to a number of a month's row.

    Args:
        key: Of the row.
        item: The row as it was read.
        name: Of the number.
        amount: What is added.
        now: In epoch seconds.
    """
    update = CountRowUpdate(key)
    update.set("ttl", int(now) + MONTH_ROW_SECONDS)
    _add(update, item or {}, name, None, amount)
    return update.build()


def count_months_of(
    resources: Resources, tenant: str, users: Iterable[str], meter: PlanMeter, month: str
) -> dict[str, int]:
    """Return how much up to 100 users or API keys have used of a meter in a month, with one request.

    Args:
        resources: Of the process.
        tenant: The workspace.
        users: Users, or the names under which keys act.
        meter: What is counted.
        month: Such as 2026-11.
    """
    keys = {user: build_months_key(resources, tenant, user, month) for user in users}
    rows = resources.tables.batch_get_by_keys(keys.values()) if keys else {}
    return {user: read_month_count(rows.get(key), meter) for user, key in keys.items()}


def list_month_counts(item: Item | None) -> dict[str, Any]:
    """Return the numbers of a month's row by meter."""
    return {meter.value: read_month_count(item, meter.value) for meter in PlanMeter}


def _add(update: CountRowUpdate, item: Item, name: str, limit: int | None, amount: int = 1) -> None:
    if name in item and not is_count(item[name]):
        update.require_as_read(item, [name])
        update.set(name, amount)
        return
    update.add(name, amount)
    if limit is not None:
        update.require_at_most(name, limit - 1)
