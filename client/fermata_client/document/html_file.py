"""An HTML file on disk, with the style sheets and scripts of its folder (decision 0121)."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from fermata_client.document.disk_files import (
    MAX_FILE_BYTES,
    NotAnHtmlFileError,
    is_utf8_text,
    read_html_file,
    write_atomically,
)
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import linked_file_paths

CODE_EXTENSIONS = (".css", ".js", ".mjs")


class HtmlFile:
    """A page on disk. Every edit is saved before it is reported, and changes by others are never overwritten.

    Args:
        path: the page that is read.
        out: where the page is written from its first edit on, with the files edited along with it; None for `path`.
            If both are in one folder, both pages use the files of that folder, which are therefore read only.
        css: the linked style sheet that gets new rules; empty for the last sheet of the page.

    Raises:
        NotAnHtmlFileError: the page cannot be edited, or does not load `css`.
    """

    def __init__(self, path: Path, out: Path | None = None, css: str = "") -> None:
        self.path = path.resolve()
        self.out = (out or path).resolve()
        self.folder = self.path.parent
        self.name = self.path.name
        self._is_copy_in_folder = self.out != self.path and self.out.parent == self.folder
        self._written_paths: set[str] = set()
        """Files that were written beside `out`, and are read from there."""
        self._seen_paths: set[str] = set()
        """Files that the page has loaded at some time."""
        self.document = self._parse_document(read_html_file(self.path), 1)
        self.document = replace(self.document, target_sheet=self._target_sheet(css))

    def reload_if_changed(self) -> HtmlDocument | None:
        """Read the file again if it was changed on disk. Its elements get new ids then.

        Returns:
            The document as it was before; None if nothing was changed.

        Raises:
            EditError: the file cannot be edited any more.
        """
        previous = self.document
        try:
            source = read_html_file(self.path, self.path.name)
        except NotAnHtmlFileError as error:
            raise EditError(str(error)) from error
        if source == previous.source and self._load_linked_files(previous) == previous.files:
            return None
        document = self._parse_document(source, previous.next_id)
        self.document = replace(document, target_sheet=previous.target_sheet)
        return previous

    def with_files(self, paths: Iterable[str]) -> HtmlDocument:
        """Return the document with further scripts and style sheets of its folder that it does not load now."""
        missing = [path for path in paths if path not in self.document.files and path.lower().endswith(CODE_EXTENSIONS)]
        return replace(self.document, files={**self.document.files, **self._read_files(missing)})

    def save(self, document: HtmlDocument, before: HtmlDocument) -> None:
        """Write what differs between `before` and `document`.

        Raises:
            EditError: a file may not be written. Nothing is written then.
        """
        old_files, files = before.files, document.files
        changed = [path for path in {**old_files, **files} if old_files.get(path) != files.get(path)]
        targets = {path: self._target_path(path, is_new=path not in old_files) for path in changed}
        for path, target in targets.items():
            self._write_file(path, target, files.get(path))
        if document.source != before.source:
            self._write_page(document.source)
        linked_files = self._load_linked_files(document)
        shared_files = self._shared_paths(linked_files)
        self.document = replace(document, files=linked_files, shared_files=shared_files, reversals=())

    def write_copy(self) -> None:
        """Write `out`, also if nothing was changed, and in its folder the files that the page loads."""
        if self.path != self.out:
            self._write_page(self.document.source)
        if self.out.parent != self.folder:
            for path, content in self.document.files.items():
                target = (self.out.parent / path).resolve()
                if target.is_relative_to(self.out.parent) and not target.exists():
                    self._write_file(path, target, content)

    def display_path(self, absolute_path: str) -> str:
        """Return a path relative to the page's folder, as the model knows it."""
        path = Path(absolute_path)
        folders = (folder for folder in (self.out.parent, self.folder) if path.is_relative_to(folder))
        return path.relative_to(next(folders, path.parent)).as_posix()

    def file_texts(self, page_name: str) -> dict[str, str]:
        """Return the texts of the page, as `page_name`, and of the files it has loaded, by path."""
        files = self._read_files(sorted(self._seen_paths))
        return {page_name: self.document.source.decode()} | {path: content.decode() for path, content in files.items()}

    def _parse_document(self, source: bytes, next_id: int) -> HtmlDocument:
        document = HtmlDocument.parse(source, next_id, path=self.name)
        files = self._load_linked_files(document)
        return replace(document, files=files, shared_files=self._shared_paths(files))

    def _load_linked_files(self, document: HtmlDocument) -> dict[str, bytes]:
        files = self._read_files(linked_file_paths(document.tree))
        self._seen_paths |= files.keys()
        return files

    def _read_files(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Read those of the files that can be read."""
        return {path: content for path in paths if (content := self._read_file(path)) is not None}

    def _read_file(self, path: str) -> bytes | None:
        """Read a text file of the page's folder; None for anything else, also behind a symbolic link."""
        folder = self.out.parent if path in self._written_paths else self.folder
        resolved = (folder / path).resolve()
        try:
            is_readable = resolved.is_relative_to(folder) and resolved.is_file()
            if not is_readable or resolved.stat().st_size > MAX_FILE_BYTES:
                return None
            content = resolved.read_bytes()
        except OSError:  # such as a name that is too long, or a file without read permission
            return None
        return content if is_utf8_text(content) else None

    def _shared_paths(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that a copy in the same folder shares with its original: all but those it has written."""
        if not self._is_copy_in_folder:
            return frozenset()
        return frozenset(path for path in paths if path not in self._written_paths)

    def _target_sheet(self, css: str) -> str:
        if not css:
            return ""
        path = PurePosixPath(os.path.relpath(Path(css).resolve(), self.folder)).as_posix()
        if path not in self.document.files:
            raise NotAnHtmlFileError(
                f"{self.name} does not load {css} from its own folder. Link it there, or leave --css out."
            )
        return path

    def _target_path(self, path: str, *, is_new: bool) -> Path:
        """Return where a file is written; `EditError` outside of the folder, or if another file is there."""
        target = (self.out.parent / path).resolve()
        if not target.is_relative_to(self.out.parent):
            raise EditError(f"{path} leads out of the folder of the page. Choose a path below it.")
        if is_new and ((self.folder / path).exists() or (target.exists() and self.out.parent != self.folder)):
            raise EditError(
                f"There is a {path} already, which the page does not load. Load it, or choose another name."
            )
        return target

    def _write_file(self, path: str, target: Path, content: bytes | None) -> None:
        if content is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)
        self._written_paths.add(path)

    def _write_page(self, source: bytes) -> None:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.out, source)
        self.path = self.out
