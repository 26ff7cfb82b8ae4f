"""Count the calls to servers of one tenant that the function of webhooks makes at once (decision 0353).

    t#<tenant>#limits#tenant#00   deliveries   leases, x#<id> of calls

All tenants share the function, so a tenant whose servers are slow may keep a part of it busy only.
"""

import random
from contextlib import suppress

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, ItemKey
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.leases import ROW_TTL_SECONDS, Leases, build_reader_removal
from fermata.limits.limit_keys import build_tenant_limits_key

DELIVERIES_AT_ONCE = 3
"""Calls of one tenant at once, of the ten that the function makes."""
SLOT_SECONDS = 360
"""A slot outlasts the longest run of the function, which may be killed in the middle of a call."""
MAX_DEFERRAL_SECONDS = 300.0
_SORT_KEY = "deliveries"
_ATTEMPTS = 4


def take_delivery_slot(resources: Resources, tenant: str) -> str | None:
    """Take one of the tenant's slots, and return its id. Return None if all are taken."""
    key = _build_slots_key(resources, tenant)
    row = resources.tables.get_item_by_key(key) or {}
    for _ in range(_ATTEMPTS):
        now = resources.clock.time()
        leases = Leases(row, now, SLOT_SECONDS, kept_count=0)
        if len(leases.live_ids) >= DELIVERIES_AT_ONCE:
            return None
        slot, update = new_id(), CountRowUpdate(key)
        update.set("ttl", int(now) + ROW_TTL_SECONDS)
        leases.take(update, slot, DELIVERIES_AT_ONCE)
        try:
            resources.tables.write_items(update.build())
        except ConditionFailed as changed:
            row = changed.item or {}
        else:
            return slot
    return None


def release_delivery_slot(resources: Resources, tenant: str, slot: str) -> None:
    """Give a slot back. One that has expired, or whose row was erased, stays gone. If this fails, the slot expires."""
    try:
        with suppress(ConditionFailed):
            resources.tables.write_items(build_reader_removal(_build_slots_key(resources, tenant), slot))
    except AWS_ERRORS:
        observability.log_exception("webhooks.slot_not_released")


def get_deferral_seconds(deferrals: int, jitter: float | None = None) -> float:
    """Return how long a call waits that found no slot: a second, then twice as long each time, up to five minutes.

    Args:
        deferrals: How often it has waited.
        jitter: A random number between 0 and 1; drawn if it is None.
    """
    share = random.random() if jitter is None else jitter  # noqa: S311 (jitter, not a secret)
    return min(2.0 ** min(deferrals, 20), MAX_DEFERRAL_SECONDS) * (1 + share) / 2


def _build_slots_key(resources: Resources, tenant: str) -> ItemKey:
    return build_tenant_limits_key(resources, tenant, 0, _SORT_KEY)
