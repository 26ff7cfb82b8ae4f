"""Find, read and write the scripts and style sheets in the folder of a page on disk (decisions 0121 and 0191)."""

from collections.abc import Iterable
from pathlib import Path

from fermata_client.document.disk_files import MAX_FILE_BYTES, is_utf8_text, resolve_path
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import is_code_path, is_run_by_tools


class PageCodeFiles:
    """Reads files of `folder`, and says where they are written: in `out_folder`, from where they are read afterwards.

    Both folders are without symbolic links. Paths are relative to the folder.
    """

    def __init__(self, folder: Path, out_folder: Path) -> None:
        self.folder = folder
        self.out_folder = out_folder
        self.written_paths: set[str] = set()
        """Files that were written to `out_folder`, and are read from there."""
        self._content_before_by_target: dict[Path, bytes | None] = {}
        """What the files of another `out_folder` had before they were written first."""

    def read_files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Read those of the files that belong to a page and can be read."""
        return {path: content for path in paths if (content := self.read_file(path)) is not None}

    def read_file(self, path: str) -> bytes | None:
        """Read a script or style sheet of the folder; None for anything else, also behind a symbolic link."""
        folder = self.out_folder if path in self.written_paths else self.folder
        try:
            content = _read_code_file(folder, path)
            if self.out_folder != self.folder and path not in self.written_paths:
                self._remember_target(path)
        except OSError:  # such as a name that is too long, or a file without read permission
            return None
        return content

    def find_target(self, path: str) -> Path:
        """Return where a file is written.

        Raises:
            EditError: a file of this path may not be written.
        """
        target = resolve_path(self.out_folder / path)
        if not target.is_relative_to(self.out_folder):
            raise EditError(f"{path} leads out of the folder of the page. Choose a path below it.")
        if not (is_code_path(path) and is_code_path(target.relative_to(self.out_folder).as_posix())):
            raise EditError(
                f"{path} is no script or style sheet of a page. Choose a path such as js/menu.js or site.css."
            )
        if is_run_by_tools(path) or is_run_by_tools(target.relative_to(self.out_folder).as_posix()):
            raise EditError(
                f"{path} has the name of a file that build tools run on the user's machine, so it is not written. "
                "Choose another name."
            )
        if target.exists() and not target.stat().st_mode & 0o222:
            raise EditError(f"{path} is read-only, so it was not changed.")
        return target

    def check_new_target(self, path: str, target: Path) -> None:
        """Raise `EditError` if there is a file already, which the page does not load."""
        if (self.folder / path).exists() or (target.exists() and self.out_folder != self.folder):
            raise EditError(
                f"There is a {path} already, which the page does not load. Load it, or choose another name."
            )

    def content_before(self, path: str, target: Path, content: bytes | None) -> bytes | None:
        """Return what `target` must have when it is written, where `content` was read of the path."""
        if self.out_folder == self.folder or path in self.written_paths:
            return content
        return self._content_before_by_target.get(target)

    def _remember_target(self, path: str) -> None:
        target = resolve_path(self.out_folder / path)
        if target not in self._content_before_by_target:
            self._content_before_by_target[target] = target.read_bytes() if target.is_file() else None


def _read_code_file(folder: Path, path: str) -> bytes | None:
    resolved = resolve_path(folder / path)
    if not (is_code_path(path) and resolved.is_relative_to(folder) and resolved.is_file()):
        return None
    if not is_code_path(resolved.relative_to(folder).as_posix()) or resolved.stat().st_size > MAX_FILE_BYTES:
        return None
    content = resolved.read_bytes()
    return content if is_utf8_text(content) else None
