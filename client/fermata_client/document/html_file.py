"""An HTML file on disk with the style sheets and scripts beside it."""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.errors import EditError
from fermata_client.html.linked_files import linked_file_paths

CODE_EXTENSIONS = (".css", ".js", ".mjs")
MAX_FILE_BYTES = 2_000_000
"""A page and its snapshot travel with every answer, and the service takes 4.5 MB."""


class NotAnHtmlFileError(ValueError):
    """Why a file cannot be edited, in a sentence."""


class HtmlFile:
    """A page on disk. Every edit is saved before it is reported, and somebody else's edit is never overwritten.

    With `out` the page is read from `path`, and from the first edit on it lives in `out`; what is edited beside it then
    lives beside `out`. Where both are in one folder, what lies beside them belongs to both and is read only. `css`
    names the linked style sheet that gets new rules.
    """

    def __init__(self, path: Path, out: Path | None = None, css: str = "") -> None:
        self.path = path.resolve()
        self.out = (out or path).resolve()
        self.folder, self.name = self.path.parent, self.path.name
        self._is_copy = self.out != self.path and self.out.parent == self.folder
        self._moved: set[str] = set()
        """Files that were written beside `out`."""
        self._seen: set[str] = set()
        """Files that were part of the page at some time."""
        self.document = self._read(read_html_file(self.path), 1)
        self.document = replace(self.document, target_sheet=self._home(css))

    def reload_if_changed(self) -> HtmlDocument | None:
        """Take in what somebody else wrote meanwhile; the document before, if there was anything. Nodes get new ids."""
        old = self.document
        try:
            source = read_html_file(self.path, self.path.name)
        except NotAnHtmlFileError as error:
            raise EditError(str(error)) from error
        if source == old.source and self._loaded(old) == old.files:
            return None
        self.document = replace(self._read(source, old.next_id), target_sheet=old.target_sheet)
        return old

    def with_files(self, paths: Iterable[str]) -> HtmlDocument:
        """The document with scripts and sheets of its folder that it does not load at the moment."""
        missing = (path for path in paths if path not in self.document.files and path.lower().endswith(CODE_EXTENSIONS))
        return replace(self.document, files={**self.document.files, **self._existing(missing)})

    def save(self, document: HtmlDocument, before: HtmlDocument) -> None:
        """What `document` has other than `before`: all of it, or CannotDo before anything was written."""
        old, files = before.files, document.files
        changed = [path for path in {**old, **files} if old.get(path) != files.get(path)]
        places = {path: self._target(path, is_new=path not in old) for path in changed}
        for path, place in places.items():
            self._put(path, place, files.get(path))
        if document.source != before.source:
            self._write(document.source)
        loaded = self._loaded(document)
        self.document = replace(document, files=loaded, shared_files=self._shared(loaded), reversals=())

    def write_copy(self) -> None:
        """Have `out` even when nothing was changed, and beside it what the page loads."""
        if self.path != self.out:
            self._write(self.document.source)
        if self.out.parent != self.folder:
            for path, content in self.document.files.items():
                place = (self.out.parent / path).resolve()
                if place.is_relative_to(self.out.parent) and not place.exists():
                    self._put(path, place, content)

    def display_path(self, place: str) -> str:
        """What a path on the disk is called for somebody who knows the page's folder only."""
        path = Path(place)
        home = next((home for home in (self.out.parent, self.folder) if path.is_relative_to(home)), path.parent)
        return path.relative_to(home).as_posix()

    def file_texts(self, name: str) -> dict[str, str]:
        """The page, called `name`, and what lies beside it, by path."""
        beside = self._existing(sorted(self._seen))
        return {name: self.document.source.decode()} | {path: content.decode() for path, content in beside.items()}

    def _read(self, source: bytes, next_id: int) -> HtmlDocument:
        document = HtmlDocument.parse(source, next_id, path=self.name)
        files = self._loaded(document)
        return replace(document, files=files, shared_files=self._shared(files))

    def _loaded(self, document: HtmlDocument) -> dict[str, bytes]:
        """What the page loads from its folder."""
        files = self._existing(linked_file_paths(document.tree))
        self._seen |= files.keys()
        return files

    def _existing(self, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: content for path in paths if (content := self._beside(path)) is not None}

    def _shared(self, files: Iterable[str]) -> frozenset[str]:
        """What a copy in the same folder has in common with its original: all but the files it made itself."""
        return frozenset(path for path in files if path not in self._moved) if self._is_copy else frozenset()

    def _home(self, css: str) -> str:
        if not css:
            return ""
        path = PurePosixPath(os.path.relpath(Path(css).resolve(), self.folder)).as_posix()
        if path not in self.document.files:
            raise NotAnHtmlFileError(
                f"{self.name} does not load {css} from its own folder. Link it there, or leave --css out."
            )
        return path

    def _beside(self, path: str) -> bytes | None:
        """The bytes of a text file in the page's folder; None for everything else, also behind a symbolic link."""
        home = self.out.parent if path in self._moved else self.folder
        place = (home / path).resolve()
        try:
            if not place.is_relative_to(home) or not place.is_file() or place.stat().st_size > MAX_FILE_BYTES:
                return None
            content = place.read_bytes()
        except OSError:  # a name too long for the disk, a file that nobody may read: not a part of the page
            return None
        return content if is_utf8_text(content) else None

    def _target(self, path: str, *, is_new: bool) -> Path:
        """Where a file is written; CannotDo for a place outside, and for a file that the page does not know."""
        place = (self.out.parent / path).resolve()
        if not place.is_relative_to(self.out.parent):
            raise EditError(f"{path} leads out of the folder of the page. Choose a path below it.")
        if is_new and ((self.folder / path).exists() or (place.exists() and self.out.parent != self.folder)):
            raise EditError(
                f"There is a {path} already, which the page does not load. Load it, or choose another name."
            )
        return place

    def _put(self, path: str, place: Path, content: bytes | None) -> None:
        if content is None:
            place.unlink(missing_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, content)
        self._moved.add(path)

    def _write(self, source: bytes) -> None:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.out, source)
        self.path = self.out


