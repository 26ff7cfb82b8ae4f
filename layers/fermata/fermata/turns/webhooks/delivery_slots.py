"""Count the calls to servers of one tenant that the function of webhooks makes at once (decision 0353).

    t#<tenant>#limits#tenant#00   deliveries   leases, x#<id> of calls

All tenants share the function, so a tenant whose servers are slow may keep a part of it busy only. And its servers that
are slow leave one of its slots to the others (decision 0492):

    at#<slot>       when a slot was taken, so that no late copy takes it again (decision 0402)
    slow#<server>   until when (epoch seconds) a server counts as slow, because it took long to answer
"""

import hashlib
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, ItemKey, Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.leases import LEASE_PREFIX, LEASES_ATTRIBUTE, ROW_TTL_SECONDS, Leases
from fermata.limits.limit_keys import build_tenant_limits_key
from fermata.limits.refuse_late_copy import refuse_late_copy

DELIVERIES_AT_ONCE = 3
"""Calls of one tenant at once, of the ten that the function makes."""
SLOT_SECONDS = 360
"""A slot outlasts the longest run of the function, which may be killed in the middle of a call."""
SLOTS_LEFT_BY_SLOW = 1
"""Slots of a tenant that servers which are slow leave to the others."""
SLOW_ANSWER_SECONDS = 3.0
SLOW_MARK_SECONDS = 600
MAX_SLOW_MARKS = 40
"""Servers of a tenant that are remembered as slow at once."""
MAX_DEFERRAL_SECONDS = 300.0
_SLOW_PREFIX = "slow#"
_SORT_KEY = "deliveries"
_ATTEMPTS = 4


@contextmanager
def hold_delivery_slot(
    resources: Resources, tenant: str, receiver: str, deferrals: int, deferred: Mapping[str, Any]
) -> Iterator[bool]:
    """Hold a slot during a call, and yield whether there is one. If not, the call is queued for later.

    Args:
        resources: Tables, clock and queue.
        tenant: The tenant's name.
        receiver: Which of its servers is called.
        deferrals: How often the call has waited.
        deferred: The message of the call, which has waited once more.
    """
    slot = take_delivery_slot(resources, tenant, receiver)
    if slot is None:
        resources.webhook_queue.send(dict(deferred), delay_seconds=get_deferral_seconds(deferrals))
        yield False
        return
    begun_at = resources.clock.monotonic()
    try:
        yield True
    finally:
        seconds = resources.clock.monotonic() - begun_at
        release_delivery_slot(resources, tenant, slot, receiver, seconds)


def take_delivery_slot(resources: Resources, tenant: str, receiver: str = "") -> str | None:
    """Take one of the tenant's slots, and return its id. Return None if all are taken.

    Args:
        resources: Tables and clock.
        tenant: The tenant's name.
        receiver: Which of its servers is called. One that is slow leaves a slot to the others.
    """
    key = _build_slots_key(resources, tenant)
    row = resources.tables.get_item_by_key(key) or {}
    for _ in range(_ATTEMPTS):
        now = resources.clock.time()
        leases = Leases(row, now, SLOT_SECONDS, kept_count=0)
        limit = DELIVERIES_AT_ONCE - (SLOTS_LEFT_BY_SLOW if _is_slow(row, receiver, now) else 0)
        if len(leases.live_ids) >= limit:
            return None
        slot, update = new_id(), CountRowUpdate(key)
        update.set("ttl", int(now) + ROW_TTL_SECONDS)
        leases.take(update, slot, limit)
        update.remove(_list_expired_marks(row, now))
        refuse_late_copy(update, row, slot, now)  # it would take the slot again after it was given back
        try:
            resources.tables.write_items(update.build())
        except ConditionFailed as changed:
            row = changed.item or {}
        else:
            return slot
    return None


def release_delivery_slot(
    resources: Resources, tenant: str, slot: str, receiver: str = "", seconds: float = 0.0
) -> None:
    """Give a slot back, and remember whether the call was slow. If this fails, the slot expires.

    A slot that has expired, or whose row was erased, stays gone.

    Args:
        resources: Tables and clock.
        tenant: The tenant's name.
        slot: The id of the slot.
        receiver: Which server was called.
        seconds: How long that took.
    """
    names = {"#lease": LEASE_PREFIX + slot, "#leases": LEASES_ATTRIBUTE, "#slow": name_slow_mark(receiver)}
    values: Item = {":lease": {slot}}
    expression = "REMOVE #lease, #slow DELETE #leases :lease"
    if seconds >= SLOW_ANSWER_SECONDS:
        values[":until"] = int(resources.clock.time()) + SLOW_MARK_SECONDS
        expression = "SET #slow = :until REMOVE #lease DELETE #leases :lease"
    key = _build_slots_key(resources, tenant)
    try:
        with suppress(ConditionFailed):
            resources.tables.write_items(Update(*key, expression, values, names, "attribute_exists(#lease)"))
    except AWS_ERRORS:
        observability.log_exception("webhooks.slot_not_released")


def name_slow_mark(receiver: str) -> str:
    """Return the attribute that marks a server as slow."""
    return _SLOW_PREFIX + hashlib.sha256(receiver.encode()).hexdigest()[:16]


def _is_slow(row: Item, receiver: str, now: float) -> bool:
    until = row.get(name_slow_mark(receiver), 0)
    return isinstance(until, int) and now < until <= now + 2 * SLOW_MARK_SECONDS


def _list_expired_marks(row: Item, now: float) -> list[str]:
    """Return the marks that count no more, and the oldest ones of too many."""
    marks = {name: until for name, until in row.items() if name.startswith(_SLOW_PREFIX) and isinstance(until, int)}
    oldest_first = sorted(marks, key=lambda name: marks[name])
    expired = sum(until <= now for until in marks.values())
    return oldest_first[: max(expired, len(marks) - MAX_SLOW_MARKS)]


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
