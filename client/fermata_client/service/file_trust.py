"""Tell whether only the user can have written a file: itself, its folder, and every folder above (decision 0232)."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT_UID = 0
WRITABLE_BY_GROUP = 0o020
WRITABLE_BY_ALL = 0o002


def find_trust_problem(file: Path, status: os.stat_result) -> str | None:
    """Say why a file may be somebody else's, and what to do; None if it is the user's own.

    Args:
        status: of the file that is open, because another one may have its name by now.
    """
    if sys.platform == "win32":
        return None  # the user's folders have access lists of their own there
    folder = file.parent.stat()
    for path, own_status in ((file, status), (file.parent, folder)):
        if own_status.st_uid != os.getuid():
            return f"{path} belongs to another user. Delete it, or give --url and --token."
        if own_status.st_mode & (WRITABLE_BY_GROUP | WRITABLE_BY_ALL):
            return f"others can write to {path}. If it is yours: chmod go-w {file.parent} {file}"
    return next((problem for path in _iter_paths_above(file) if (problem := _find_problem_above(path))), None)


def _iter_paths_above(file: Path) -> Iterator[Path]:
    """Yield the folders that lead to a file, by the name it was asked by and, where links are in it, by its own."""
    named = Path(os.path.abspath(file))  # noqa: PTH100  Path.resolve follows links
    folders = dict.fromkeys((*named.parents, *file.resolve().parents))
    yield from folders


def _find_problem_above(path: Path) -> str | None:
    """Say who else can replace what is in a folder. In a sticky one, each user can replace only what is theirs."""
    status = path.lstat()
    if status.st_uid not in (os.getuid(), ROOT_UID):
        return f"the folder {path} above it belongs to another user, who can replace it. Give --url and --token."
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return None
    is_open = status.st_mode & WRITABLE_BY_ALL or (
        status.st_mode & WRITABLE_BY_GROUP and not _is_private_group(status.st_gid)
    )
    if is_open:
        return f"others can write to {path} above it, and so replace it. If that folder is yours: chmod go-w {path}"
    return None


def _is_private_group(group_id: int) -> bool:
    """Return whether a group is the one of the user alone, as many systems make one for each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(group_id)
    except KeyError:
        return False
    return user.pw_gid == group_id and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