def is_utf8_text(content: bytes) -> bool:
    try:
        return "\x00" not in content.decode()
    except UnicodeDecodeError:
        return False


def read_html_file(path: Path, called: str = "") -> bytes:
    """The bytes of an HTML file, or NotAPage with the reason why not, in which the file is `called` so."""
    called = called or str(path)
    if not path.exists():
        raise NotAnHtmlFileError(f"There is no file {called}.")
    if not path.is_file():
        raise NotAnHtmlFileError(f"{called} is not a file.")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise NotAnHtmlFileError(f"{called} is too large: the limit is {MAX_FILE_BYTES // 1_000_000} MB.")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise NotAnHtmlFileError(f"{called} cannot be read: {error.strerror}.") from error
    check_html(path, source, called)
    return source


def check_html(path: Path, source: bytes, called: str) -> None:
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        raise NotAnHtmlFileError(
            f"{called} is not UTF-8 (byte {error.start}). Save it as UTF-8 and try again."
        ) from error
    if path.suffix.lower() in (".html", ".htm", ".xhtml"):
        return
    if "\x00" in text or not HtmlDocument.parse(source).tree.elements:
        raise NotAnHtmlFileError(f"{called} is not an HTML page.")


def check_output_path(out: Path) -> None:
    """NotAPage when no file can come to be at `out`, as far as can be told without making it."""
    if out.is_dir():
        raise NotAnHtmlFileError(f"{out} is a folder. Name the file that is to be written, as {out / 'index.html'}.")
    folder = next(above for above in out.parents if above.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise NotAnHtmlFileError(f"{out} cannot be written: {folder} is no folder that you may write to.")


def write_atomically(path: Path, source: bytes) -> None:
    """All of the file or nothing: no reader ever sees half of it."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(source)
        fresh.chmod(path.stat().st_mode if path.exists() else 0o644)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
