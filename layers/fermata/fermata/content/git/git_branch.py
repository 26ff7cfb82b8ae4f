"""Fetch the newest commit of a branch, and push one on top of it. Objects are kept in memory."""

import io
import stat
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    GitProtocolError,
    HangupException,
    NotTreeError,
    SendPackError,
    WrongObjectException,
)
from dulwich.object_store import MemoryObjectStore, ObjectStoreGraphWalker, commit_tree_changes, tree_lookup_path
from dulwich.objects import Blob, Commit, ShaFile, SubmoduleEncountered, Tree
from dulwich.pack import pack_objects_to_data

from fermata.content.git.git_errors import GitHeadMoved, GitRejected, GitUnavailable
from fermata.content.git.git_http_client import GuardedGitClient
from fermata.content.git.pack_size import MAX_UNPACKED_BYTES, PackTooLarge, check_pack_size
from fermata.domain.value_dataclass import value_dataclass

_BRANCHES = b"refs/heads/"
_FILE_MODE = 0o100644
_SHA256_DIGITS = 64
_LARGE_BLOBS = b"blob:limit=4m"
"""Servers that know it leave larger files out. They hold no content."""


UNREADABLE = (
    ApplyDeltaError, AssertionError, AttributeError, ChecksumMismatch, FileFormatException, GitProtocolError,
    HangupException, LookupError, TypeError, ValueError, WrongObjectException, zlib.error,
)  # fmt: skip
"""What reading the answer of a server raises that is none."""


class CommitAuthor(NamedTuple):
    """Whom a commit names."""

    name: str
    email: str

    @property
    def line(self) -> bytes:
        """The author as Git writes it, without what would end the line or the name."""
        name = "".join(letter for letter in self.name if letter.isprintable() and letter not in "<>") or "Fermata"
        return f"{name.strip()} <{self.email}>".encode()


class BuiltCommit(NamedTuple):
    """A commit that was not pushed yet: its hash, and all objects that are new with it."""

    sha: Any
    objects: Sequence[ShaFile]


@value_dataclass(frozen=True)
class FetchedBranch:
    """A branch as it was read.

    Attributes:
        ref: Its full name.
        head: Its newest commit; empty if the repository has no such branch.
        base: The commit that the next one follows: the head, or that of the default branch; empty for none.
        store: The objects of that commit.
        default: The name of the default branch; empty if the server does not say it.
    """

    ref: bytes
    head: Any
    base: Any
    store: MemoryObjectStore
    default: str = ""

    @property
    def tree(self) -> Any:
        """The folder of the repository; None without a commit."""
        if not self.base:
            return None
        return self._commit.tree

    @property
    def newest_commits(self) -> list[str]:
        """The hashes of the newest commit and of those that it follows; empty without one."""
        return [sha.decode() for sha in (self.base, *self._commit.parents)] if self.base else []

    @property
    def _commit(self) -> Commit:
        commit = self.store[self.base]
        assert isinstance(commit, Commit)
        return commit


def fetch_branch(client: GuardedGitClient, branch: str) -> FetchedBranch:
    """Fetch the newest commit of a branch, without its history.

    Raises:
        GitUnavailable: The server did not answer as a Git server does.
        GitAccessRefused: It refuses the credentials.
    """
    ref = _BRANCHES + branch.encode()
    found: dict[str, Any] = {}

    def choose(refs: Mapping[Any, Any], depth: int | None = None) -> list[Any]:
        found["head"] = refs.get(ref, b"")
        found["base"] = found["head"] or refs.get(b"HEAD", b"")
        _check_hash("sha256" if len(found["base"]) == _SHA256_DIGITS else None)
        return [found["base"]] if found["base"] else []

    store, pack = MemoryObjectStore(), io.BytesIO()
    walker = ObjectStoreGraphWalker([], lambda _sha: [])
    try:
        wanted = [b"HEAD", ref]
        answer = client.fetch_pack(
            b"", choose, walker, pack.write, ref_prefix=wanted, depth=1, filter_spec=_LARGE_BLOBS
        )
        _check_hash(answer.object_format)
        if pack.tell():
            check_pack_size(pack.getvalue())
            _add_pack(store, pack.getvalue())
        targets: Mapping[Any, Any] = answer.symrefs
        default = targets.get(b"HEAD", b"").removeprefix(_BRANCHES).decode(errors="replace")
        fetched = FetchedBranch(ref, found.get("head", b""), found.get("base", b""), store, default)
        _check_tree(fetched)
    except PackTooLarge as error:
        raise GitUnavailable(
            f"The repository is too large: its newest files are more than {MAX_UNPACKED_BYTES >> 20} MB."
        ) from error
    except UNREADABLE as error:
        raise GitUnavailable("The Git server did not send what it should: the pack cannot be read.") from error
    return fetched


