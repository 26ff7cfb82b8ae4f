"""The browser tools on an HTML file: what an editor does for its page, done for a file on disk."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fermata_client.html.cannot import CannotDo
from fermata_client.html_document import HtmlDocument, css_counts
from fermata_client.snapshot import page_id, site_snapshot

MAX_BYTES = 2_000_000
"""A page and its snapshot travel with every answer, and the service takes 4.5 MB."""

Tool = Callable[[HtmlDocument, dict[str, Any]], tuple[HtmlDocument, Any]]


class NotAPage(ValueError):
    """Why a file cannot be edited, in a sentence."""


class HtmlFile:
    """A page on disk. Every edit is saved before it is reported, and somebody else's edit is never overwritten.

    With `out` the page is read from `path`, and from the first edit on it lives in `out`.
    """

    def __init__(self, path: Path, out: Path | None = None) -> None:
        self.path = path.resolve()
        self.out = (out or path).resolve()
        self.id = page_id(self.path)
        self.document = HtmlDocument.read(read_page(self.path))

    def refresh(self) -> bool:
        """Take in what somebody else wrote meanwhile; whether there was anything. Its nodes get new ids."""
        try:
            source = read_page(self.path)
        except NotAPage as error:
            raise CannotDo(str(error)) from error
        if source == self.document.source:
            return False
        self.document = HtmlDocument.read(source, self.document.next_id)
        return True

    def save(self, document: HtmlDocument) -> None:
        if document.source != self.document.source:
            self._write(document.source)
        self.document = document

    def finish(self) -> None:
        """Have `out` even when nothing was changed."""
        if self.path != self.out:
            self._write(self.document.source)

    def _write(self, source: bytes) -> None:
        self.out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.out, source)
        self.path = self.out


class HtmlFileExecutor:
    """Carries out tool requests on one file. The same `effectKey` acts once and gets the same result again."""

    def __init__(self, file: HtmlFile) -> None:
        self.file = file
        self._results: dict[str, dict[str, Any]] = {}

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        key = str(request.get("effectKey") or request.get("requestId"))
        if key not in self._results:
            self._results[key] = self._execute(str(request.get("toolName")), request.get("input"))
        return self._results[key]

    def snapshot(self) -> dict[str, Any]:
        return site_snapshot(self.file.document, self.file.id)

    def _execute(self, name: str, given: Any) -> dict[str, Any]:
        try:
            data = self._run(name, given if isinstance(given, dict) else {})
        except CannotDo as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True} if data is None else {"ok": True, "data": data}

    def _run(self, name: str, given: dict[str, Any]) -> Any:
        reading, writing = READS.get(name), WRITES.get(name)
        if reading is None and writing is None:
            raise CannotDo(f"Unknown tool: {name}")
        changed = self.file.refresh()
        if reading is not None:
            return reading(self.file, given)
        if changed:
            raise CannotDo("Somebody else changed this file; that edit was kept. Please read the document again.")
        assert writing is not None
        document, data = writing(self.file.document, given)
        self.file.save(document)
        return data


def read_page(path: Path) -> bytes:
    """The bytes of an HTML file, or NotAPage with the reason why not."""
    if not path.exists():
        raise NotAPage(f"There is no file {path}.")
    if not path.is_file():
        raise NotAPage(f"{path} is not a file.")
    if path.stat().st_size > MAX_BYTES:
        raise NotAPage(f"{path} is too large: the limit is {MAX_BYTES // 1_000_000} MB.")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise NotAPage(f"{path} cannot be read: {error.strerror}.") from error
    check_page(path, source)
    return source


def check_page(path: Path, source: bytes) -> None:
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        raise NotAPage(f"{path} is not UTF-8 (byte {error.start}). Save it as UTF-8 and try again.") from error
    if path.suffix.lower() in (".html", ".htm", ".xhtml"):
        return
    if "\x00" in text or not HtmlDocument.read(source).page.elements:
        raise NotAPage(f"{path} is not an HTML page.")


def write_whole(path: Path, source: bytes) -> None:
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


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise CannotDo(f"`{name}` is missing: it must be a text.")
    return value


def _index(given: dict[str, Any], name: str) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or value < 0):
        raise CannotDo(f"`{name}` must be a whole number from 0 up.")
    return value


def _read_document(file: HtmlFile, given: dict[str, Any]) -> dict[str, Any]:
    here = {"type": "page", "id": file.id}
    wanted = given.get("document") or here
    if wanted != here:
        raise CannotDo(f"There is only one document here: {here}.")
    part = _index(given, "part") or 1
    return {"document": here, "title": file.document.title, **file.document.read_part(part)}


def _node_html(file: HtmlFile, given: dict[str, Any]) -> dict[str, Any]:
    return {"html": file.document.node_html(_text(given, "nodeId"))}


def _insert(document: HtmlDocument, given: dict[str, Any]) -> tuple[HtmlDocument, Any]:
    return document.insert(_text(given, "parentId"), _text(given, "html"), _index(given, "index"))


def _replace(document: HtmlDocument, given: dict[str, Any]) -> tuple[HtmlDocument, Any]:
    return document.replace(_text(given, "nodeId"), _text(given, "html"))


def _delete(document: HtmlDocument, given: dict[str, Any]) -> tuple[HtmlDocument, Any]:
    return document.delete(_text(given, "nodeId")), None


def _apply_css(document: HtmlDocument, given: dict[str, Any]) -> tuple[HtmlDocument, Any]:
    if given.get("operation", "merge") != "merge":
        raise CannotDo("Only the operation `merge` is known here.")
    styled, counts = document.style(_text(given, "css"))
    return styled, css_counts(counts)


def _both_names(tools: dict[tuple[str, str], Any]) -> dict[str, Any]:
    return {name: tool for names, tool in tools.items() for name in names}


READS: dict[str, Callable[[HtmlFile, dict[str, Any]], Any]] = _both_names(
    {
        ("read_document", "site_read_document"): _read_document,
        ("getNodeHtml", "site_get_node_html"): _node_html,
    }
)
WRITES: dict[str, Tool] = _both_names(
    {
        ("insertHtml", "site_insert_html"): _insert,
        ("replaceNodeHtml", "site_replace_node_html"): _replace,
        ("deleteNode", "site_delete_node"): _delete,
        ("applyCss", "site_apply_css"): _apply_css,
    }
)
