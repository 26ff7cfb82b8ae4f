"""`moveNode` and `duplicateNode`: what is there already, at another place or once more."""

import re
from collections.abc import Iterator
from typing import Any

from fermata_client.document.html_document import FIXED_TAGS, HtmlDocument
from fermata_client.document.node_ids import CarriedIds
from fermata_client.html.errors import EditError
from fermata_client.html.fragment import close_elements, fragment_from_page
from fermata_client.html.indentation import indent_at, is_at_line_start
from fermata_client.html.insertion import (
    insertion_splice,
    leading_comment_start,
    removal_splice,
    sibling_gap,
    trailing_comment_end,
)
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tags import HEAD_TAGS, ROOT_TAG, name_set
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import ToolArguments, optional_integer, required_text

MAX_COPIES = 50
UNCOPYABLE_TAGS = HEAD_TAGS - {"template", "noscript"}
ID_REFERENCE_ATTRIBUTES = name_set(
    "for form list headers aria-labelledby aria-describedby aria-controls aria-owns aria-details aria-activedescendant "
    "popovertarget"
)
"""Attributes whose value is one or more ids."""


def move_node(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    element = _movable(document, required_text(given, "nodeId"), "moved")
    parent = document.find_container(required_text(given, "newParentId"))
    _refuse_cycle(element, parent)
    index = optional_integer(given, "newIndex")
    others = [child for child in parent.children if child is not element]
    if index is None or index > len(others):
        inside = f"besides this node there are {len(others)} elements in it"
        raise EditError(
            f"`newIndex` is the place in <{parent.tag}>: {inside}, so it is a number from 0 to {len(others)}."
        )
    if element.parent is parent and parent.children.index(element) == index:
        return document, {"note": "The node stands there already."}
    return _moved(document, element, parent.uid, index), None


def _moved(document: HtmlDocument, element: Element, parent_id: str, index: int) -> HtmlDocument:
    """First taken out, then put in; a comment in front of the node or at the end of its line goes with it."""
    source = document.source
    start, end = leading_comment_start(source, element), trailing_comment_end(source, element.end)
    uids = tuple(one.uid for one in document.tree.elements if element.start <= one.start < element.end)
    payload = fragment_from_page(source, start, end, sibling_gap(source, document.find_element(parent_id)))
    taken = document.with_splices([removal_splice(source, element, start, end)], element)
    parent = taken.find_element(parent_id)
    put = insertion_splice(taken.source, parent, index if index < len(parent.children) else None, payload)
    placed = taken.with_splices([put], parent, carried=CarriedIds(put, uids))
    if placed.find_element(element.uid).parent is not placed.find_element(parent_id):
        raise EditError(
            f"A <{element.tag}> cannot stand at this place in <{parent.tag}>. Choose another parent or index."
        )
    return placed


def _refuse_cycle(element: Element, parent: Element) -> None:
    if parent is element or any(above is element for above in parent.ancestors()):
        raise EditError(f"{parent.uid} is {element.uid} or lies in it: a node cannot be moved into itself.")


def _movable(document: HtmlDocument, uid: str, done: str) -> Element:
    element = document.find_element(uid)
    if element.tag in FIXED_TAGS or element.tag == ROOT_TAG:
        raise EditError(f"The {element.tag} of a page cannot be {done}. Choose a node in it.")
    return element


def duplicate_node(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    element = _movable(document, required_text(given, "nodeId"), "duplicated")
    count = optional_integer(given, "count", 1, MAX_COPIES) or 1
    if element.tag in UNCOPYABLE_TAGS:
        raise EditError(f"A <{element.tag}> is there once; a copy of it would do nothing good.")
    assert element.parent is not None
    copies, renamed = _copies(document, element, count)
    splice = _behind(document.source, element, copies)
    edited = document.with_splices([splice], element.parent, element)
    made = [
        child
        for child in edited.elements_created_since(document)
        if child.parent is edited.find_element(element.parent.uid)
    ]
    if len(made) != count:
        raise EditError(f"This <{element.tag}> has no end of its own, so a copy would fall into it. Mend it by hand.")
    uids = [child.uid for child in made]
    data: dict[str, Any] = {"nodeId": uids[0], "nodeIds": uids}
    if renamed:
        data["note"] = f"An id stands once on a page, so the copies have others: {', '.join(renamed)}."
    return edited, data


def _behind(source: bytes, element: Element, copies: list[bytes]) -> Splice:
    assert element.parent is not None
    if is_at_line_start(source, element.start):
        at, lead = trailing_comment_end(source, element.end), sibling_gap(source, element.parent)
        lead += indent_at(source, element.start)
    else:
        at, lead = element.end, b" " if source[element.end : element.end + 1] in (b" ", b"\n", b"\r") else b""
    return Splice(at, at, b"".join(lead + copy for copy in copies))


def _copies(document: HtmlDocument, element: Element, count: int) -> tuple[list[bytes], list[str]]:
    """The markup of each copy with ids of its own, and those ids."""
    markup = close_elements(document.source[element.start : element.end])
    taken = {found for one in document.tree.elements if (found := one.attribute_value("id"))}
    ids = [found for one in parse_html(markup).elements if (found := one.attribute_value("id"))]
    copies: list[bytes] = []
    renamed: list[str] = []
    for _ in range(count):
        fresh = {old: _free(old, taken) for old in dict.fromkeys(ids)}
        taken |= set(fresh.values())
        renamed += fresh.values()
        copies.append(apply_splices(markup, list(_renaming(markup, fresh))))
    return copies, renamed


def _free(old: str, taken: set[str]) -> str:
    base = re.sub(r"-\d+$", "", old)
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def _renaming(markup: bytes, fresh: dict[str, str]) -> Iterator[Splice]:
    """The ids, and what refers to them from within the copy."""
    if not fresh:
        return
    for attribute in (attribute for element in parse_html(markup).elements for attribute in element.attributes):
        if attribute.name == "id" or attribute.name in ID_REFERENCE_ATTRIBUTES:
            new = re.sub(r"\S+", lambda found: fresh.get(found[0], found[0]), attribute.value)
        else:
            new = re.sub(
                r"^#(.+)$|url\(#([^)]+)\)",
                lambda found: found[0].replace(word := found[1] or found[2], fresh.get(word, word)),
                attribute.value,
            )
        if new != attribute.value:
            written = markup[attribute.start : attribute.end].decode()
            at = written.rindex(attribute.value)
            yield Splice(
                attribute.start, attribute.end, (written[:at] + new + written[at + len(attribute.value) :]).encode()
            )