def _check_hash(name: str | None) -> None:
    """Return if a server names objects as it is done here. Many do not say it."""
    if name not in (None, "sha1"):
        raise GitUnavailable("The repository names its objects by SHA-256. Use one that names them by SHA-1.")


def _add_pack(store: MemoryObjectStore, pack: bytes) -> None:
    file, commit, abort = store.add_pack()
    try:
        file.write(pack)
        commit()
    finally:
        abort()


def _check_tree(branch: FetchedBranch) -> None:
    """Return if the folder of the branch was sent."""
    if branch.tree is not None and not isinstance(branch.store[branch.tree], Tree):
        raise ValueError("a commit has no folder")


def push_commit(client: GuardedGitClient, branch: FetchedBranch, commit: BuiltCommit) -> None:
    """Push one commit on top of the branch as it was read.

    Args:
        client: Of the repository.
        branch: As it was read.
        commit: What is pushed.

    Raises:
        GitHeadMoved: Somebody has committed since the branch was read.
        GitRejected: The server does not take the commit.
        GitUnavailable: It is not known whether the commit has arrived.
    """
    expected = branch.head

    def update(refs: dict[Any, Any]) -> dict[Any, Any]:
        if refs.get(branch.ref, b"") != expected:
            raise GitHeadMoved
        return {branch.ref: commit.sha}

    try:
        result = client.send_pack(b"", update, lambda *_args, **_named: pack_objects_to_data(commit.objects))
    except SendPackError as error:
        raise GitRejected(f"The Git server does not take the commit: {client.veil(_to_text(error))}.") from error
    except UNREADABLE as error:
        raise GitUnavailable(f"The Git server did not confirm the push: {client.veil(_to_text(error))}.") from error
    refusal = (result.ref_status or {}).get(branch.ref)
    if refusal:
        if fetch_branch(client, branch.ref.decode().removeprefix("refs/heads/")).head != expected:
            raise GitHeadMoved
        raise GitRejected(
            f"The Git server does not take the commit: {client.veil(refusal)}. "
            "Push to another branch, or let its rules allow it."
        )


class _FileModes:
    """Finds the modes of files, so that one that may be run still may. It opens each folder once."""

    def __init__(self, branch: FetchedBranch) -> None:
        self._branch, self._opened = branch, dict[Any, ShaFile]()

    def find(self, path: str) -> int:
        """Return the mode of a file; that of a new one, if there is none."""
        if not self._branch.tree:
            return _FILE_MODE
        try:
            mode, _ = tree_lookup_path(self._open, self._branch.tree, path.encode())
        except (KeyError, NotTreeError, SubmoduleEncountered):
            return _FILE_MODE
        return mode if stat.S_ISREG(mode) else _FILE_MODE

    def _open(self, sha: Any) -> ShaFile:
        if sha not in self._opened:
            self._opened[sha] = self._branch.store[sha]
        return self._opened[sha]


def _to_text(error: Exception) -> str:
    text = error.args[0] if error.args else type(error).__name__
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def build_commit(
    branch: FetchedBranch, changes: Mapping[str, str | None], author: CommitAuthor, message: str, seconds: int
) -> BuiltCommit:
    """Build a commit that changes files, on top of the branch as it was read.

    Args:
        branch: As it was read.
        changes: The texts of files by their paths from the repository's root; None deletes one.
        author: Whom the commit names.
        message: What it says.
        seconds: When it is made, in seconds since 1970.

    Raises:
        GitRejected: There is something else where a folder has to be.
    """
    store, known = branch.store, set(branch.store)
    modes = _FileModes(branch)
    entries: list[Any] = []
    for path, text in sorted(changes.items()):
        if text is None:
            entries.append((path.encode(), None, None))
            continue
        blob = Blob.from_string(text.encode())
        store.add_object(blob)
        entries.append((path.encode(), modes.find(path), blob.id))
    before = store[branch.tree] if branch.tree else Tree()
    assert isinstance(before, Tree)
    commit = Commit()
    try:
        commit.tree = commit_tree_changes(store, before, entries)
    except UNREADABLE as error:
        raise GitRejected("The repository has something else where a folder of the content has to be.") from error
    commit.parents = [branch.base] if branch.base else []
    commit.author = commit.committer = author.line
    commit.author_time = commit.commit_time = seconds
    commit.author_timezone = commit.commit_timezone = 0
    commit.encoding, commit.message = b"UTF-8", message.encode()
    store.add_object(commit)
    return BuiltCommit(commit.id, [store[sha] for sha in set(store) - known])
