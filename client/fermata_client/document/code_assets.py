"""Find the scripts and style sheets of a page: inline elements, and files of its folder (decision 0121).

A file is named by its path from the page's folder. An inline element is named by the page, its type and its number, as
`index.html#script-2`.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import (
    SCRIPT_EXTENSIONS,
    STYLE_EXTENSIONS,
    is_script,
    is_stylesheet,
    link_address,
    linked_file_paths,
    local_path_from_address,
)
from fermata_client.html.tree import Element
from fermata_client.service.json_types import JsonObject

AssetType = Literal["script", "style"]

FILE_EXTENSIONS: dict[AssetType, tuple[str, ...]] = {"script": SCRIPT_EXTENSIONS, "style": STYLE_EXTENSIONS}
MAX_NAME_BYTES = 200
"""A disk takes 255 bytes of a name, and a copy may add to it."""
MAX_PATH_CHARS = 1_000


@dataclass(frozen=True)
class CodeAsset:
    path: str
    type: AssetType
    content: bytes
    element: Element | None
    """The first element that holds or loads it; None for a file that no element loads any more."""
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

    def to_summary(self) -> JsonObject:
        """Return what the model is shown of the asset besides its content."""
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


def describe_loading(element: Element) -> JsonObject:
    """Describe how the page loads a script or style sheet, as the member `runtime` of an asset."""
    placement = "head" if element.is_within("head") else "body"
    if element.tag == "script":
        is_module = (element.attribute_value("type") or "").strip().lower() == "module"
        timings = [name for name in ("async", "defer") if element.attribute_value(name) is not None]
        return {
            "placement": placement,
            "format": "module" if is_module else "classic",
            "timing": timings[0] if timings else "immediate",
        }
    return {"placement": placement, "media": element.attribute_value("media") or "all"}


def find_code_assets(document: HtmlDocument) -> list[CodeAsset]:
    """Return all scripts and style sheets that can be read, sorted by path."""
    return sorted(_iter_code_assets(document), key=lambda asset: asset.path)


def _iter_code_assets(document: HtmlDocument) -> Iterator[CodeAsset]:
    loading_elements: dict[str, Element] = {}
    inline_counts: dict[AssetType, int] = {"script": 0, "style": 0}
    for element in document.tree.elements:
        if not (is_stylesheet(element) or is_script(element)):
            continue
        asset_type: AssetType = "script" if element.tag == "script" else "style"
        if path := document.linked_file(element):
            loading_elements.setdefault(path, element)
        elif link_address(element) is None and element.tag != "link":
            inline_counts[asset_type] += 1
            name = f"{document.path}#{asset_type}-{inline_counts[asset_type]}"
            content = document.source[element.inner_start : element.inner_end]
            yield CodeAsset(name, asset_type, content, element, is_file=False)
    for path, content in document.files.items():
        yield CodeAsset(path, asset_type_from_path(path), content, loading_elements.get(path), is_file=True)


def asset_type_from_path(path: str) -> AssetType:
    return "style" if path.lower().endswith(FILE_EXTENSIONS["style"]) else "script"


def find_code_asset(document: HtmlDocument, name: str) -> CodeAsset:
    """Find an asset by its path or its id, or raise `EditError`."""
    assets = find_code_assets(document)
    for asset in assets:
        if name in (asset.path, asset.file_id) or (asset.is_file and posixpath.normpath(name) == asset.path):
            return asset
    raise EditError(f"There is no script or style sheet {name} here. {_describe_assets(document, assets)}")


def _describe_assets(document: HtmlDocument, assets: list[CodeAsset]) -> str:
    listed = f"There are: {', '.join(asset.path for asset in assets)}." if assets else "The page has none."
    unreadable = [path for path in linked_file_paths(document.tree) if path not in document.files]
    return listed + (f" Not to be read: {', '.join(unreadable)}." if unreadable else "")


def check_new_path(path: str, asset_type: AssetType) -> str:
    """Return the normalized path of a new file in the page's folder or below; `EditError` for any other path."""
    local_path = local_path_from_address(path)
    if "#" in path or "?" in path or local_path is None:
        raise EditError(f"{path} is not a path below the folder of the page, such as scripts/menu.js or site.css.")
    if any(part.startswith(".") for part in local_path.split("/")):
        raise EditError(f"{path} would be a hidden file. Choose a name like scripts/menu.js or site.css.")
    if not re.fullmatch(r"[\w. ()+@/-]+", local_path):
        raise EditError(
            f"{path} has characters that are not allowed in an address. Use letters, digits, -, _ and dots."
        )
    if max(len(part.encode()) for part in local_path.split("/")) > MAX_NAME_BYTES or len(local_path) > MAX_PATH_CHARS:
        raise EditError(f"The path is too long: a name has up to {MAX_NAME_BYTES} letters. Choose a shorter one.")
    if not local_path.lower().endswith(FILE_EXTENSIONS[asset_type]):
        raise EditError(f"The path of a {asset_type} ends with {' or '.join(FILE_EXTENSIONS[asset_type])}.")
    return local_path
