"""Delete what former snapshots, synchronisations with Git and copies of clients have left of a space in the bucket."""

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.files.part_tree import tree_folder
from fermata.content.files.space_snapshot import list_kept_snapshots, snapshot_folder
from fermata.content.git.git_remote import list_kept_bases, sync_folder

KEEP_COPY_SECONDS = 86_400
"""A copy is stored before the row that names it, and may be read a moment after that names another one."""


def sweep_copies(resources: Resources, space: SpaceKey) -> int:
    """Delete the copies of a space that no row names any more; return how many.

    Args:
        resources: Of the process.
        space: The space.
    """
    before = resources.clock.time() - KEEP_COPY_SECONDS
    kept: dict[str, set[str]] = {
        snapshot_folder(space): list_kept_snapshots(resources, space),
        sync_folder(space): list_kept_bases(resources, space),
        tree_folder(space): set(),
    }
    return sum(resources.blobs.delete_old_keys(folder, keys, before) for folder, keys in kept.items())
