"""Store the files of an agent in the bucket, and read them.

    agents/<tenant>/files/<sha256>   an index: every file with its size, times and place
    agents/<tenant>/files/<sha256>   a pack: the bytes of several small files, or of one large file

Packs let a search of 10,000 files read some dozens of objects. What they hold follows from the files alone, so that the
same files make the same objects, and a bundle that is stored again stores nothing new (decision 0369).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from fermata.agents.files.file_bundle import BundleFile, FileBundle
from fermata.agents.files.file_tools import OpenedBundle
from fermata.aws.blob_store import build_blob_key, encode_json
from fermata.aws.resources import Resources
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass

PACK_BYTES = 1_000_000
"""A pack is closed when it has so many bytes. A larger file is a pack by itself."""
MAX_BUNDLE_FILES = 10_000
MAX_BUNDLE_BYTES = 100_000_000
MAX_FILE_BYTES = 10_000_000
MAX_PATH_CHARS = 500
_INDEX_CACHE_SECONDS = 3600
_PACKS_AT_ONCE = 8
_STORED_AT_ONCE = 8
_BAD_NAMES = frozenset({"", ".", ".."})


@value_dataclass(frozen=True)
class PushedFile:
    """A file that becomes part of a bundle."""

    path: str
    content: bytes
    modified_ms: int = 0
    created_ms: int = 0


def bundles_folder(tenant: str) -> str:
    """Return the folder of a tenant's files of agents. Only the erasure of the tenant deletes it."""
    return f"agents/{tenant}/files"


def list_bundle_problems(files: Iterable[PushedFile]) -> list[str]:
    """Return everything that keeps these files from being a bundle."""
    problems, paths, total = [], set[str](), 0
    for file in files:
        total += len(file.content)
        names = file.path.split("/")
        if any(name in _BAD_NAMES or "\0" in name for name in names) or len(file.path) > MAX_PATH_CHARS:
            problems.append(f"{file.path[:MAX_PATH_CHARS]!r} is not a plain relative path.")
        elif file.path in paths:
            problems.append(f"{file.path} is there twice.")
        if len(file.content) > MAX_FILE_BYTES:
            problems.append(f"{file.path} has {len(file.content):,} bytes; a file has at most {MAX_FILE_BYTES:,}.")
        paths.add(file.path)
    problems += [f"{path} is a file and a directory." for path in sorted(_list_shadowed_paths(paths))]
    if len(paths) > MAX_BUNDLE_FILES:
        problems.append(f"There are {len(paths):,} files; at most {MAX_BUNDLE_FILES:,} make a bundle.")
    if total > MAX_BUNDLE_BYTES:
        problems.append(f"The files have {total:,} bytes; at most {MAX_BUNDLE_BYTES:,} make a bundle.")
    return problems


def _list_shadowed_paths(paths: set[str]) -> set[str]:
    folders = set[str]()
    for path in paths:
        while "/" in path and (path := path.rpartition("/")[0]) not in folders:
            folders.add(path)
    return paths & folders


def store_bundle(resources: Resources, tenant: str, files: Sequence[PushedFile]) -> str:
    """Store files and return the key of their bundle, which names exactly these files. Safe to repeat.

    Args:
        resources: The bucket.
        tenant: The tenant's name.
        files: The files, in any order.

    Raises:
        InvalidRequest: The files cannot be a bundle; the message names every problem.
    """
    if problems := list_bundle_problems(files):
        raise InvalidRequest(" ".join(problems))
    folder = bundles_folder(tenant)
    index, packs = _plan_packs(sorted(files, key=lambda file: file.path))

    def store_pack(pack: Sequence[bytes]) -> str:
        return resources.blobs.put_bytes(folder, b"".join(pack), "application/octet-stream")

    keys = resources.clock.map_in_threads(store_pack, packs, _STORED_AT_ONCE) if packs else []
    return resources.blobs.put_compressed_json(folder, {"v": 1, "packs": keys, "files": index})


