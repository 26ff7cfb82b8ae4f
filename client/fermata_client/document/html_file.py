"""Read and write an HTML file on disk, with the style sheets and scripts of its folder (decision 0121)."""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from fermata_client.document.disk_files import (
    NotAnHtmlFileError,
    check_code_file,
    check_html,
    read_html_file,
    resolve_path,
)
from fermata_client.document.disk_writes import FileChangedError, FileWrite, check_content, write_files
from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.page_code_files import PageCodeFiles
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import linked_file_paths


class HtmlFile:
    """A page on disk. Every edit is saved before it is reported, and changes by others are never overwritten (0190).

    Args:
        path: the page that is read.
        out: where the page is written from its first edit on, with the files edited along with it; None for `path`.
            If both are in one folder, both pages use the files of that folder, which are therefore read only.
        css: the linked style sheet that gets new rules; empty for the last sheet of the page.

    Raises:
        NotAnHtmlFileError: the page cannot be edited, or does not load `css`.
    """

    def __init__(self, path: Path, out: Path | None = None, css: str = "") -> None:
        self.path = resolve_path(path)
        self.out = resolve_path(out or path)
        self.folder = self.path.parent
        self.name = self.path.name
        self._is_copy_in_folder = self.out != self.path and self.out.parent == self.folder
        self._code_files = PageCodeFiles(self.folder, self.out.parent)
        self._out_before = self._read_out()
        """What `out` had before the first edit was written to it."""
        self._before_edits: HtmlDocument | None = None
        """The document as the first edit found it; None before that."""
        self._seen_paths: set[str] = set()
        """Files that the page has loaded at some time."""
        self.document = self._parse_document(read_html_file(self.path, str(path)), 1)
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
        missing = [path for path in paths if path not in self.document.files]
        return replace(self.document, files={**self.document.files, **self._code_files.read_files(missing)})

    def save(self, document: HtmlDocument, before: HtmlDocument) -> None:
        """Write what differs between `before` and `document`, all or nothing.

        Raises:
            FileChangedError: the page or a file that it loads is not as it is in `before` any more.
            EditError: a file may not be written.
        """
        changed = [
            path for path in {**before.files, **document.files} if before.files.get(path) != document.files.get(path)
        ]
        writes = [self._file_write(path, document, before) for path in changed]
        if document.source != before.source:
            writes.append(FileWrite(self.out, document.source, self._page_before(before.source)))
        self._check_readable(document, changed)
        if writes:
            write_files(writes, lambda: self._check_unchanged(before), [self.folder, self.out.parent])
            self._before_edits = self._before_edits or before
        self._code_files.written_paths |= set(changed)
        if document.source != before.source:
            self.path = self.out
        linked_files = self._load_linked_files(document)
        shared_files = self._shared_paths(linked_files)
        self.document = replace(document, files=linked_files, shared_files=shared_files, reversals=())

    def _check_readable(self, document: HtmlDocument, changed_paths: Iterable[str]) -> None:
        """Raise `EditError` if the page, or a file that an edit writes, could not be read and undone any more."""
        try:
            check_html(self.out, document.source, self.out.name)
            for path in changed_paths:
                check_code_file(path, document.files.get(path, b""))
        except NotAnHtmlFileError as error:
            raise EditError(f"Nothing was changed, because this edit could not be undone: {error}") from error

    def write_copy(self) -> None:
        """Write `out`, also if nothing was changed, and in its folder the files that the page loads and it lacks.

        Raises:
            NotAnHtmlFileError: someone else has written `out` meanwhile.
        """
        writes = [FileWrite(self.out, self.document.source, self._out_before)] if self.path != self.out else []
        if self.out.parent != self.folder:
            for path, content in self.document.files.items():
                target = self._code_files.find_target(path)
                if not target.exists():
                    writes.append(FileWrite(target, content, None))
                    self._code_files.written_paths.add(path)
        try:
            write_files(writes, lambda: None)
        except FileChangedError as error:
            raise NotAnHtmlFileError(
                f"{self.out} was written by someone else meanwhile, so it was kept. Name another file with --out."
            ) from error
        self.path = self.out

    def display_path(self, absolute_path: str) -> str:
        """Return a path relative to the page's folder, as the model knows it."""
        path = Path(absolute_path)
        folders = (folder for folder in (self.out.parent, self.folder) if path.is_relative_to(folder))
        return path.relative_to(next(folders, path.parent)).as_posix()

    def file_texts(self, page_name: str) -> dict[str, str]:
        """Return the texts on disk of the page, as `page_name`, and of the files it has loaded, by path."""
        with contextlib.suppress(EditError):  # a page that cannot be read any more is shown as it was last
            self.reload_if_changed()
        files = self._code_files.read_files(sorted(self._seen_paths))
        return {page_name: self.document.source.decode()} | {path: content.decode() for path, content in files.items()}

    def texts_before_edits(self, page_name: str, texts_at_start: dict[str, str]) -> dict[str, str]:
        """Return what `file_texts` gave before the first edit, so that no earlier change by others counts as an edit.

        Args:
            texts_at_start: what it gave when the file was opened.
        """
        found = self._before_edits
        if found is None:
            return self.file_texts(page_name)
        files = {path: content.decode() for path, content in found.files.items()}
        return texts_at_start | {page_name: found.source.decode()} | files

    def _parse_document(self, source: bytes, next_id: int) -> HtmlDocument:
        document = HtmlDocument.parse(source, next_id, path=self.name)
        files = self._load_linked_files(document)
        return replace(document, files=files, shared_files=self._shared_paths(files))

    def _load_linked_files(self, document: HtmlDocument) -> dict[str, bytes]:
        files = self._code_files.read_files(linked_file_paths(document.tree))
        self._seen_paths |= files.keys()
        return files

    def _shared_paths(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that a copy in the same folder shares with its original: all but those it has written."""
        if not self._is_copy_in_folder:
            return frozenset()
        return frozenset(path for path in paths if path not in self._code_files.written_paths)

    def _target_sheet(self, css: str) -> str:
        if not css:
            return ""
        path = PurePosixPath(os.path.relpath(resolve_path(Path(css)), self.folder)).as_posix()
        if path not in self.document.files:
            raise NotAnHtmlFileError(
                f"{self.name} does not load {css} from its own folder. Link it there, or leave --css out."
            )
        return path

    def _file_write(self, path: str, document: HtmlDocument, before: HtmlDocument) -> FileWrite:
        """Return the write of a file beside the page. Raises `EditError` if it may not be written."""
        target = self._code_files.find_target(path)
        if path not in before.files and target.exists():
            self._check_unchanged(before)
        if path not in before.files:
            self._code_files.check_new_target(path, target)
        previous = self._code_files.content_before(path, target, before.files.get(path))
        return FileWrite(target, document.files.get(path), previous)

    def _page_before(self, source: bytes) -> bytes | None:
        return source if self.path == self.out else self._out_before

    def _read_out(self) -> bytes | None:
        return self.out.read_bytes() if self.out.is_file() else None

    def _check_unchanged(self, before: HtmlDocument) -> None:
        """Raise `FileChangedError` unless the disk has the page and the files that an edit was computed from."""
        check_content(self.path, before.source)
        paths = [*linked_file_paths(before.tree), *before.files]
        if self._code_files.read_files(paths) != before.files:
            raise FileChangedError(
                "A file of this page was changed by someone else meanwhile. Read the document again."
            )
        if self.path != self.out and self._read_out() != self._out_before:
            self.path = self.out  # from now on the page is what the other program has written
            raise FileChangedError("The page was written by someone else meanwhile. Read the document again.")
