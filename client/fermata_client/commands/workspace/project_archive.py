"""Read and write the files of a project as a folder or a ZIP archive. The same files have the same bytes."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from fermata_client.commands.common.errors import CommandError

MAX_PROJECT_BYTES = 15_000_000
MAX_PROJECT_FILES = 50_000
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_IGNORED_FOLDERS = {".git", "node_modules"}


def is_project_target(path: Path) -> bool:
    """Return whether a path names a project and not one JSON file: a ZIP archive or a folder."""
    return path.suffix == ".zip" or path.is_dir() or not (path.suffix or path.is_file())


def write_project_archive(target: Path, files: Mapping[str, str]) -> None:
    """Write files into a ZIP archive, or below a folder. Other files of the folder stay.

    Raises:
        CommandError: A file would be outside of the folder.
    """
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(files):
                archive.writestr(zipfile.ZipInfo(path, _FIRST_DAY), files[path].encode())
        return
    root = target.resolve()
    for path, text in files.items():
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            raise CommandError(f"The service names a file outside of {target}: {path[:100]!r}.")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def read_project_archive(source: Path) -> dict[str, str]:
    """Return the texts of the files of a ZIP archive or a folder, by their paths.

    Raises:
        CommandError: They are too many or too large, or there is no project among them.
    """
    try:
        files = _read_archive(source) if source.suffix == ".zip" else _read_folder(source)
    except (zipfile.BadZipFile, OSError) as error:
        raise CommandError(f"{source} cannot be read: {error}") from error
    if ".contentrain/config.json" not in files:
        raise CommandError(f"{source} has no .contentrain/config.json.")
    return files


def _read_archive(source: Path) -> dict[str, str]:
    with zipfile.ZipFile(source) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _check_size(source, len(entries), sum(entry.file_size for entry in entries))
        found = {entry.filename: archive.read(entry) for entry in entries}
    return _decode(found)


def _read_folder(source: Path) -> dict[str, str]:
    paths = [path for path in source.rglob("*") if path.is_file() and not path.is_symlink()]
    paths = [path for path in paths if not _IGNORED_FOLDERS & set(path.relative_to(source).parts)]
    wanted = [path for path in paths if path.suffix in (".json", ".md", ".mdx")]
    _check_size(source, len(wanted), sum(path.stat().st_size for path in wanted))
    return _decode({path.relative_to(source).as_posix(): path.read_bytes() for path in wanted})


def _check_size(source: Path, count: int, size: int) -> None:
    if count > MAX_PROJECT_FILES or size > MAX_PROJECT_BYTES:
        raise CommandError(f"{source} has more than {MAX_PROJECT_FILES} files or {MAX_PROJECT_BYTES // 10**6} MB.")


def _decode(found: Mapping[str, bytes]) -> dict[str, str]:
    texts = {}
    for path, raw in found.items():
        try:
            texts[path] = raw.decode()
        except UnicodeDecodeError:
            continue  # an image beside the texts says nothing about content
    return texts
