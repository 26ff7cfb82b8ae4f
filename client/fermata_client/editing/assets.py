"""Scripts and style sheets of a page: those that stand in it and those that lie beside it.

A file is named by its path from the page's folder, a script or style element by the page, its kind and its number, as
`index.html#script-2`. Nothing outside of that folder can be named.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fermata_client.html.cannot import CannotDo
from fermata_client.html.linking import beside, is_script, is_sheet, local_paths, reference
from fermata_client.html.tree import Element
from fermata_client.html_document import HtmlDocument

ENDINGS = {"script": (".js", ".mjs"), "style": (".css",)}
LONGEST_NAME, LONGEST_PATH = 200, 1_000
"""Bytes; a disk takes 255 of a name, and a file is written under a longer one first."""


@dataclass(frozen=True)
class Asset:
    path: str
    type: str
    content: bytes
    element: Element | None
    """The first element that holds or loads it; None for the sheet or script that no element names any more."""
    is_file: bool

    @property
    def hash(self) -> str:
        return sha256(self.content).hexdigest()

    @property
    def file_id(self) -> str:
        return self.path if self.is_file or self.element is None else self.element.uid

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def summary(self) -> dict[str, Any]:
        return {
            "fileId": self.file_id,
            "path": self.path,
            "type": self.type,
            "contentChars": len(self.text),
            "bytes": len(self.content),
            "hash": self.hash,
            "generated": False,
            "ejected": False,
            "runtime": runtime(self.element) if self.element else {},
        }


def runtime(element: Element) -> dict[str, Any]:
    """How the page loads it."""
    placement = "head" if element.within("head") else "body"
    if element.tag == "script":
        kind = "module" if (element.attribute("type") or "").strip().lower() == "module" else "classic"
        timing = [name for name in ("async", "defer") if element.attribute(name) is not None]
        return {"placement": placement, "format": kind, "timing": timing[0] if timing else "immediate"}
    return {"placement": placement, "media": element.attribute("media") or "all"}


def assets(document: HtmlDocument) -> list[Asset]:
    """All of them, sorted by path."""
    return sorted(_assets(document), key=lambda asset: asset.path)


def _assets(document: HtmlDocument) -> Iterator[Asset]:
    loading: dict[str, Element] = {}
    counts = {"script": 0, "style": 0}
    for element in document.page.elements:
        if not (is_sheet(element) or is_script(element)):
            continue
        kind = "script" if element.tag == "script" else "style"
        if path := document.file_of(element):
            loading.setdefault(path, element)
        elif reference(element) is None and element.tag != "link":
            counts[kind] += 1
            content = document.source[element.inner_start : element.inner_end]
            yield Asset(f"{document.path}#{kind}-{counts[kind]}", kind, content, element, is_file=False)
    for path, content in document.files.items():
        yield Asset(path, kind_of(path), content, loading.get(path), is_file=True)


def kind_of(path: str) -> str:
    return "style" if path.lower().endswith(ENDINGS["style"]) else "script"


def asset(document: HtmlDocument, name: str) -> Asset:
    """By its path or its id."""
    every = assets(document)
    for one in every:
        if name in (one.path, one.file_id) or (one.is_file and posixpath.normpath(name) == one.path):
            return one
    raise CannotDo(f"There is no script or style sheet {name} here. {_listed(document, every)}")


def _listed(document: HtmlDocument, every: list[Asset]) -> str:
    there = f"There are: {', '.join(one.path for one in every)}." if every else "The page has none."
    lost = [path for path in local_paths(document.page) if path not in document.files]
    return there + (f" Not to be read: {', '.join(lost)}." if lost else "")


def new_path(path: str, kind: str) -> str:
    """A path for a new file, in the page's folder or below it; CannotDo for any other."""
    clean = beside(path)
    if "#" in path or "?" in path or clean is None:
        raise CannotDo(f"{path} is not a path below the folder of the page, such as scripts/menu.js or site.css.")
    if any(part.startswith(".") for part in clean.split("/")):
        raise CannotDo(f"{path} would be a hidden file. Choose a name like scripts/menu.js or site.css.")
    if not re.fullmatch(r"[\w. ()+@/-]+", clean):
        raise CannotDo(f"{path} has characters that do not belong into an address. Use letters, digits, -, _ and dots.")
    if max(len(part.encode()) for part in clean.split("/")) > LONGEST_NAME or len(clean) > LONGEST_PATH:
        raise CannotDo(f"The path is too long: a name has up to {LONGEST_NAME} letters. Choose a shorter one.")
    if not clean.lower().endswith(ENDINGS[kind]):
        raise CannotDo(f"The path of a {kind} ends with {' or '.join(ENDINGS[kind])}.")
    return clean
