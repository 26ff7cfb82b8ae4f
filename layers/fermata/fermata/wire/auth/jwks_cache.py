"""Keep the key set of one JWKS URL for all threads of a process (decision 0241).

At most one request for it is under way. While it is, threads that need no newer key go on with the set they have. A few
others wait, for a limited time, and the rest are refused at once: the server of one tenant must not occupy the threads
that others need. A failure is remembered, so that a server that is down is not asked by every caller.
"""

import math
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from jwt import PyJWK

from fermata.aws.clock import Clock
from fermata.domain.errors import ServiceUnavailable

KEY_SET_TTL_SECONDS = 300
MIN_KEY_SET_REFETCH_SECONDS = 30
MAX_KEY_SET_STALE_SECONDS = 3600
KEY_SET_FAILURE_SECONDS = 10
"""How long no further request is sent after one that failed."""
KEY_SET_FETCH_SECONDS = 3.0
"""How long a thread waits for a key set, from the resolution of the host's name to the last byte."""
MAX_KEY_SET_WAITERS = 4
"""Threads that wait for the same key set."""

KeySelector: TypeAlias = Callable[[Sequence[PyJWK]], Sequence[PyJWK]]


class JwksCache:
    """The keys of one URL.

    Args:
        load: Fetches and parses them, or returns None if that fails. It is called in a thread of its own, because the
            resolution of a name has no time limit.
    """

    def __init__(self, clock: Clock, load: Callable[[], Sequence[PyJWK] | None]) -> None:
        self._clock = clock
        self._load = load
        self._lock = clock.new_lock()
        self._keys: Sequence[PyJWK] = ()
        self._loaded_at = -math.inf
        self._started_at = -math.inf
        self._failed_at = -math.inf
        self._fetch: threading.Event | None = None
        self._waiters = 0

    def find_keys(self, select: KeySelector) -> Sequence[PyJWK]:
        """Return the keys that `select` finds, from a new key set if it finds none in the one that is cached.

        Raises:
            ServiceUnavailable: It finds none, and the key set could not be fetched.
        """
        fetch = self._begin_fetch(select)
        if fetch is not None:
            self._wait_for(fetch)
        with self._lock:
            keys = select(self._get_usable_keys())
            if not keys and (self._failed_at >= self._loaded_at or not self._is_fresh()):
                raise self._unavailable()
            return keys

    def _begin_fetch(self, select: KeySelector) -> threading.Event | None:
        """Return the fetch that this thread has to wait for, which it may have begun; None for none."""
        with self._lock:
            now = self._clock.monotonic()
            is_found = bool(select(self._get_usable_keys()))
            if self._fetch is not None:
                return None if is_found or now - self._started_at > KEY_SET_FETCH_SECONDS else self._add_waiter()
            pause = math.inf if is_found else MIN_KEY_SET_REFETCH_SECONDS
            is_current = self._is_fresh() and now - self._started_at < pause
            if is_current or now - self._failed_at < KEY_SET_FAILURE_SECONDS:
                return None
            # The thread first, which waits for the lock at its end: nobody waits for one that cannot be started.
            self._clock.start_thread(self._run_fetch, "key set")
            self._fetch = self._clock.new_event()
            self._started_at = now
            return self._add_waiter()

    def _add_waiter(self) -> threading.Event:
        if self._waiters >= MAX_KEY_SET_WAITERS:
            raise self._unavailable()
        self._waiters += 1
        assert self._fetch is not None
        return self._fetch

    def _wait_for(self, fetch: threading.Event) -> None:
        is_done = fetch.wait(KEY_SET_FETCH_SECONDS)
        with self._lock:
            self._waiters -= 1
            if not is_done and self._fetch is fetch:  # it is not repeated before its thread has ended
                self._failed_at = self._clock.monotonic()

    def _run_fetch(self) -> None:
        keys: Sequence[PyJWK] | None = None
        try:
            keys = self._load()
        finally:
            with self._lock:
                now = self._clock.monotonic()
                if keys is None:
                    self._failed_at = now
                else:
                    self._keys, self._loaded_at, self._failed_at = keys, now, -math.inf
                fetch, self._fetch = self._fetch, None
            if fetch is not None:
                fetch.set()

    def _is_fresh(self) -> bool:
        return self._clock.monotonic() - self._loaded_at < KEY_SET_TTL_SECONDS

    def _get_usable_keys(self) -> Sequence[PyJWK]:
        is_usable = self._clock.monotonic() - self._loaded_at < MAX_KEY_SET_STALE_SECONDS
        return self._keys if is_usable else ()

    def _unavailable(self) -> ServiceUnavailable:
        refusal = "The server that publishes this tenant's keys does not answer. Try again in a moment."
        return ServiceUnavailable(refusal, retry_after=5)
