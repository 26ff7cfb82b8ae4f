"""Replace several files on disk together, if they are as they were read (decision 0190)."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fermata_client.document.folder_locks import lock_folders
from fermata_client.html.edit_error import EditError

NEW_FILE_MODE = 0o644
TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".fermata-", ".tmp"
MAX_FOLDER_ATTEMPTS = 20
MAX_TEMPORARY_AGE_SECONDS = 3600.0
"""A temporary file lives for milliseconds. An older one was left by a program that was killed."""


class FileChangedError(EditError):
    """A file is not as it was read, so nothing was written."""


@dataclass(frozen=True)
class FileWrite:
    path: Path
    """Without symbolic links."""
    content: bytes | None
    """None deletes the file."""
    previous: bytes | None
    """What the file has had when the edit was computed; None if there was no file."""


def write_files(writes: Sequence[FileWrite], check_unchanged: Callable[[], None], folders: Sequence[Path] = ()) -> None:
    """Write files, all or none, each in one step and with the mode it has.

    A reader sees a file's old or new content, also after a crash. The folders of the files are locked meanwhile.
    Folders are created for new files, and deleted with the last file in them (decision 0222).

    Args:
        check_unchanged: called with the locks held, right before the first file is replaced; raises
            `FileChangedError` to write nothing.
        folders: the folders that the files are below. They are locked too, and never deleted.

    Raises:
        FileChangedError: a file is not as it was.
        OSError: a file cannot be written.
    """
    emptied = [write.path.parent for write in writes if write.content is None or not write.path.parent.exists()]
    try:
        with contextlib.ExitStack() as held:
            staged = _stage_all(writes, folders, held)
            check_unchanged()
            for write in writes:
                check_content(write.path, write.previous)
            _replace_all(staged)
    finally:
        for folder in emptied:
            _delete_empty_folders(folder, folders)


def _stage_all(
    writes: Sequence[FileWrite], folders: Sequence[Path], held: contextlib.ExitStack
) -> list[tuple[FileWrite, Path | None]]:
    """Lock the folders and stage all files, until `held` is closed.

    Another program may delete a folder that is still empty. It is created again then; with a staged file it stays.
    """
    for _ in range(MAX_FOLDER_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            return _try_to_stage_all(writes, folders, held)
    return _try_to_stage_all(writes, folders, held)


def _try_to_stage_all(
    writes: Sequence[FileWrite], folders: Sequence[Path], held: contextlib.ExitStack
) -> list[tuple[FileWrite, Path | None]]:
    for write in writes:
        if write.content is not None:
            write.path.parent.mkdir(parents=True, exist_ok=True)
    parents = [write.path.parent for write in writes if write.path.parent.exists()]
    with contextlib.ExitStack() as attempt:
        attempt.enter_context(lock_folders([*folders, *parents]))
        staged = [(write, attempt.enter_context(_stage_content(write))) for write in writes]
        held.enter_context(attempt.pop_all())
    return staged


def _delete_empty_folders(folder: Path, kept_folders: Sequence[Path]) -> None:
    """Delete a folder and those around it that are empty, up to one of `kept_folders`."""
    with contextlib.suppress(OSError):  # it is not empty, or another program has deleted it
        while any(folder.is_relative_to(kept) and folder != kept for kept in kept_folders):
            folder.rmdir()
            folder = folder.parent


def check_content(path: Path, expected: bytes | None) -> None:
    """Raise `FileChangedError` unless the file has this content; None expects no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = None
    if content != expected:
        raise FileChangedError("This file was changed by someone else meanwhile. Read the document again.")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step, whatever it has now."""
    with _stage_content(FileWrite(path, content, b"")) as staged_path:
        assert staged_path is not None
        staged_path.replace(path)


@contextlib.contextmanager
def _stage_content(write: FileWrite) -> Iterator[Path | None]:
    """Yield a temporary file beside the one to write, with its content and mode; None for a deletion."""
    if write.content is None:
        yield None
        return
    _delete_stale_files(write.path.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, suffix=TEMPORARY_SUFFIX, dir=write.path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(write.path)) from error
    staged_path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(write.content)
            file.flush()
            os.fsync(file.fileno())
        _copy_mode_and_owner(write.path, staged_path)
        yield staged_path
    finally:
        staged_path.unlink(missing_ok=True)


def _copy_mode_and_owner(path: Path, staged_path: Path) -> None:
    if not path.exists():
        staged_path.chmod(NEW_FILE_MODE)
        return
    old, new = path.stat(), staged_path.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with contextlib.suppress(OSError):  # only an administrator can give a file to someone else
            os.chown(staged_path, old.st_uid, old.st_gid)
    staged_path.chmod(old.st_mode & 0o7777)


def _delete_stale_files(folder: Path) -> None:
    oldest = time.time() - MAX_TEMPORARY_AGE_SECONDS
    for path in folder.glob(f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def _replace_all(staged: Sequence[tuple[FileWrite, Path | None]]) -> None:
    """Put every staged file in its place. If one cannot be put there, those before it get their old content again."""
    replaced: list[FileWrite] = []
    try:
        for write, staged_path in staged:
            _replace_file(write, staged_path)
            replaced.append(write)
    except (OSError, FileChangedError):
        for write in reversed(replaced):
            _put_back(write)
        raise
    for folder in {write.path.parent for write, _ in staged}:
        _sync_folder(folder)


def _replace_file(write: FileWrite, staged_path: Path | None) -> None:
    if staged_path is None:
        write.path.unlink(missing_ok=True)
    elif write.previous is None:
        _place_new_file(staged_path, write.path)
    else:
        staged_path.replace(write.path)


def _place_new_file(staged_path: Path, path: Path) -> None:
    """Create a file under a name that no other file has, also if another program creates one at the same moment."""
    try:
        os.link(staged_path, path)
    except FileExistsError:
        raise FileChangedError(f"Someone else has created {path.name} meanwhile. Read the document again.") from None
    except OSError:  # a file system without hard links
        staged_path.replace(path)


def _put_back(write: FileWrite) -> None:
    with contextlib.suppress(OSError):
        if write.previous is None:
            write.path.unlink(missing_ok=True)
        else:
            write_atomically(write.path, write.previous)


def _sync_folder(folder: Path) -> None:
    """Make renames survive a power failure, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
