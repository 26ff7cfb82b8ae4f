"""Resolve the path of a file tool within the folder that its agent was given."""

import posixpath

OUTSIDE_MESSAGE = "Path {!r} resolves outside the base directory."
_BUNDLE_BASE = "/bundle"
"""Stands for the folder of a bundle, so that a path can be seen to lead out of it."""


class PathOutsideBase(ValueError):
    """The path leads out of the base directory."""


def resolve_path(base: str, path: str | None) -> str:
    """Return the absolute path that `path` means below `base`.

    Leading slashes are dropped, so `/` is the base itself, and so are None and an empty path. Links are not looked at:
    a bundle has none, because they are refused when it is made (decision 0369).

    Args:
        base: An absolute path.
        path: As the model has sent it.

    Raises:
        PathOutsideBase: It leads out of the base, or into a folder whose name only begins like it.
    """
    root = posixpath.normpath(base)
    resolved = posixpath.normpath(posixpath.join(root, (path or "").lstrip("/")))
    if resolved != root and not resolved.startswith(root.rstrip("/") + "/"):
        raise PathOutsideBase(OUTSIDE_MESSAGE.format(path))
    return resolved


def resolve_bundle_path(path: str | None) -> str:
    """Return the path of a file or folder within its bundle, without a slash at its ends; empty for the bundle itself.

    Raises:
        PathOutsideBase: As `resolve_path`.
    """
    return resolve_path(_BUNDLE_BASE, path)[len(_BUNDLE_BASE) + 1 :]
