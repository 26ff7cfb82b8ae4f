"""Count the bytes that sites of a workspace are delivered in a month in UTC (decision 0622).

    t#<tenant>#limits#reports   traffic#<2026-11>   how many bytes were delivered

A count of every response would cost more than most responses, which are small. So shares are counted: a response of a
quarter of a share is counted as a whole one in one case of four, so that the sum is right on average, and more exact
the larger it is. It is a row of its own: those of months are in the transactions that start turns.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ItemKey
from fermata.aws.resources import Resources
from fermata.domain.plan_refusals import to_month
from fermata.limits.month_counts import DELIVERED_BYTES, build_month_addition

TRAFFIC_SHARE_BYTES = 65_536
TRAFFIC_PREFIX = "traffic#"


def reports_partition(tenant: str) -> str:
    """Return the partition of what a workspace is billed for: its reports, and what is counted for these only."""
    return f"t#{tenant}#limits#reports"


def build_traffic_key(resources: Resources, tenant: str, month: str) -> ItemKey:
    """Return the key of the row that counts what was delivered in a month, such as 2026-11."""
    return ItemKey(resources.settings.bridges_table, reports_partition(tenant), f"{TRAFFIC_PREFIX}{month}")


def count_traffic(resources: Resources, tenant: str, size: int, draw: Callable[[int], int] = secrets.randbelow) -> None:
    """Count a response. One that cannot be counted is delivered all the same.

    Args:
        resources: Of the process.
        tenant: The workspace.
        size: The bytes of what is delivered.
        draw: Returns a number below the one that it gets.
    """
    whole, rest = divmod(max(0, size), TRAFFIC_SHARE_BYTES)
    shares = whole + (1 if draw(TRAFFIC_SHARE_BYTES) < rest else 0)
    if not shares:
        return
    now = resources.clock.time()
    key = build_traffic_key(resources, tenant, to_month(now))
    try:
        before = resources.tables.get_item_by_key(key)
        addition = build_month_addition(key, before, DELIVERED_BYTES, shares * TRAFFIC_SHARE_BYTES, now)
        resources.tables.write_items(replace(addition, is_applied_once=True))
    except Exception:  # noqa: BLE001 - logged with its traceback; a site stays up while nothing can be counted
        observability.log_exception("billing.traffic_uncounted", tenant=tenant)
