"""Name, check, find and delete the files of snapshots.

A snapshot is a directory `snapshot-<number>` with a file for each service and a manifest: the sizes of the others. It
is written as `unfinished-<number>`, so that two processes never write to one directory (decision 0163).
"""

import json
import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from local.emulator.journal import list_journals

SNAPSHOT_NAME = re.compile(r"snapshot-(\d+)")
UNFINISHED_NAME = re.compile(r"unfinished(-\d+)?")
MANIFEST_NAME = "manifest.json"

logger = logging.getLogger("snapshots")


class IncompleteSnapshotError(RuntimeError):
    """Files of a snapshot are missing or have another size than its manifest says."""


@dataclass(frozen=True, order=True)
class Snapshot:
    """The directory of a snapshot, and the number of the first journal that is not in it."""

    number: int
    directory: Path


def find_snapshot(directory: Path) -> Snapshot:
    """Find the newest complete snapshot of a state directory.

    One that was written before there were manifests is used when there is no other. Where there is no snapshot, the
    state directory itself may hold the files of one without a number.
    """
    found = _list_snapshots(directory)
    complete = [snapshot for snapshot in found if is_complete(snapshot.directory)]
    newest = max(complete or found, default=Snapshot(0, directory))
    for snapshot in found:
        if snapshot > newest:
            logger.error("%s is not complete and left out.", snapshot.directory)
    return newest


def is_complete(directory: Path) -> bool:
    """Return whether each file that the manifest names is there with its size."""
    try:
        sizes: dict[str, int] = json.loads((directory / MANIFEST_NAME).read_bytes())
        return all((directory / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def publish_snapshot(unfinished: Path, sizes: dict[str, int], final: Path) -> None:
    """Write the manifest of a snapshot whose files are written, and give it its name.

    Args:
        sizes: how many bytes each file must have.

    Raises:
        IncompleteSnapshotError: It keeps its unfinished name.
    """
    write_synced_file(unfinished / MANIFEST_NAME, json.dumps(sizes).encode())
    sync_to_disk(unfinished)
    if not is_complete(unfinished):
        raise IncompleteSnapshotError(unfinished)
    unfinished.rename(final)
    sync_to_disk(final.parent)


def delete_replaced_files(directory: Path, number: int) -> None:
    """Delete the snapshots and journals before the complete snapshot of this number."""
    for journal_number, file in list_journals(directory):
        if journal_number < number:
            file.unlink()
    for snapshot in _list_snapshots(directory):
        if snapshot.number < number:
            shutil.rmtree(snapshot.directory)
    for file in directory.glob("*.json"):
        file.unlink()  # of a snapshot without a number


def delete_unfinished_snapshots(directory: Path) -> None:
    """Delete what processes have left that were killed while they saved. None may be running."""
    for entry in directory.iterdir():
        if UNFINISHED_NAME.fullmatch(entry.name):
            shutil.rmtree(entry)


def write_synced_file(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    sync_to_disk(file)


def sync_to_disk(path: Path) -> None:
    """Wait until a file or directory is on the disk: the files that it replaces are deleted."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _list_snapshots(directory: Path) -> list[Snapshot]:
    entries = list(directory.iterdir())
    return [Snapshot(int(name[1]), entry) for entry in entries if (name := SNAPSHOT_NAME.fullmatch(entry.name))]
