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

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.errors import EditError
from fermata_client.html.linked_files import (
    is_script,
    is_stylesheet,
    link_address,
    linked_file_paths,
    local_path_from_address,
)
from fermata_client.html.tree import Element

FILE_EXTENSIONS = {"script": (".js", ".mjs"), "style": (".css",)}
MAX_NAME_BYTES, MAX_PATH_CHARS = 200, 1_000
"""Bytes; a disk takes 255 of a name, and a file is written under a longer one first."""


@dataclass(frozen=True)
class CodeAsset:
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

    def to_summary(self) -> dict[str, Any]:
        return {
            "fileId": self.file_id,
            "path": self.path,
            "type": self.type,
            "contentChars": len(self.text),
            "bytes": len(self.content),
            "hash": self.hash,
            "generated": False,
            "ejected": False,
            "runtime": describe_loading(self.element) if self.element else {},
        }


def describe_loading(element: Element) -> dict[str, Any]:
    """How the page loads it."""
    placement = "head" if element.is_within("head") else "body"
    if element.tag == "script":
        kind = "module" if (element.attribute_value("type") or "").strip().lower() == "module" else "classic"
        timing = [name for name in ("async", "defer") if element.attribute_value(name) is not None]
        return {"placement": placement, "format": kind, "timing": timing[0] if timing else "immediate"}
    return {"placement": placement, "media": element.attribute_value("media") or "all"}


def find_code_assets(document: HtmlDocument) -> list[CodeAsset]:
    """All of them, sorted by path."""
    return sorted(_assets(document), key=lambda asset: asset.path)


def _assets(document: HtmlDocument) -> Iterator[CodeAsset]:
    loading: dict[str, Element] = {}
    counts = {"script": 0, "style": 0}
    for element in document.tree.elements:
        if not (is_stylesheet(element) or is_script(element)):
            continue
        kind = "script" if element.tag == "script" else "style"
        if path := document.linked_file(element):
            loading.setdefault(path, element)
        elif link_address(element) is None and element.tag != "link":
            counts[kind] += 1
            content = document.source[element.inner_start : element.inner_end]
            yield CodeAsset(f"{document.path}#{kind}-{counts[kind]}", kind, content, element, is_file=False)
    for path, content in document.files.items():
        yield CodeAsset(path, asset_type_from_path(path), content, loading.get(path), is_file=True)


def asset_type_from_path(path: str) -> str:
    return "style" if path.lower().endswith(FILE_EXTENSIONS["style"]) else "script"


def find_code_asset(document: HtmlDocument, name: str) -> CodeAsset:
    """By its path or its id."""
    every = find_code_assets(document)
    for one in every:
        if name in (one.path, one.file_id) or (one.is_file and posixpath.normpath(name) == one.path):
            return one
    raise EditError(f"There is no script or style sheet {name} here. {_listed(document, every)}")


def _listed(document: HtmlDocument, every: list[CodeAsset]) -> str:
    there = f"There are: {', '.join(one.path for one in every)}." if every else "The page has none."
    lost = [path for path in linked_file_paths(document.tree) if path not in document.files]
    return there + (f" Not to be read: {', '.join(lost)}." if lost else "")


def check_new_path(path: str, kind: str) -> str:
    """A path for a new file, in the page's folder or below it; CannotDo for any other."""
    clean = local_path_from_address(path)
    if "#" in path or "?" in path or clean is None:
        raise EditError(f"{path} is not a path below the folder of the page, such as scripts/menu.js or site.css.")
    if any(part.startswith(".") for part in clean.split("/")):
        raise EditError(f"{path} would be a hidden file. Choose a name like scripts/menu.js or site.css.")
    if not re.fullmatch(r"[\w. ()+@/-]+", clean):
        raise EditError(
            f"{path} has characters that do not belong into an address. Use letters, digits, -, _ and dots."
        )
    if max(len(part.encode()) for part in clean.split("/")) > MAX_NAME_BYTES or len(clean) > MAX_PATH_CHARS:
        raise EditError(f"The path is too long: a name has up to {MAX_NAME_BYTES} letters. Choose a shorter one.")
    if not clean.lower().endswith(FILE_EXTENSIONS[kind]):
        raise EditError(f"The path of a {kind} ends with {' or '.join(FILE_EXTENSIONS[kind])}.")
    return clean
