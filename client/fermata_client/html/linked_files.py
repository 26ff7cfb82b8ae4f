"""Find the style sheets and scripts of a page, and which of them are files in the page's folder (decision 0121)."""

import posixpath
import re
import unicodedata
from html import unescape
from urllib.parse import unquote

from fermata_client.html.tags import ISOLATING_TAGS
from fermata_client.html.tree import Element, HtmlTree

SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript", "text/ecmascript"})
SCREEN_MEDIA = ("", "all", "screen")
STYLE_EXTENSIONS = (".css",)
SCRIPT_EXTENSIONS = (".js", ".mjs")
CODE_EXTENSIONS = STYLE_EXTENSIONS + SCRIPT_EXTENSIONS
INVISIBLE_CATEGORIES = ("Cc", "Cf")
"""Unicode categories of control and format characters. Some file systems ignore them when they compare names."""

_DEVICE_NAME = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)[ ]*(?:\.|$)", re.I)
_TOOL_SCRIPT = re.compile(
    r"[\w.-]+\.(?:config|conf|setup)(?:\.\w+)?\.m?js"
    r"|(?:gulp|grunt|jake|knex|pnpm)file(?:\.\w+)?\.m?js"
    r"|(?:gatsby-\w+|ember-cli-build|webpack(?:\.\w+)+)\.m?js"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_stylesheet(element: Element) -> bool:
    """Return whether the element is a style element of the page, or links a style sheet that applies."""
    if element.tag == "style":
        return not element.is_within("svg")
    relations = (element.attribute_value("rel") or "").lower().split()
    return element.tag == "link" and "stylesheet" in relations and "alternate" not in relations


def is_page_stylesheet(element: Element) -> bool:
    """Return whether a style sheet applies to the page: not only to a template, and also with scripting."""
    if not is_stylesheet(element) or any(ancestor.tag in ISOLATING_TAGS for ancestor in element.ancestors()):
        return False
    is_css = (element.attribute_value("type") or "").strip().lower() in ("", "text/css")
    return is_css and (element.tag == "style" or element.attribute_value("disabled") is None)


def is_script(element: Element) -> bool:
    """Return whether the element is a script that runs. Script elements of other types hold data."""
    return element.tag == "script" and (element.attribute_value("type") or "").strip().lower() in SCRIPT_TYPES


def link_address(element: Element) -> str | None:
    """Return the address of what a link or script element loads; None if its content is inline."""
    value = element.attribute_value("href" if element.tag == "link" else "src")
    return None if value is None else unescape(value)


def is_for_screens(element: Element) -> bool:
    return (element.attribute_value("media") or "").strip().lower() in SCREEN_MEDIA


def local_path_from_address(address: str | None) -> str | None:
    """Return the path of a file in the page's folder or below, as `assets/site.css`; None for any other address."""
    bare = unquote(re.split(r"[?#]", (address or "").strip())[0])
    if not bare or bare.startswith("/") or _SCHEME.match(bare) or "\\" in bare or ":" in bare:
        return None
    if any(unicodedata.category(character) in INVISIBLE_CATEGORIES for character in bare):
        return None
    path = posixpath.normpath(bare)
    return None if path.startswith(("..", "/")) or path == "." else path


def is_code_path(path: str, extensions: tuple[str, ...] = CODE_EXTENSIONS) -> bool:
    """Return whether a file of this path may belong to a page: its ending says so, and no part of the path is hidden.

    Names of devices of Windows are no files. Every path is checked by this before it is read or written, and again
    without symbolic links (decision 0191).
    """
    parts = path.split("/")
    return path.lower().endswith(extensions) and not any(
        part.startswith(".") or _DEVICE_NAME.match(part) for part in parts
    )


def is_run_by_tools(path: str) -> bool:
    """Return whether a build tool or Node.js runs files of this name on the user's machine (decision 0349)."""
    *folders, name = path.lower().split("/")
    return "node_modules" in folders or _TOOL_SCRIPT.fullmatch(name) is not None


def linked_file_path(tree: HtmlTree, element: Element) -> str | None:
    """Return the path of the local file that a style sheet or script element loads; None if it loads none."""
    if not (is_stylesheet(element) or is_script(element)) or _has_base_address(tree):
        return None
    path = local_path_from_address(link_address(element))
    extensions = SCRIPT_EXTENSIONS if element.tag == "script" else STYLE_EXTENSIONS
    return path if path and is_code_path(path, extensions) else None


def linked_file_paths(tree: HtmlTree) -> list[str]:
    """Return the paths of all local files that the page loads, each once, in document order."""
    elements = (element for element in tree.elements if element.tag in ("link", "script"))
    paths = (linked_file_path(tree, element) for element in elements)
    return list(dict.fromkeys(path for path in paths if path))


def _has_base_address(tree: HtmlTree) -> bool:
    """Return whether a base element resolves relative addresses against another address than the page's."""
    return any(element.tag == "base" and element.attribute_value("href") for element in tree.elements)
