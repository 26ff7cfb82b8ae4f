"""What a page loads, and which of it lies beside the page."""

import posixpath
import re
from urllib.parse import unquote

from fermata_client.html.tree import Element, HtmlTree

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript", "text/ecmascript"})
SCREEN_MEDIA = ("", "all", "screen")


def is_stylesheet(element: Element) -> bool:
    """A style sheet of the page: its own, or one that it links."""
    if element.tag == "style":
        return not element.is_within("svg")
    relations = (element.attribute_value("rel") or "").lower().split()
    return element.tag == "link" and "stylesheet" in relations and "alternate" not in relations


def is_script(element: Element) -> bool:
    """Something that runs; a script element may hold plain data as well."""
    return element.tag == "script" and (element.attribute_value("type") or "").strip().lower() in SCRIPT_TYPES


def link_address(element: Element) -> str | None:
    """The address of what the element loads; None when it holds it itself."""
    return element.attribute_value("href" if element.tag == "link" else "src")


def is_for_screens(element: Element) -> bool:
    return (element.attribute_value("media") or "").strip().lower() in SCREEN_MEDIA


def local_path_from_address(address: str | None) -> str | None:
    """The path of a file in the page's own folder or below it, as `css/site.css`; None for any other address."""
    bare = re.split(r"[?#]", (address or "").strip())[0]
    if not bare or bare.startswith("/") or _SCHEME.match(bare) or "\\" in bare:
        return None
    path = posixpath.normpath(unquote(bare))
    return None if path.startswith(("..", "/")) or path == "." or "\x00" in path else path


def linked_file_path(page: HtmlTree, element: Element) -> str | None:
    """The file beside the page that a sheet or script element loads."""
    if not (is_stylesheet(element) or is_script(element)) or _moves_addresses(page):
        return None
    return local_path_from_address(link_address(element))


def linked_file_paths(page: HtmlTree) -> list[str]:
    """All of them, each once, in the order of the page."""
    found = (linked_file_path(page, element) for element in page.elements if element.tag in ("link", "script"))
    return list(dict.fromkeys(path for path in found if path))


def _moves_addresses(page: HtmlTree) -> bool:
    return any(element.tag == "base" and element.attribute_value("href") for element in page.elements)
