"""Answers of a hostile Git server are bounded before they are unpacked, and are never an error of the service."""

import hashlib
import random
import zlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from dulwich.objects import Blob, Commit, ShaFile, Tree

from fermata.content.git import branch_files
from fermata.content.git.branch_files import read_branch_files
from fermata.content.git.git_branch import fetch_branch
from fermata.content.git.git_errors import GitUnavailable
from fermata.content.git.pack_size import PackTooLarge, check_pack_size
from tests.growth.measure_growth import MAX_GROWTH, measure_growth

MEGABYTE = 1 << 20
KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
REFERENCE_DELTA = 7


class ScriptedClient:
    """Sends a pack in place of a server."""

    def __init__(self, pack: bytes, head: bytes) -> None:
        self.pack, self.head = pack, head

    def fetch_pack(self, _path: bytes, choose: Callable[[Any], Any], _walker: Any, write: Any, **_options: Any) -> Any:
        choose({b"refs/heads/main": self.head})
        write(self.pack)
        return SimpleNamespace(object_format="sha1", symrefs={})


def build_pack(objects: Sequence[bytes]) -> bytes:
    pack = b"PACK" + (2).to_bytes(4) + len(objects).to_bytes(4) + b"".join(objects)
    return pack + hashlib.sha1(pack).digest()


def build_object(kind: int, content: bytes, size: int | None = None, base: bytes = b"") -> bytes:
    stated = len(content) if size is None else size
    return _write_number(stated >> 4 << 7 | kind << 4 | stated & 15) + base + zlib.compress(content)


def _write_number(number: int) -> bytes:
    rest = number >> 7
    return bytes([number & 127 | 128]) + _write_number(rest) if rest else bytes([number])


def build_delta(base_size: int, copies: int) -> bytes:
    """Return a delta that copies the whole base over and over."""
    copy = bytes([0xF0]) + base_size.to_bytes(3, "little")
    return _write_number(base_size) + _write_number(base_size * copies) + copy * copies


def pack_of(*objects: ShaFile) -> bytes:
    return build_pack([build_object(KINDS[one.type_name], one.as_raw_string()) for one in objects])


def make_commit(folder: Tree) -> Commit:
    commit = Commit()
    commit.tree, commit.message = folder.id, b"m"
    commit.author = commit.committer = b"Bob <bob@example.com>"
    commit.author_time = commit.commit_time = 1
    commit.author_timezone = commit.commit_timezone = 0
    return commit


def make_folder(**entries: ShaFile) -> Tree:
    folder = Tree()
    for name, entry in entries.items():
        folder.add(name.encode(), 0o40000 if isinstance(entry, Tree) else 0o100644, entry.id)
    return folder


def test_a_small_pack_that_becomes_gigabytes_is_not_unpacked() -> None:
    base = bytes(MEGABYTE)
    name = hashlib.sha1(b"blob %d\0" % MEGABYTE + base).digest()
    delta = build_delta(MEGABYTE, 4000)
    pack = build_pack([build_object(3, base), build_object(REFERENCE_DELTA, delta, base=name)])
    assert len(pack) < 16_000
    with pytest.raises(PackTooLarge):
        check_pack_size(pack)
    client: Any = ScriptedClient(pack, b"a" * 40)
    with pytest.raises(GitUnavailable, match="too large"):
        fetch_branch(client, "main")
    two = build_pack([build_object(3, base)] * 2)
    check_pack_size(two, 3 * MEGABYTE)
    with pytest.raises(PackTooLarge):
        check_pack_size(two, 2 * MEGABYTE)


@pytest.mark.parametrize("stated", [10, 30])
def test_an_object_that_states_another_size_is_no_object(stated: int) -> None:
    pack = build_pack([build_object(3, b"x" * 20, stated)])
    client: Any = ScriptedClient(pack, b"a" * 40)
    with pytest.raises(GitUnavailable, match="cannot be read"):
        fetch_branch(client, "main")


@pytest.mark.parametrize("content", [b"", b"x" * 200])
def test_the_check_of_a_pack_takes_time_in_proportion_to_it(content: bytes) -> None:
    one = build_object(3, content)

    def prepare(size: int) -> Callable[[], object]:
        pack = build_pack([one] * (size // len(one)))
        return lambda: check_pack_size(pack)

    assert measure_growth(prepare, 50_000, 100_000) < MAX_GROWTH


@pytest.mark.parametrize("leaf", ["file", "nothing"])
def test_folders_within_folders_under_many_names_are_counted(monkeypatch: pytest.MonkeyPatch, leaf: str) -> None:
    monkeypatch.setattr(branch_files, "MAX_CONTENT_FILES", 500)
    file = Blob.from_string(b"{}")
    folders = [make_folder(**{"a.json": file} if leaf == "file" else {})]
    for _ in range(10):
        folders.append(make_folder(**{f"f{number}": folders[-1] for number in range(10)}))
    commit = make_commit(make_folder(content=folders[-1]))
    top: Any = make_folder(content=folders[-1])
    client: Any = ScriptedClient(pack_of(file, *folders, top, commit), commit.id)
    with pytest.raises(GitUnavailable, match="content/ has more than 500 files"):
        read_branch_files(fetch_branch(client, "main"), "", ["content/"])


def test_a_damaged_pack_is_an_error_of_the_server() -> None:
    files = {f"f{number}.md": Blob.from_string(b"x" * number) for number in range(8)}
    folder = make_folder(**files)
    top = make_folder(content=folder)
    commit = make_commit(top)
    pack, draw = pack_of(*files.values(), folder, top, commit), random.Random(7)
    attempts, refused = 300, 0
    for attempt in range(attempts):
        damaged = bytearray(pack[:-20])
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        checksum = pack[-20:] if attempt % 9 == 0 else hashlib.sha1(damaged).digest()
        client: Any = ScriptedClient(bytes(damaged) + checksum, commit.id)
        try:
            read_branch_files(fetch_branch(client, "main"), "", ["content/"])
        except GitUnavailable:  # any other error fails
            refused += 1
    assert attempts // 9 < refused <= attempts, "some damage shows nowhere, a wrong checksum always"


def test_a_head_without_its_commit_is_an_error_of_the_server() -> None:
    file = Blob.from_string(b"{}")
    for head in (b"a" * 40, file.id):
        client: Any = ScriptedClient(pack_of(file), head)
        with pytest.raises(GitUnavailable, match="cannot be read"):
            fetch_branch(client, "main")
