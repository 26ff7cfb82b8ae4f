"""Store the snapshot of a request: while its rows are read, or once it is needed (decisions 0177, 0239 and 0286)."""

from collections.abc import Callable
from typing import Self

from fermata.aws.background_call import BackgroundCall
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller

CAUTION_SECONDS = 60
"""How long the snapshots of a user wait until they are needed, after a request that has needed none."""


class SnapshotStorage:
    """Stores a snapshot from the beginning of the `with` block.

    If that turns out to be for nothing, the next snapshots of this user are stored only when they are needed. So nobody
    fills the bucket with prompts or results that are refused or repeated.

    Args:
        store: Stores the snapshot and returns its key in the bucket; empty for no snapshot.
        is_early: Whether it may be stored before it is needed.
    """

    def __init__(
        self, resources: Resources, caller: Caller, store: Callable[[], str], *, is_early: bool = True
    ) -> None:
        self._resources, self._store, self._is_early = resources, store, is_early
        self._caution_key = ("snapshots that were stored for nothing", caller.tenant, caller.user)
        self._storing: BackgroundCall[str] | None = None
        self._key: str | None = None

    def __enter__(self) -> Self:
        if self._is_early and not self._resources.cache.get_value(self._caution_key):
            self._storing = BackgroundCall(self._resources.clock, self._store, "store-snapshot")
        return self

    def __exit__(self, *_: object) -> None:
        if self._storing:
            self._storing.__exit__()
        if self._key is None:
            self._resources.cache.put_value(self._caution_key, CAUTION_SECONDS, True)

    def check(self) -> None:
        """Wait until the snapshot is stored, if that has begun, and raise what has failed."""
        if self._storing:
            self._storing.result()

    def get_key(self) -> str:
        """Return the snapshot's key in the bucket, now that it is needed; empty for no snapshot."""
        if self._key is None:
            self._key = self._storing.result() if self._storing else self._store()
        return self._key
