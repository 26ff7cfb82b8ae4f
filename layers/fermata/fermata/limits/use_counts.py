"""Count what one user, or a part of a tenant, has used: in one row, which changes on condition of its version.

    t#<tenant>#limits#user#<hash>     counts   version; free_at; day, uploads, bytes; x#<turn> for each turn that runs
    t#<tenant>#limits#tenant#<shard>  counts   the same
    each of them                      readers  version; x#<id> for each reader

`free_at` (epoch microseconds) is when everything that was used of the prompts of a minute is free again. A turn counts
until END removes its lease `x#<turn>`, or until the lease expires (epoch seconds). An attribute that this module cannot
have written counts as missing, and the next write replaces it (decision 0239).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeGuard

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Update
from fermata.domain.use_limits import UseLimits

TURN_LEASE_SECONDS = 3600
"""How long a turn counts at most: one that waits for its browser for longer uses nothing."""
COUNTS_SORT_KEY = "counts"
READERS_SORT_KEY = "readers"
READER_LEASE_SECONDS = 120
"""How long a reader counts that does not renew its lease."""
LEASE_PREFIX = "x#"
_ROW_TTL_SECONDS = 2 * 86_400
_MINUTE_US = 60_000_000
_MAX_REMOVED = 100
"""Dead leases that one write removes, so that its expression is not too long."""
_KEPT_EXPIRED_TURNS = 50
"""Leases of turns that an operator still finds by them after they have expired, the latest (decision 0307)."""
_MAX_COUNT = 10**17
"""More than this module counts, and later than the microseconds of this millennium."""

LimitReason = Literal["prompts", "turns", "readers", "uploads", "stored_bytes"]


@dataclass(frozen=True)
class Use:
    """What a request uses."""

    prompts: int = 0
    turn: str = ""
    """The id of the turn that it starts."""
    ending: str = ""
    """The id of a turn that ends before it starts, and then counts no more."""
    reader: str = ""
    """The id of the reader that it admits; no other use goes with it."""
    uploads: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True)
class LimitReached:
    """A limit that a request exceeds, and the seconds until it may succeed; None where nobody can know them."""

    reason: LimitReason
    limit: int
    free_in: float | None


@dataclass(frozen=True)
class UseCounts:
    """The counts of a row as it was read, and the limits that they are held against."""

    key: ItemKey
    item: Item
    limits: UseLimits
    now: float
    sort_key: ClassVar[str] = COUNTS_SORT_KEY
    lease_seconds: ClassVar[int] = TURN_LEASE_SECONDS
    kept_leases: ClassVar[int] = _KEPT_EXPIRED_TURNS
    """How many leases that have expired stay in the row."""

    def count_running(self, ending: str = "") -> int:
        """Return how many leases count, of turns or of readers, besides that of one that ends."""
        leases = list_live_leases(self.item, self.now, self.lease_seconds)
        return len(leases) - (LEASE_PREFIX + ending in leases)

    @staticmethod
    def get_limit_at_once(limits: UseLimits) -> int:
        """Return how many leases may count at once."""
        return limits.turns_at_once

    def find_limit_reached(self, use: Use) -> LimitReached | None:
        """Return the first limit that the use exceeds."""
        limits = self.limits
        if use.prompts and (free_in := self._compute_wait()) > 0:
            return LimitReached("prompts", limits.prompts_per_minute, free_in)
        if use.turn and self.count_running(use.ending) >= limits.turns_at_once:
            return LimitReached("turns", limits.turns_at_once, None)
        if use.uploads and self._count_of_day("uploads") + use.uploads > limits.uploads_per_day:
            return LimitReached("uploads", limits.uploads_per_day, self._seconds_left_of_day)
        if use.stored_bytes and self._count_of_day("bytes") + use.stored_bytes > limits.bytes_per_day:
            return LimitReached("stored_bytes", limits.bytes_per_day, self._seconds_left_of_day)
        return None

    def build_update(self, use: Use) -> Update:
        """Build the write that counts the use. It fails if the row was changed since it was read."""
        values: dict[str, Any] = {
            "v": 1,
            "day": self._day,
            "uploads": self._count_of_day("uploads") + use.uploads,
            "bytes": self._count_of_day("bytes") + use.stored_bytes,
            "free_at": self._compute_free_at(use.prompts),
            "ttl": int(self.now) + _ROW_TTL_SECONDS,
        }
        if use.turn:
            values[LEASE_PREFIX + use.turn] = int(self.now) + TURN_LEASE_SECONDS
        return self._build_update(values)

    def _build_update(self, values: Item) -> Update:
        dead_leases = list_dead_leases(self.item, self.now, self.lease_seconds, self.kept_leases)
        return build_versioned_update(self.key, self.item, values, dead_leases[:_MAX_REMOVED])

    @property
    def _day(self) -> str:
        """The day that counts: today, or a later one that a process with another clock has begun."""
        today = _to_day(self.now)
        stored = self.item.get("day")
        return max(today, stored) if stored in (today, _to_day(self.now + 86_400)) else today

    @property
    def _seconds_left_of_day(self) -> float:
        return 86_400 - self.now % 86_400

    def _count_of_day(self, name: str) -> int:
        count = self.item.get(name)
        return count if self.item.get("day") == self._day and _is_count(count) else 0

    @property
    def _used_until_us(self) -> int:
        """The stored `free_at`, or now. One that is more than two minutes ahead was not written by this rule."""
        now = int(self.now * 1_000_000)
        free_at = self.item.get("free_at")
        return max(now, free_at) if _is_count(free_at) and free_at <= now + 2 * _MINUTE_US else now

    def _compute_wait(self) -> float:
        """Return the seconds until a prompt is free. After a pause, the prompts of a minute are free at once."""
        if self.limits.prompts_per_minute < 1:
            return 60
        used_us = self._used_until_us - int(self.now * 1_000_000)
        return (used_us - _MINUTE_US + self._prompt_us) / 1_000_000

    def _compute_free_at(self, prompts: int) -> int:
        return self._used_until_us + (prompts * self._prompt_us if prompts else 0)

    @property
    def _prompt_us(self) -> int:
        return _MINUTE_US // self.limits.prompts_per_minute


@dataclass(frozen=True)
class ReaderCounts(UseCounts):
    """The same of a row that counts readers."""

    sort_key: ClassVar[str] = READERS_SORT_KEY
    lease_seconds: ClassVar[int] = READER_LEASE_SECONDS
    kept_leases: ClassVar[int] = 0

    @staticmethod
    def get_limit_at_once(limits: UseLimits) -> int:
        """Return how many leases may count at once."""
        return limits.readers_at_once

    def find_limit_reached(self, use: Use) -> LimitReached | None:
        """Return the limit of readers if one more exceeds it."""
        limit = self.limits.readers_at_once
        return LimitReached("readers", limit, None) if self.count_running() >= limit else None

    def build_update(self, use: Use) -> Update:
        """Build the write that counts a reader. It fails if the row was changed since it was read."""
        lease = {LEASE_PREFIX + use.reader: int(self.now) + self.lease_seconds}
        return self._build_update({"v": 1, "ttl": int(self.now) + _ROW_TTL_SECONDS} | lease)


def build_versioned_update(key: ItemKey, item: Item, values: Item, removed: Iterable[str]) -> Update:
    """Build the write that sets and removes attributes of a row whose version is still the one that was read.

    Args:
        item: The row as it was read; empty if there is none.
        values: The new attributes.
        removed: Attributes to remove.
    """
    version = item.get("version")
    values = values | {"version": version + 1 if _is_count(version) else 1}
    names = {f"#s{number}": name for number, name in enumerate(values)}
    assignments = ", ".join(f"{place} = :{place[1:]}" for place in names)
    gone = {f"#r{number}": name for number, name in enumerate(removed) if name not in values}
    removals = f" REMOVE {', '.join(gone)}" if gone else ""
    expression = f"SET {assignments}{removals}"
    new_values = {f":{place[1:]}": values[name] for place, name in names.items()}
    names |= gone | {"#version": "version"}
    if "version" not in item:
        return Update(*key, expression, new_values, names, "attribute_not_exists(#version)")
    return Update(*key, expression, new_values | {":read": version}, names, "#version = :read")


def build_lease_removal(key: ItemKey, lease: str, now: float) -> Update:
    """Build the write that removes a lease, whether it is there or not."""
    values = {":ttl": int(now) + _ROW_TTL_SECONDS}
    names = {"#lease": LEASE_PREFIX + lease, "#ttl": "ttl"}
    return Update(*key, "SET #ttl = :ttl REMOVE #lease", values, names, condition="")


def build_reader_renewal(key: ItemKey, reader: str, now: float) -> Update:
    """Build the write that prolongs a lease. It fails if the lease is gone, or was prolonged by a later write."""
    values = {":expires": int(now) + READER_LEASE_SECONDS, ":ttl": int(now) + _ROW_TTL_SECONDS}
    names = {"#lease": LEASE_PREFIX + reader, "#ttl": "ttl"}
    condition = "attribute_exists(#lease) AND #lease < :expires"
    return Update(*key, "SET #lease = :expires, #ttl = :ttl", values, names, condition)


def build_reader_removal(key: ItemKey, reader: str) -> Update:
    """Build the write that removes a lease. It fails if the lease is gone."""
    names = {"#lease": LEASE_PREFIX + reader}
    return Update(*key, "REMOVE #lease", {}, names, condition="attribute_exists(#lease)")


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


def _iter_leases(item: Item) -> Iterator[tuple[str, object]]:
    yield from ((name, value) for name, value in item.items() if name.startswith(LEASE_PREFIX))


def _is_live(expires: object, now: float, lifetime_seconds: float) -> bool:
    return isinstance(expires, int) and now < expires <= now + 2 * lifetime_seconds


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT


def _to_day(epoch_seconds: float) -> str:
    return f"{datetime.fromtimestamp(epoch_seconds, UTC):%Y-%m-%d}"
