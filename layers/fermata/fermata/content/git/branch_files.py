"""Read the files of a fetched branch. What is not there as a file stops it, so that nothing is taken for deleted."""

import stat
from collections.abc import Iterable, Iterator
from typing import Any

from dulwich.objects import Tree, TreeEntry

from fermata.content.files.canonical_json import UnreadableFile
from fermata.content.files.file_layout import GENERATED_FOLDER, ROOT
from fermata.content.git.git_branch import UNREADABLE, FetchedBranch
from fermata.content.git.git_errors import GitUnavailable

MAX_CONTENT_FILE_BYTES = 4 * 1024 * 1024
MAX_CONTENT_FILES = 50_000
MAX_CONTENT_BYTES = 64 * 1024 * 1024
"""Of the files and folders of content together."""
_FOLDERS = (f"{ROOT}content", f"{ROOT}meta", f"{ROOT}models")
_NO_FOLDER = "a folder has to be there."
_LINK = "it is a link or a submodule. Content has to be in files of the repository itself."


def read_branch_files(branch: FetchedBranch, root: str, folders: Iterable[str]) -> dict[str, str]:
    """Return the texts of files in some folders, by their paths from `root`.

    Args:
        branch: The branch.
        root: The folder of the project in the repository; empty for the whole repository.
        folders: Paths from `root`, with a slash at their end.

    Raises:
        UnreadableFile: A file is no text in UTF-8, or too large; or something else is where a file or folder should be.
        GitUnavailable: They are too many, or objects are missing.
    """
    if branch.tree is None:
        return {}
    files: dict[str, str] = {}
    try:
        for folder in folders:
            tree = _find_folder(branch, f"{root}/{folder}".strip("/"))
            if tree is not None:
                files |= dict(_iter_texts(branch, tree, folder))
    except UNREADABLE as error:
        raise GitUnavailable("The Git server did not send what it should: files are missing.") from error
    return files


def _find_folder(branch: FetchedBranch, place: str) -> Any:
    """Return the object of a folder; None if the repository has nothing there."""
    mode, sha = stat.S_IFDIR, branch.tree
    segments = place.split("/")
    for number, segment in enumerate(segments):
        folder = branch.store[sha]
        if not isinstance(folder, Tree):
            raise ValueError("a folder is none")
        if segment.encode() not in folder:
            return None
        mode, sha = folder[segment.encode()]
        if not stat.S_ISDIR(mode):
            problem = _NO_FOLDER if stat.S_ISREG(mode) else _LINK
            raise UnreadableFile("/".join(segments[: number + 1]), problem)
    return sha


def _iter_texts(branch: FetchedBranch, tree: Any, folder: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file."""
    size = 0
    for number, entry in enumerate(branch.store.iter_tree_contents(tree, include_trees=True)):
        if number >= MAX_CONTENT_FILES or size > MAX_CONTENT_BYTES:
            # One folder may stand in another one under many names, and so on: a few objects, and files without end.
            raise GitUnavailable(
                f"{folder} has more than {MAX_CONTENT_FILES:,} files, or more than {MAX_CONTENT_BYTES >> 20} MB."
            )
        path = folder + entry.path.decode("utf-8", "backslashreplace")
        if _is_content_file(entry, path):
            data = _read_file(branch, entry, path)
            size += len(data)
            yield path, _decode_text(data, path)


def _is_content_file(entry: TreeEntry, path: str) -> bool:
    """Return whether an entry is a file that may hold content.

    Raises:
        UnreadableFile: Something else is where content may be.
    """
    if stat.S_ISDIR(entry.mode) or f"{path}/".startswith(GENERATED_FOLDER):
        return False
    if not stat.S_ISREG(entry.mode):
        raise UnreadableFile(path, _LINK)
    if path in _FOLDERS:
        raise UnreadableFile(path, _NO_FOLDER)
    if not path.endswith((".json", ".md")):
        return False
    if "\\" in path:
        raise UnreadableFile(path, "its name is not in UTF-8, or has a backslash. Rename it.")
    return True


def _read_file(branch: FetchedBranch, entry: TreeEntry, path: str) -> bytes:
    """Return what a file has. Those that the server has left out are as large as others that are refused."""
    data = branch.store[entry.sha].as_raw_string() if entry.sha in branch.store else None
    if data is None or len(data) > MAX_CONTENT_FILE_BYTES:
        raise UnreadableFile(path, f"it has more than {MAX_CONTENT_FILE_BYTES >> 20} MB.")
    return data


def _decode_text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableFile(path, "it is no text in UTF-8.") from None
