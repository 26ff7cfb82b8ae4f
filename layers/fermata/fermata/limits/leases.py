"""Count the turns that run, or the readers that follow them: each has a lease in the row that counts it.

    leases   the ids of the leases that count
    x#<id>   when each of them expires (epoch seconds), and of the latest that have expired

The set exists because DynamoDB tells its size in a condition. So leases that stay within the limit are taken in any
order. A set that is not exactly the ids of the live leases is replaced by them, on condition that it is what was read:
when leases have expired, or in a row with a `version`, which earlier versions of this service have written
(decision 0288).
"""

from collections.abc import Iterator
from functools import cached_property

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Update
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_row_update import CountRowUpdate

LEASE_PREFIX = "x#"
LEASES_ATTRIBUTE = "leases"
ROW_TTL_SECONDS = 2 * 86_400
READER_LEASE_SECONDS = 120
"""How long a reader counts that does not renew its lease."""
_VERSION = "version"
_MAX_REMOVED = 100
"""Dead leases that one write removes, so that its expression is not too long."""


@value_dataclass(frozen=True)
class Leases:
    """The leases of a row as it was read.

    Args:
        lifetime_seconds: How long a lease lasts.
        kept_count: How many leases that have expired stay in the row, the latest.
    """

    item: Item
    now: float
    lifetime_seconds: int
    kept_count: int

    @cached_property
    def live_ids(self) -> frozenset[str]:
        """The ids of those that count."""
        names = list_live_leases(self.item, self.now, self.lifetime_seconds)
        return frozenset(name.removeprefix(LEASE_PREFIX) for name in names)

    def take(self, update: CountRowUpdate, lease: str, limit: int) -> None:
        """Take one more lease, on condition that fewer than the limit are taken.

        Args:
            update: The write of the row.
            lease: The id of the lease.
            limit: How many may be taken.
        """
        update.set(LEASE_PREFIX + lease, int(self.now) + self.lifetime_seconds)
        dead_leases = list_dead_leases(self.item, self.now, self.lifetime_seconds, self.kept_count)
        if not dead_leases and _VERSION not in self.item and self.item.get(LEASES_ATTRIBUTE, set()) == self.live_ids:
            update.add(LEASES_ATTRIBUTE, {lease})
            update.require_fewer_members(LEASES_ATTRIBUTE, limit)
        else:
            update.set(LEASES_ATTRIBUTE, {*self.live_ids, lease})
            update.remove([*dead_leases[:_MAX_REMOVED], _VERSION])
            update.require_as_read(self.item, [LEASES_ATTRIBUTE])
        update.require_as_read(self.item, [_VERSION])


def list_live_leases(item: Item, now: float, lifetime_seconds: float) -> list[str]:
    """Return the attributes of leases that count.

    One that expires later than any that this service writes is damaged, and counts no more than an expired one. The
    clocks of processes may differ by as much as a lease lasts.
    """
    return [name for name, expires in _iter_leases(item) if _is_live(expires, now, lifetime_seconds)]


def list_dead_leases(item: Item, now: float, lifetime_seconds: float, kept_count: int) -> list[str]:
    """Return the attributes of leases that do not count any more: damaged ones, and all expired ones but the latest.

    Args:
        kept_count: How many of the expired ones are not returned.
    """
    dead = {name: expires for name, expires in _iter_leases(item) if not _is_live(expires, now, lifetime_seconds)}
    expired = {name: expires for name, expires in dead.items() if isinstance(expires, int) and expires <= now}
    oldest_first = sorted(expired, key=lambda name: expired[name])
    return [*(name for name in dead if name not in expired), *oldest_first[: max(0, len(expired) - kept_count)]]


def list_leases(item: Item) -> list[str]:
    """Return the attributes of all leases, also of those that do not count any more."""
    return [name for name, _ in _iter_leases(item)]


def build_lease_removal(key: ItemKey, lease: str, now: float) -> Update:
    """Build the write that removes a lease, whether it is there or not."""
    names = {"#lease": LEASE_PREFIX + lease, "#leases": LEASES_ATTRIBUTE, "#ttl": "ttl"}
    values = {":lease": {lease}, ":ttl": int(now) + ROW_TTL_SECONDS}
    return Update(*key, "SET #ttl = :ttl REMOVE #lease DELETE #leases :lease", values, names, condition="")


def build_reader_renewal(key: ItemKey, reader: str, now: float) -> Update:
    """Build the write that prolongs a lease. It fails if the lease is gone, or was prolonged by a later write."""
    values = {":expires": int(now) + READER_LEASE_SECONDS, ":ttl": int(now) + ROW_TTL_SECONDS}
    names = {"#lease": LEASE_PREFIX + reader, "#ttl": "ttl"}
    condition = "attribute_exists(#lease) AND #lease < :expires"
    return Update(*key, "SET #lease = :expires, #ttl = :ttl", values, names, condition)


def build_reader_removal(key: ItemKey, reader: str) -> Update:
    """Build the write that removes a lease. It fails if the lease is gone."""
    names = {"#lease": LEASE_PREFIX + reader, "#leases": LEASES_ATTRIBUTE}
    expression = "REMOVE #lease DELETE #leases :lease"
    return Update(*key, expression, {":lease": {reader}}, names, condition="attribute_exists(#lease)")


def _iter_leases(item: Item) -> Iterator[tuple[str, object]]:
    yield from ((name, value) for name, value in item.items() if name.startswith(LEASE_PREFIX))


def _is_live(expires: object, now: float, lifetime_seconds: float) -> bool:
    return isinstance(expires, int) and now < expires <= now + 2 * lifetime_seconds
