"""Count what a request uses, for its user and its tenant, in the transaction of what the request does.

A tenant's counts are spread over 16 rows, each of which may use a part of the limits. A request counts in the row that
its id selects. Only where that row is full are the others read too, and the request counts in another one.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from fermata.aws.dynamodb_client import draw_pause
from fermata.aws.dynamodb_items_and_writes import (
    CancellationReason,
    ConditionFailed,
    Item,
    ItemKey,
    ReadItem,
    TransactionCanceled,
    Update,
)
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable
from fermata.domain.use_limits import CallerLimits
from fermata.limits.limit_keys import (
    TENANT_SHARDS,
    build_tenant_limits_key,
    build_user_limits_key,
    divide_limits,
    select_tenant_shard,
)
from fermata.limits.limit_refusals import build_limit_refusal, check_use_fits_limits
from fermata.limits.prompt_bucket import PromptRate
from fermata.limits.turn_count_removals import list_turn_keys
from fermata.limits.usage_counters import (
    LimitReached,
    UsageCounters,
    Use,
    build_empty_row_delete,
    counts_anything,
)

_Committed = TypeVar("_Committed")
MAX_USE_ATTEMPTS = 20


class UsageCountersChanged(Exception):
    """A row has no room for the use any more, or not as its write was built. `items` are these rows as they are now."""

    def __init__(self, items: Mapping[ItemKey, Item]) -> None:
        super().__init__("the counts have changed")
        self.items = items

    @classmethod
    def from_reasons(cls, writes: Sequence[Update], reasons: Sequence[CancellationReason]) -> "UsageCountersChanged":
        """Take the rows of the writes that were refused."""
        refused = [pair for pair in zip(writes, reasons, strict=True) if pair[1].condition_failed]
        return cls({ItemKey(write.table, write.pk, write.sk): reason.item or {} for write, reason in refused})


class UseCounter:
    """Counts the use of one request.

    Args:
        use_id: The id of the turn, upload or reader, which selects the tenant's row.
        read_item: Reads a row that was read together with others; by default both rows are read with a request.
        counts: The kind of rows in which it counts.
    """

    def __init__(
        self,
        resources: Resources,
        caller: Caller,
        limits: CallerLimits,
        use_id: str,
        read_item: ReadItem | None = None,
        counts: type[UsageCounters] = UsageCounters,
    ) -> None:
        self._counts = counts
        self._resources, self._limits, self._tenant = resources, limits, caller.tenant
        self.shard = select_tenant_shard(use_id)
        """Which of the tenant's rows the request counts in; `require_room` may choose another one."""
        self._user_key, shard_key = list_count_keys(resources, caller, use_id, counts)
        self._items: dict[ItemKey, Item] = {}
        if read_item is not None:
            self._items = {key: read_item(key) or {} for key in (self._user_key, shard_key)}
        else:
            self.read_again()

    def read_again(self) -> None:
        """Read the rows as they are now."""
        keys = [self._user_key, self._build_shard_key(self.shard)]
        self._items = {key: {} for key in keys} | self._resources.tables.batch_get_by_keys(keys)

    def require_room(self, use: Use) -> None:
        """Return if the use is within all limits.

        Raises:
            TooManyRequests: It exceeds a limit of the user or of the tenant.
            PayloadTooLarge: It exceeds a limit by itself.
        """
        check_use_fits_limits(use, self._limits)
        if reached := self._user_counts.find_limit_reached(use):
            raise build_limit_refusal(reached, "user")
        if self._build_shard_counts(self.shard).find_limit_reached(use):
            self.shard = self._find_other_shard(use)

    def commit(self, use: Use, commit: Callable[[Sequence[Update]], _Committed]) -> _Committed:
        """Call `commit` with the writes that count the use; return what it returns.

        Args:
            commit: Applies the writes in one transaction. It is called again after `UsageCountersChanged`.

        Raises:
            TooManyRequests: The use exceeds a limit.
            ServiceUnavailable: The rows had changed in each of MAX_USE_ATTEMPTS attempts.
        """
        for attempt in range(1, MAX_USE_ATTEMPTS + 1):
            self.require_room(use)
            counts = (self._user_counts, self._build_shard_counts(self.shard))
            try:
                return commit([count.build_update(use) for count in counts])
            except UsageCountersChanged as changed:
                self._items |= changed.items
                self._resources.clock.sleep(draw_pause(attempt))
        raise ServiceUnavailable("Too many requests began at once. Send the same request again.", retry_after=1)

    def describe_prompt_rate(self, use: Use) -> PromptRate:
        """Return how many prompts of a minute the user has left behind the use, as far as this process knows."""
        return self._user_counts.describe_prompt_rate(use)

    @property
    def _user_counts(self) -> UsageCounters:
        now = self._resources.clock.time()
        return self._counts(self._user_key, self._items[self._user_key], self._limits.user, now)

    def _build_shard_counts(self, shard: int) -> UsageCounters:
        key = self._build_shard_key(shard)
        limits = divide_limits(self._limits.tenant, shard)
        return self._counts(key, self._items[key], limits, self._resources.clock.time())

    def _build_shard_key(self, shard: int) -> ItemKey:
        return build_tenant_limits_key(self._resources, self._tenant, shard, self._counts.sort_key)

    @property
    def keys(self) -> tuple[ItemKey, ItemKey]:
        """The rows in which the request counts: its user's, and one of its tenant's."""
        return self._user_key, self._build_shard_key(self.shard)

    def _find_other_shard(self, use: Use) -> int:
        """Return the next of the tenant's rows that has room, as they are now."""
        order = [(self.shard + step) % TENANT_SHARDS for step in range(TENANT_SHARDS)]
        keys = [self._build_shard_key(shard) for shard in order]
        self._items |= {key: {} for key in keys} | self._resources.tables.batch_get_by_keys(keys)
        shards = {shard: self._build_shard_counts(shard) for shard in order}
        limit = self._counts.get_limit_at_once(self._limits.tenant)
        if (use.turn or use.reader) and sum(counts.count_running(use.ending) for counts in shards.values()) >= limit:
            raise build_limit_refusal(LimitReached("turns" if use.turn else "readers", limit, None), "tenant")
        reached = {shard: counts.find_limit_reached(use) for shard, counts in shards.items()}
        free_shard = next((shard for shard in order if reached[shard] is None), None)
        if free_shard is None:
            raise build_limit_refusal(self._combine(list(filter(None, reached.values()))), "tenant")
        return free_shard

    def _combine(self, reached: Sequence[LimitReached]) -> LimitReached:
        """Return the refusal of the row that is free first, with the limit of all rows."""
        first = min(reached, key=lambda limit: limit.free_in if limit.free_in is not None else 0)
        tenant = self._limits.tenant
        limits = {
            "prompts": tenant.prompts_per_minute,
            "turns": tenant.turns_at_once,
            "readers": tenant.readers_at_once,
            "uploads": tenant.uploads_per_day,
            "stored_bytes": tenant.bytes_per_day,
        }
        return replace(first, limit=limits[first.reason])


