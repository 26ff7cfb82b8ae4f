"""Count what is sent in a minute besides prompts: by a visitor, whom only an address names, or a user who searches."""

import ipaddress
from contextlib import suppress

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_client import draw_pause
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, ItemKey
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable, TooManyRequests
from fermata.domain.use_limits import CallerLimits, UseLimits
from fermata.limits.limit_keys import COUNTS_SORT_KEY, build_user_limits_key
from fermata.limits.limit_refusals import describe_wait
from fermata.limits.usage_counters import UsageCounters, Use

_MAX_ATTEMPTS = 20
SEARCHES_PER_PROMPT = 4
"""Somebody searches more often than they ask an assistant, and the text of a search is short."""
_HOST_BITS = 64
"""Of an IPv6 address: whoever has one has all that differ in them only."""


def count_visitor(resources: Resources, tenant: str, address: str, place: str, per_minute: int) -> None:
    """Count one request of a visitor, or refuse it as one too many.

    Args:
        resources: Of the process.
        tenant: The workspace.
        address: The address of the visitor's network; all without one count together.
        place: What the visitor sends to, which has counts of its own.
        per_minute: How many requests a minute may have.

    Raises:
        TooManyRequests: It is one too many.
        ServiceUnavailable: Others changed the row in every attempt.
    """
    visitor = f"visitor\n{place}\n{_to_network(address)}"
    key = build_user_limits_key(resources, tenant, visitor, COUNTS_SORT_KEY)
    _count_in_row(resources, key, per_minute, "visitor")


def count_paid_search(resources: Resources, caller: Caller, limits: CallerLimits) -> None:
    """Count one search that asks a provider, or refuse it as one too many. Prompts are counted apart.

    Args:
        resources: Of the process.
        caller: The user.
        limits: Of the user: for each prompt of a minute there are `SEARCHES_PER_PROMPT`.

    Raises:
        TooManyRequests: It is one too many.
        ServiceUnavailable: Others changed the row in every attempt.
    """
    key = build_user_limits_key(resources, caller.tenant, caller.user, "searches")
    _count_in_row(resources, key, limits.user.prompts_per_minute * SEARCHES_PER_PROMPT, "searches")


def _count_in_row(resources: Resources, key: ItemKey, per_minute: int, reason: str) -> None:
    limits = UseLimits(per_minute, 0, 0, 0, 0)
    use = Use(prompts=1, single=new_id())
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        item = resources.tables.get_item_by_key(key) or {}
        counters = UsageCounters(key, item, limits, resources.clock.time())
        if reached := counters.find_limit_reached(use):
            seconds = max(1, int(reached.free_in or 0))
            text = f"You have sent this as often as you may in a minute. Try again in {describe_wait(seconds)}."
            raise TooManyRequests(text, retry_after=seconds, reason=reason)
        with suppress(ConditionFailed):
            resources.tables.write_items(counters.build_update(use))
            return
        resources.clock.sleep(draw_pause(attempt))
    raise ServiceUnavailable("Too many requests began at once. Send the same request again.", retry_after=1)


def _to_network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed) >> _HOST_BITS << _HOST_BITS, _HOST_BITS)))
    return str(parsed)
