"""Hold the snapshot of a request. An uploaded one is fetched only once it is known that the request needs it.

A repeated request needs none, and its upload may have expired (decision 0151).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from fermata.aws.blob_store import CompressedJson
from fermata.domain.value_dataclass import value_dataclass


class SnapshotContent(NamedTuple):
    """The value of a snapshot, and its compressed form if it can be stored as it was uploaded."""

    value: Any = None
    compressed: CompressedJson | None = None

    @property
    def storable(self) -> Any:
        """What `BlobStore.put_compressed_json` takes."""
        return self.compressed or self.value


@value_dataclass(frozen=True)
class LazySnapshot:
    """A snapshot in the body of a request, or uploaded before."""

    identity: Any
    """A JSON value that is equal for equal content: the snapshot itself, or the digest of the upload."""
    fetch: Callable[[], SnapshotContent]

    @classmethod
    def from_value(cls, value: Any) -> "LazySnapshot":
        """Return a snapshot that was posted in a body."""
        return cls(value, lambda: SnapshotContent(value))
