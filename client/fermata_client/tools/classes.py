"""`assignClass` and `removeClass`: assign only classes that the page or its style sheets know."""

import re
from difflib import get_close_matches

from fermata_client.css.parser import parse_css
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.attribute_edits import attribute_splices
from fermata_client.html.edit_error import EditError
from fermata_client.html.linked_files import is_stylesheet, link_address
from fermata_client.html.tags import ROOT_TAG
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import ToolArguments, required_text
from fermata_client.tools.tool_function import ToolEffect

MAX_LISTED_CLASSES = 12
MIN_SIMILARITY = 0.5

_CLASS = re.compile(r"\.(-?(?:[A-Za-z_]|[^\x00-\x7f]|\\.)(?:[\w-]|[^\x00-\x7f]|\\.)*)")


def assign_class(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    element, class_name = _read_arguments(document, arguments)
    if class_name in element.classes:
        return document, {"note": f"The node has the class {class_name} already."}
    note = _check_known_class(document, class_name)
    old_value = element.attribute_value("class")
    value = f"{old_value.rstrip()} {class_name}" if old_value and old_value.strip() else class_name
    edited = document.with_splices(attribute_splices(document.source, element, {"class": value}), element)
    return edited, {"note": note} if note else None


def remove_class(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    element, class_name = _read_arguments(document, arguments)
    if class_name not in element.classes:
        own_classes = ", ".join(element.classes) or "none"
        return document, {"note": f"The node does not have the class {class_name}. It has: {own_classes}."}
    remaining = " ".join(name for name in element.classes if name != class_name)
    splices = attribute_splices(document.source, element, {"class": remaining or False})
    return document.with_splices(splices, element), None


def find_known_classes(document: HtmlDocument) -> set[str]:
    """Return the classes that a style sheet has rules for, and those that an element has."""
    used = {name for element in document.tree.elements for name in element.classes}
    return used.union(*(class_names_from_css(document.sheet_source(sheet)) for sheet in document.sheet_elements))


def class_names_from_css(sheet: bytes) -> set[str]:
    rules = [inner for rule in parse_css(sheet) for inner in (rule, *rule.iter_descendants())]
    selectors = [rule.key for rule in rules if not rule.key.startswith("@")]
    return {re.sub(r"\\(.)", r"\1", name) for selector in selectors for name in _CLASS.findall(selector)}


def _read_arguments(document: HtmlDocument, arguments: ToolArguments) -> tuple[Element, str]:
    element = document.find_element(required_text(arguments, "nodeId"))
    class_name = required_text(arguments, "classId").strip().removeprefix(".")
    if element.tag == ROOT_TAG:
        raise EditError("The document itself has no classes. Choose an element in it.")
    if not class_name or class_name.split() != [class_name] or set(class_name) & set("\"'<>=`"):
        raise EditError("`classId` is the name of one class, such as `card`.")
    return element, class_name


def _check_known_class(document: HtmlDocument, class_name: str) -> str:
    """Raise `EditError` for an unknown class.

    Returns:
        A note if the class may come from a style sheet that cannot be read; else an empty text.
    """
    known_classes = sorted(find_known_classes(document))
    if class_name in known_classes:
        return ""
    links = [element for element in document.tree.elements if element.tag == "link" and is_stylesheet(element)]
    if unreadable := [link for link in links if not document.linked_file(link)]:
        address = link_address(unreadable[0])
        return f"No rule for .{class_name} was found; it may come from {address}, which cannot be read here."
    similar = get_close_matches(class_name, known_classes, MAX_LISTED_CLASSES, MIN_SIMILARITY)
    listed = similar or known_classes[:MAX_LISTED_CLASSES]
    sentence = f" There are: {', '.join(listed)}." if listed else ""
    raise EditError(
        f"There is no class {class_name} on this page or in its style sheets.{sentence} "
        "Write its rule with applyCss first."
    )
