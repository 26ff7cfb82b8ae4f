"""Count what one user, or a part of a tenant, has used, in one row.

    t#<tenant>#limits#user#<hash>     counts   leases, x#<turn> of turns; base_us, used_us; day, uploads, bytes;
                                               at#<slot> of uses that stand beside no log entry
    t#<tenant>#limits#tenant#<shard>  counts   the same
    each of them                      readers  leases, x#<id> of readers; at#<slot>

The write of a request says what must be true of the row, so that no limit is exceeded. Prompts that stay within the
limits do not disturb each other. An attribute that this package cannot have written counts as missing, and the next
write replaces it (decisions 0239 and 0288).
"""

from typing import ClassVar, Literal

from fermata.aws.dynamodb_items_and_writes import Delete, Item, ItemKey, Update
from fermata.domain.use_limits import UseLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.day_counts import STORED_BYTES, UPLOADS, DayCounts
from fermata.limits.leases import READER_LEASE_SECONDS, ROW_TTL_SECONDS, Leases
from fermata.limits.limit_keys import COUNTS_SORT_KEY
from fermata.limits.prompt_bucket import PromptBucket, PromptRate
from fermata.limits.refuse_late_copy import refuse_late_copy

TURN_LEASE_SECONDS = 3600
"""How long a turn counts at most: one that waits for its browser for longer uses nothing."""
READERS_SORT_KEY = "readers"
_KEPT_EXPIRED_TURNS = 50
"""Leases of turns that an operator still finds by them after they have expired, the latest (decision 0307)."""
_COUNTED = ("leases", "base_us", "day", "version")
"""Of these attributes, every row has one that counts something."""

LimitReason = Literal["prompts", "turns", "readers", "uploads", "stored_bytes"]


@value_dataclass(frozen=True)
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
    single: str = ""
    """The id of a use that goes along with no other write, which would refuse its late copy."""


@value_dataclass(frozen=True)
class LimitReached:
    """A limit that a request exceeds, and the seconds until it may succeed; None where nobody can know them."""

    reason: LimitReason
    limit: int
    free_in: float | None


@value_dataclass(frozen=True)
class UsageCounters:
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
        return len(self._leases.live_ids - {ending})

    @staticmethod
    def get_limit_at_once(limits: UseLimits) -> int:
        """Return how many leases may count at once."""
        return limits.turns_at_once

    def find_limit_reached(self, use: Use) -> LimitReached | None:
        """Return the first limit that the use exceeds."""
        limits, day = self.limits, self._day_counts
        if use.prompts and (free_in := self._prompt_bucket.compute_wait()) > 0:
            return LimitReached("prompts", limits.prompts_per_minute, free_in)
        if use.turn and self.count_running(use.ending) >= limits.turns_at_once:
            return LimitReached("turns", limits.turns_at_once, None)
        if use.uploads and day.get_count(UPLOADS) + use.uploads > limits.uploads_per_day:
            return LimitReached("uploads", limits.uploads_per_day, day.seconds_left)
        if use.stored_bytes and day.get_count(STORED_BYTES) + use.stored_bytes > limits.bytes_per_day:
            return LimitReached("stored_bytes", limits.bytes_per_day, day.seconds_left)
        return None

    def describe_prompt_rate(self, use: Use) -> PromptRate:
        """Return how many prompts are left behind the use."""
        return self._prompt_bucket.describe_rate(use.prompts)

    def build_update(self, use: Use) -> Update:
        """Build the write that counts the use. It fails if the row, as it is then, has no room for it."""
        update = CountRowUpdate(self.key)
        update.set("ttl", int(self.now) + ROW_TTL_SECONDS)
        if lease := use.turn or use.reader:
            self._leases.take(update, lease, self.get_limit_at_once(self.limits))
        if use.prompts:
            self._prompt_bucket.count(update, use.prompts)
        if use.uploads or use.stored_bytes:
            limits = {UPLOADS: self.limits.uploads_per_day, STORED_BYTES: self.limits.bytes_per_day}
            self._day_counts.count(update, {UPLOADS: use.uploads, STORED_BYTES: use.stored_bytes}, limits)
        if use.single:
            refuse_late_copy(update, self.item, use.single, self.now)
        return update.build()

    @property
    def _leases(self) -> Leases:
        return Leases(self.item, self.now, self.lease_seconds, self.kept_leases)

    @property
    def _prompt_bucket(self) -> PromptBucket:
        return PromptBucket(self.item, self.now, self.limits.prompts_per_minute)

    @property
    def _day_counts(self) -> DayCounts:
        return DayCounts(self.item, self.now)


@value_dataclass(frozen=True)
class ReaderCounters(UsageCounters):
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


def counts_anything(item: Item) -> bool:
    """Return whether a row has more than what the end of a turn leaves in a row that is gone."""
    return any(name in item for name in _COUNTED)


def build_empty_row_delete(key: ItemKey) -> Delete:
    """Build the write that deletes a row unless it counts anything."""
    names = {f"#n{number}": name for number, name in enumerate(_COUNTED)}
    return Delete(*key, condition=" AND ".join(f"attribute_not_exists({place})" for place in names), names=names)