def list_count_keys(
    resources: Resources, caller: Caller, use_id: str, counts: type[UsageCounters] = UsageCounters
) -> tuple[ItemKey, ItemKey]:
    """Return the keys of the rows in which a request counts: its user's, and one of its tenant's.

    Args:
        caller: The user who sends the request.
        use_id: The id under which the request counts. It selects the tenant's row.
        counts: The kind of row.
    """
    shard = select_tenant_shard(use_id)
    return (
        build_user_limits_key(resources, caller.tenant, caller.user, counts.sort_key),
        build_tenant_limits_key(resources, caller.tenant, shard, counts.sort_key),
    )


def count_upload(resources: Resources, caller: Caller, limits: CallerLimits, upload_ref: str, size: int) -> None:
    """Count an upload that is announced, whether its content follows or not.

    Args:
        limits: The limits of the user and the tenant.
        upload_ref: The reference of the upload. Under the same reference it counts once.
        size: The announced size in bytes.

    Raises:
        TooManyRequests: It exceeds a limit.
    """
    count_single_use(resources, caller, limits, upload_ref, Use(uploads=1, stored_bytes=size))


def count_single_use(resources: Resources, caller: Caller, limits: CallerLimits, use_id: str, use: Use) -> None:
    """Count a use that goes along with no other write. It counts once, though its write may land again (decision 0402).

    Args:
        caller: The user who sends the request.
        limits: The limits of the user and the tenant.
        use_id: The id of the use, which no other one has. It selects the tenant's row.
        use: What the request uses.

    Raises:
        TooManyRequests: It exceeds a limit.
        PayloadTooLarge: It exceeds a limit by itself.
    """
    counter = UseCounter(resources, caller, limits, use_id)
    counter.commit(replace(use, single=use_id), partial(write_counts, resources))


def write_counts(resources: Resources, writes: Sequence[Update]) -> None:
    """Write counts that go along with nothing else.

    Raises:
        UsageCountersChanged: They have changed since they were read.
    """
    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled as refused:
        raise UsageCountersChanged.from_reasons(writes, refused.reasons) from refused


def delete_empty_counts(resources: Resources, tenant: str, user: str, shard: int) -> None:
    """Delete the rows that only the end of a turn has made, because what they had counted was erased before.

    Args:
        tenant: The tenant's name.
        user: The id of the user who started the turn.
        shard: The shard of the tenant's counts in which the turn counted.
    """
    for key in list_turn_keys(resources, tenant, user, shard):
        row = resources.tables.get_item_by_key(key)
        if row is not None and not counts_anything(row):
            # A user who is back counts in the same row, at once or before a late copy of this delete.
            with suppress(ConditionFailed):
                resources.tables.write_items(build_empty_row_delete(key))
