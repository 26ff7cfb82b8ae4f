"""`assignClass` and `removeClass`: only classes that somebody has given a meaning."""

import re
from difflib import get_close_matches
from typing import Any

from fermata_client.css.parser import CssRule
from fermata_client.css.parser import parse_css as read_css
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.attributes import attribute_splices
from fermata_client.html.errors import EditError
from fermata_client.html.linked_files import is_stylesheet, link_address
from fermata_client.html.tags import ROOT_TAG
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import ToolArguments, required_text

_CLASS = re.compile(r"\.(-?(?:[A-Za-z_]|[^\x00-\x7f]|\\.)(?:[\w-]|[^\x00-\x7f]|\\.)*)")
MAX_LISTED_CLASSES = 12


def assign_class(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    element, name = _asked(document, given)
    if name in element.classes:
        return document, {"note": f"The node has the class {name} already."}
    note = _check_known(document, name)
    old = element.attribute_value("class")
    new = f"{old.rstrip()} {name}" if old and old.strip() else name
    edited = document.with_splices(attribute_splices(document.source, element, {"class": new}), element)
    return edited, {"note": note} if note else None


def remove_class(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    element, name = _asked(document, given)
    if name not in element.classes:
        has = ", ".join(element.classes) or "none"
        return document, {"note": f"The node does not have the class {name}. It has: {has}."}
    rest = [one for one in element.classes if one != name]
    return document.with_splices(
        attribute_splices(document.source, element, {"class": " ".join(rest) or False}), element
    ), None


def find_known_classes(document: HtmlDocument) -> set[str]:
    """Those that a style sheet speaks of, and those that some element has."""
    used = {name for element in document.tree.elements for name in element.classes}
    return used.union(*(class_names_from_css(document.sheet_source(sheet)) for sheet in document.sheet_elements))


def class_names_from_css(sheet: bytes) -> set[str]:
    return {re.sub(r"\\(.)", r"\1", name) for key in _keys(read_css(sheet)) for name in _CLASS.findall(key)}


def _keys(rules: list[CssRule]) -> list[str]:
    every = [inner for rule in rules for inner in (rule, *rule.iter_descendants())]
    return [rule.key for rule in every if not rule.key.startswith("@")]


def _asked(document: HtmlDocument, given: ToolArguments) -> tuple[Element, str]:
    element = document.find_element(required_text(given, "nodeId"))
    name = required_text(given, "classId").strip().removeprefix(".")
    if element.tag == ROOT_TAG:
        raise EditError("The document itself has no classes. Choose an element in it.")
    if not name or name.split() != [name] or set(name) & set("\"'<>=`"):
        raise EditError("`classId` is the name of one class, such as `card`.")
    return element, name


def _check_known(document: HtmlDocument, name: str) -> str:
    """A note when the class may come from a sheet that we cannot read."""
    known = find_known_classes(document)
    if name in known:
        return ""
    unread = [
        sheet
        for sheet in document.tree.elements
        if is_stylesheet(sheet) and sheet.tag == "link" and not document.linked_file(sheet)
    ]
    if unread:
        return f"No rule for .{name} was found; it may come from {link_address(unread[0])}, which cannot be read here."
    near = get_close_matches(name, sorted(known), MAX_LISTED_CLASSES, 0.5) or sorted(known)[:MAX_LISTED_CLASSES]
    listed = f" There are: {', '.join(near)}." if near else ""
    raise EditError(
        f"There is no class {name} on this page or in its style sheets.{listed} Write its rule with applyCss first."
    )
