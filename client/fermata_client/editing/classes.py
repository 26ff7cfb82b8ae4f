"""`assignClass` and `removeClass`: only classes that somebody has given a meaning."""

import re
from difflib import get_close_matches
from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.attributes import setting
from fermata_client.html.cannot import CannotDo
from fermata_client.html.css_rules import Rule
from fermata_client.html.css_rules import read as read_css
from fermata_client.html.linking import is_sheet, reference
from fermata_client.html.tree import ROOT, Element
from fermata_client.html_document import HtmlDocument

_CLASS = re.compile(r"\.(-?(?:[A-Za-z_]|[^\x00-\x7f]|\\.)(?:[\w-]|[^\x00-\x7f]|\\.)*)")
LISTED = 12


def assign_class(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    element, name = _asked(document, given)
    if name in element.classes:
        return document, {"note": f"The node has the class {name} already."}
    note = _check_known(document, name)
    old = element.attribute("class")
    new = f"{old.rstrip()} {name}" if old and old.strip() else name
    edited = document.edited(setting(document.source, element, {"class": new}), element)
    return edited, {"note": note} if note else None


def remove_class(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    element, name = _asked(document, given)
    if name not in element.classes:
        has = ", ".join(element.classes) or "none"
        return document, {"note": f"The node does not have the class {name}. It has: {has}."}
    rest = [one for one in element.classes if one != name]
    return document.edited(setting(document.source, element, {"class": " ".join(rest) or False}), element), None


def known_classes(document: HtmlDocument) -> set[str]:
    """Those that a style sheet speaks of, and those that some element has."""
    used = {name for element in document.page.elements for name in element.classes}
    return used.union(*(classes_of(document.sheet(sheet)) for sheet in document.sheets))


def classes_of(sheet: bytes) -> set[str]:
    return {re.sub(r"\\(.)", r"\1", name) for key in _keys(read_css(sheet)) for name in _CLASS.findall(key)}


def _keys(rules: list[Rule]) -> list[str]:
    every = [inner for rule in rules for inner in (rule, *rule.everything())]
    return [rule.key for rule in every if not rule.key.startswith("@")]


def _asked(document: HtmlDocument, given: Given) -> tuple[Element, str]:
    element = document.element(read.text(given, "nodeId"))
    name = read.text(given, "classId").strip().removeprefix(".")
    if element.tag == ROOT:
        raise CannotDo("The document itself has no classes. Choose an element in it.")
    if not name or name.split() != [name] or set(name) & set("\"'<>=`"):
        raise CannotDo("`classId` is the name of one class, such as `card`.")
    return element, name


def _check_known(document: HtmlDocument, name: str) -> str:
    """A note when the class may come from a sheet that we cannot read."""
    known = known_classes(document)
    if name in known:
        return ""
    unread = [
        sheet
        for sheet in document.page.elements
        if is_sheet(sheet) and sheet.tag == "link" and not document.file_of(sheet)
    ]
    if unread:
        return f"No rule for .{name} was found; it may come from {reference(unread[0])}, which cannot be read here."
    near = get_close_matches(name, sorted(known), LISTED, 0.5) or sorted(known)[:LISTED]
    listed = f" There are: {', '.join(near)}." if near else ""
    raise CannotDo(
        f"There is no class {name} on this page or in its style sheets.{listed} Write its rule with applyCss first."
    )
