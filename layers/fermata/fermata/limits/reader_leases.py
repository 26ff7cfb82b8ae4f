"""Count the readers that follow turns: each has a lease, which it renews while it reads (decision 0263)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from fermata.aws import observability
from fermata.aws.clock import CancellableTimer, new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, ItemKey, Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.caller import Caller
from fermata.domain.use_limits import CallerLimits
from fermata.limits.count_use import UseCounter, write_counts
from fermata.limits.leases import build_reader_removal, build_reader_renewal
from fermata.limits.usage_counters import ReaderCounters, Use

READER_RENEWAL_SECONDS = 50
"""Two renewals may fail before the lease of a reader expires."""


class ReaderLease:
    """The lease of a reader. It is renewed until `release`, or until no response can last any longer."""

    def __init__(self, resources: Resources, keys: tuple[ItemKey, ItemKey], reader: str) -> None:
        self._resources, self._keys, self._reader = resources, keys, reader
        self._lock = resources.clock.new_lock()
        self._timer: CancellableTimer | None = None
        self._is_released = False
        self._last_renewal_at = resources.clock.monotonic() + resources.settings.reader_seconds
        self._schedule_renewal()

    @classmethod
    def take(cls, resources: Resources, caller: Caller, limits: CallerLimits) -> "ReaderLease":
        """Count a reader.

        Args:
            resources: The AWS resources and the clock.
            caller: The user who reads, and the user's tenant.
            limits: How many readers both may have at once.

        Raises:
            TooManyRequests: The user or the tenant has as many readers as it may have at once.
        """
        reader = new_id()
        counter = UseCounter(resources, caller, limits, reader, counts=ReaderCounters)
        counter.commit(Use(reader=reader, single=reader), partial(write_counts, resources))
        return cls(resources, counter.keys, reader)

    @contextmanager
    def released_on_failure(self) -> Iterator[None]:
        """Release it if the block raises: then nobody reads."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Count the reader no more. Safe to repeat. If this fails, its lease expires."""
        with self._lock:
            if self._is_released:
                return
            self._is_released = True
            if self._timer:
                self._timer.cancel()
        self._write(lambda key: build_reader_removal(key, self._reader))

    def _schedule_renewal(self) -> None:
        self._timer = self._resources.clock.start_timer(READER_RENEWAL_SECONDS, self._renew)

    def _renew(self) -> None:
        with self._lock:
            if self._is_released or self._resources.clock.monotonic() > self._last_renewal_at:
                return
            self._schedule_renewal()
        now = self._resources.clock.time()
        self._write(lambda key: build_reader_renewal(key, self._reader, now))

    def _write(self, build: Callable[[ItemKey], Update]) -> None:
        """Write to both rows. A lease that is gone stays so, and a renewal that fails is followed by another one."""
        for key in self._keys:
            try:
                with suppress(ConditionFailed):
                    self._resources.tables.write_items(build(key))
            except AWS_ERRORS:
                observability.log_exception("reader.lease_not_written")
