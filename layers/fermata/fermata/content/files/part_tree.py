"""Keep which parts of a space somebody was sent, by their hashes, so that later only what has changed is sent.

The object `trees/<hash>` in the folder of a space has the hash of each part, and no content. Its name is the hash of
itself: two callers with the same one have been sent the same. The daily sweep deletes it a day after its last use.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fermata.aws.blob_store import CompressedJson, compress_json, encode_json
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.domain.value_dataclass import value_dataclass

PartName = tuple[str, str, str]
"""The section of a part, where it is in it (a model, or `model:locale`), and its entry; empty where there is none."""
TREE_HASH = re.compile("[0-9a-f]{64}")
RENEWED_SECONDS = 600
"""For so long a process takes a tree that it has stored for one that is there."""
_DIGEST_CHARS = 24


@value_dataclass(frozen=True)
class PartTree:
    """The hashes of the parts of a space.

    Attributes:
        view: What may be seen of the space. A tree of another view is not compared with.
        digests: By part.
    """

    view: str
    digests: Mapping[PartName, str]

    @cached_property
    def compressed(self) -> CompressedJson:
        """The object that is stored."""
        parts = [[*name, digest] for name, digest in sorted(self.digests.items())]
        return compress_json(encode_json({"view": self.view, "parts": parts}))

    @property
    def hash(self) -> str:
        """The name of the tree."""
        return self.compressed.digest


def make_part_tree(view: str, parts: Mapping[PartName, Any]) -> PartTree:
    """Return the tree of parts, which are JSON values."""
    return PartTree(view, {name: _digest(value) for name, value in parts.items()})


def tree_folder(space: SpaceKey) -> str:
    """Return the folder of the trees of a space."""
    return f"{space.folder}/trees"


def store_part_tree(resources: Resources, space: SpaceKey, tree: PartTree) -> None:
    """Store a tree, or renew its age. The same one has the same name, so repeating it changes nothing.

    Args:
        resources: Of the process.
        space: The space.
        tree: The tree.
    """
    stored = ("part tree is stored", space, tree.hash)
    if resources.cache.get_value(stored) is None:
        resources.blobs.put_compressed_json(tree_folder(space), tree.compressed)
        resources.cache.put_value(stored, RENEWED_SECONDS, True)


def find_part_tree(resources: Resources, space: SpaceKey, tree_hash: str, view: str) -> PartTree | None:
    """Return a tree of the same view; None if it is not kept any more, or never was.

    Args:
        resources: Of the process.
        space: The space.
        tree_hash: The name of the tree, as a client says it: any text.
        view: What may be seen now.
    """
    if not TREE_HASH.fullmatch(tree_hash):
        return None
    found = resources.blobs.find_json(f"{tree_folder(space)}/{tree_hash}")
    if found is None or found["view"] != view:
        return None
    return PartTree(view, {(section, place, entry): digest for section, place, entry, digest in found["parts"]})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGEST_CHARS]
