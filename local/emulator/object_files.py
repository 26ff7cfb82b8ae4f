"""Finish writes of S3 objects that a kill has cut between the file of the content and that of the metadata.

MiniStack keeps an object as two files, and renames one after the other into its place. A kill in between leaves new
content with the old metadata, or with none. So new metadata is written beside both first (`patches/object_writes.py`),
and the next start moves it into its place if the content is the new one (decision 0287).
"""

import hashlib
import json
from pathlib import Path

METADATA_SUFFIX = ".meta.json"
NEXT_METADATA_SUFFIX = ".next.tmp"
"""MiniStack takes no file that ends in `.tmp` for an object."""


def finish_object_writes(directory: Path) -> None:
    """Move metadata that was written ahead into its place, or delete it where its content is not there.

    Args:
        directory: The folder with the objects of all buckets. It may not exist yet.
    """
    for next_metadata in directory.rglob(f"*{NEXT_METADATA_SUFFIX}"):
        content = next_metadata.with_name(next_metadata.name.removesuffix(NEXT_METADATA_SUFFIX))
        if content.is_file() and _describes(next_metadata, content):
            next_metadata.replace(content.with_name(content.name + METADATA_SUFFIX))
        else:
            next_metadata.unlink()


def _describes(metadata: Path, content: Path) -> bool:
    """Return whether the metadata is whole, and has the digest of the content."""
    try:
        etag = json.loads(metadata.read_bytes())["etag"]
    except ValueError:  # cut by the kill
        return False
    return bool(etag == f'"{hashlib.md5(content.read_bytes(), usedforsecurity=False).hexdigest()}"')
