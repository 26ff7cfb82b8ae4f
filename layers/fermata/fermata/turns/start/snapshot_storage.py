"""Store the snapshot of a prompt: while its rows are read, or only with its turn (decisions 0177 and 0239)."""

from collections.abc import Callable
from typing import Any, Self

from fermata.aws import blob_store
from fermata.aws.background_call import BackgroundCall
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller

CAUTION_SECONDS = 60
"""How long the snapshots of a user wait for their turns, after a request that has started none."""


class SnapshotStorage:
    """Stores a snapshot from the beginning of the `with` block.

    If that turns out to be for nothing, the next snapshots of this user are stored only when their turns start. So
    nobody fills the bucket with prompts that are refused or repeated.

    Args:
        turn_id: The turn in whose folder it is stored.
        get_storable: Returns what `BlobStore.put_compressed_json` takes; None for no snapshot.
    """

    def __init__(self, resources: Resources, caller: Caller, turn_id: str, get_storable: Callable[[], Any]) -> None:
        self._resources = resources
        self._folder = blob_store.turn_folder(caller.tenant, turn_id)
        self._get_storable = get_storable
        self._caution_key = ("snapshots that were stored for nothing", caller.tenant, caller.user)
        self._storing: BackgroundCall[str] | None = None
        self._key: str | None = None

    def __enter__(self) -> Self:
        if not self._resources.cache.get_value(self._caution_key):
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
        """Return the snapshot's key in the bucket, for a turn that starts now; empty for no snapshot."""
        if self._key is None:
            self._key = self._storing.result() if self._storing else self._store()
        return self._key

    def _store(self) -> str:
        storable = self._get_storable()
        return "" if storable is None else self._resources.blobs.put_compressed_json(self._folder, storable)