def name_bundle(tenant: str, files: Sequence[PushedFile]) -> str:
    """Return the key that `store_bundle` would return, without storing anything.

    Args:
        tenant: The tenant's name.
        files: The files, in any order.

    Raises:
        InvalidRequest: The files cannot be a bundle; the message names every problem.
    """
    if problems := list_bundle_problems(files):
        raise InvalidRequest(" ".join(problems))
    folder = bundles_folder(tenant)
    index, packs = _plan_packs(sorted(files, key=lambda file: file.path))
    keys = [build_blob_key(folder, b"".join(pack)) for pack in packs]
    return build_blob_key(folder, encode_json({"v": 1, "packs": keys, "files": index}))


def keep_file_times(
    resources: Resources, tenant: str, files: Sequence[PushedFile], stored: str
) -> Sequence[PushedFile]:
    """Return files with the times of a stored bundle, if they are its files. A fresh checkout changes only times.

    Args:
        resources: The bucket.
        tenant: The tenant's name.
        files: The files that are pushed.
        stored: The key of the bundle.
    """
    known = {(file.path, file.size): file for file in open_bundle(resources, stored).bundle.files}
    dated = [_date_file(file, known.get((file.path, len(file.content)))) for file in files]
    return dated if name_bundle(tenant, dated) == stored else files


def _date_file(file: PushedFile, known: BundleFile | None) -> PushedFile:
    return replace(file, modified_ms=known.modified_ms, created_ms=known.created_ms) if known else file


def _plan_packs(files: Sequence[PushedFile]) -> tuple[list[list[Any]], list[list[bytes]]]:
    """Return the lines of the index, and the contents that each pack consists of.

    They are joined one pack at a time: all packs together would take as much memory again as the files.
    """
    index: list[list[Any]] = []
    packs: list[list[bytes]] = []
    size = 0
    for file in files:
        if not packs or size + len(file.content) > PACK_BYTES:
            packs.append([])
            size = 0
        index.append([file.path, len(file.content), file.modified_ms, file.created_ms, len(packs) - 1, size])
        packs[-1].append(file.content)
        size += len(file.content)
    return index, packs


@value_dataclass(frozen=True)
class PackReader:
    """Reads files from packs. What a search has read is not kept, because it may be more than a function may hold."""

    resources: Resources
    packs: Sequence[str]

    def read_file(self, file: BundleFile) -> bytes:
        """Return the content of a file."""
        return self._get_content(file, self._get_pack(file.pack))

    def read_files(self, files: Sequence[BundleFile]) -> Iterator[tuple[BundleFile, bytes]]:
        """Yield files with their contents. Some packs at a time are read in parallel."""
        by_pack = {number: list(group) for number, group in groupby(files, lambda file: file.pack)}
        for numbers in _split(list(by_pack), _PACKS_AT_ONCE):
            packs = self.resources.clock.map_in_threads(self._get_pack, numbers, _PACKS_AT_ONCE)
            for number, pack in zip(numbers, packs, strict=True):
                for file in by_pack[number]:
                    yield file, self._get_content(file, pack)

    def _get_pack(self, number: int) -> bytes:
        return self.resources.blobs.get_bytes(self.packs[number])

    def _get_content(self, file: BundleFile, pack: bytes) -> bytes:
        return pack[file.offset : file.offset + file.size]


def _split(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def open_bundle(resources: Resources, key: str) -> OpenedBundle:
    """Return a stored bundle. A process reads its index once.

    Args:
        resources: The bucket, and the cache of the process.
        key: As `store_bundle` has returned it.
    """

    def load() -> tuple[FileBundle, list[str]]:
        stored = resources.blobs.get_json(key)
        return FileBundle(tuple(BundleFile(*line) for line in stored["files"])), stored["packs"]

    bundle, packs = resources.cache.get_or_load(("file bundle", key), _INDEX_CACHE_SECONDS, load)
    return OpenedBundle(bundle, PackReader(resources, packs))
