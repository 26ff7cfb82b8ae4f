"""Store the snapshot of a prompt: while its rows are read, or only with its turn (decisions 0177 and 0239)."""

from collections.abc import Callable
from typing import Any, Self

from fermata.aws import blob_store
from fermata.aws.background_call import BackgroundCall
from fermata.aws.clock import is_valid_id
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller

CAUTION_SECONDS = 60
"""How long the snapshots of a user wait for their turns, after a request that has started none."""


class SnapshotStorage:
    """Stores a snapshot from the beginning of the `with` block.

    If that turns out to be for nothing, the next snapshots of this user are stored only when their turns start. So
    nobody fills the bucket with prompts that are refused or repeated. What was stored for nothing is in the folder of
    its conversation, where an erasure finds it (decision 0286).

    Args:
        conversation_id: The conversation in whose folder it is stored, as the client named it.
        turn_id: The turn that the prompt starts, unless it is refused.
        fetch_storable: Returns what `BlobStore.put_compressed_json` takes; None for no snapshot.
    """

    def __init__(
        self,
        resources: Resources,
        caller: Caller,
        conversation_id: str,
        turn_id: str,
        fetch_storable: Callable[[], Any],
    ) -> None:
        self._resources = resources
        self._is_conversation_possible = is_valid_id(conversation_id)
        self._folder = blob_store.prompt_folder(caller.tenant, conversation_id, turn_id)
        self._fetch_storable = fetch_storable
        self._caution_key = ("snapshots that were stored for nothing", caller.tenant, caller.user)
        self._storing: BackgroundCall[str] | None = None
        self._key: str | None = None

    def __enter__(self) -> Self:
        if self._is_conversation_possible and not self._resources.cache.get_value(self._caution_key):
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
        storable = self._fetch_storable()
        return "" if storable is None else self._resources.blobs.put_compressed_json(self._folder, storable)
