"""Define a bundle of files: what is known of each file, and how its bytes are read."""

import posixpath
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, Protocol

from fermata.domain.value_dataclass import value_dataclass

EntryType = Literal["file", "directory"]


@value_dataclass(frozen=True)
class BundleFile:
    """A file of a bundle. Its times are in epoch milliseconds.

    Attributes:
        path: Relative to the bundle, with `/` between its names.
        pack: The number of the pack that holds its bytes, from `offset` on.
    """

    path: str
    size: int
    modified_ms: int
    created_ms: int
    pack: int = 0
    offset: int = 0


@value_dataclass(frozen=True)
class BundleEntry:
    """A file or folder, as it is listed. A folder has the size 0 and the times of its newest and oldest file."""

    path: str
    type: EntryType
    size: int
    modified_ms: int
    created_ms: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(self.path)


class BundleReader(Protocol):
    """Reads the bytes of a bundle's files."""

    def read_file(self, file: BundleFile) -> bytes:
        """Return the content of a file."""

    def read_files(self, files: Sequence[BundleFile]) -> Iterator[tuple[BundleFile, bytes]]:
        """Yield files with their contents in the given order, without holding them all at once."""


@value_dataclass(frozen=True)
class FileBundle:
    """The files of an agent in the order of their paths."""

    files: tuple[BundleFile, ...]

    @cached_property
    def entries(self) -> dict[str, BundleEntry]:
        """Every file and folder by its path; the bundle itself has an empty one."""
        entries: dict[str, BundleEntry] = {"": BundleEntry("", "directory", 0, 0, 0)}
        for file in self.files:
            folder = posixpath.dirname(file.path)
            while True:
                entries[folder] = _extend_folder(entries.get(folder), folder, file)
                if not folder:
                    break
                folder = posixpath.dirname(folder)
            entries[file.path] = BundleEntry(file.path, "file", file.size, file.modified_ms, file.created_ms)
        return entries

    @cached_property
    def files_by_path(self) -> dict[str, BundleFile]:
        """Every file by its path."""
        return {file.path: file for file in self.files}

    @cached_property
    def children_by_folder(self) -> dict[str, list[BundleEntry]]:
        """What each folder holds, in the order of the names."""
        children: dict[str, list[BundleEntry]] = {}
        for path in sorted(self.entries):
            if path:
                children.setdefault(posixpath.dirname(path), []).append(self.entries[path])
        return children


def _extend_folder(known: BundleEntry | None, folder: str, file: BundleFile) -> BundleEntry:
    """Return a folder that also has this file."""
    modified = max(known.modified_ms if known else 0, file.modified_ms)
    created = min(known.created_ms or file.created_ms, file.created_ms) if known else file.created_ms
    return BundleEntry(folder, "directory", 0, modified, created)
