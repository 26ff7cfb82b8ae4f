"""`moveNode` and `duplicateNode`: what is there already, at another place or once more."""

import re
from collections.abc import Iterator
from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.cannot import CannotDo
from fermata_client.html.layout import Splice, indent_at, spliced, starts_line
from fermata_client.html.payload import closed, own
from fermata_client.html.placing import gap_between, insertion, own_comment, same_line_comment, taken_out
from fermata_client.html.tree import HEAD_ONLY, ROOT, Element, names, parse
from fermata_client.html.uids import Carried
from fermata_client.html_document import FIXED, HtmlDocument

MOST_COPIES = 50
ONCE = HEAD_ONLY - {"template", "noscript"}
REFERENCES = names(
    "for form list headers aria-labelledby aria-describedby aria-controls aria-owns aria-details aria-activedescendant "
    "popovertarget"
)
"""Attributes whose value is one or more ids."""


def move_node(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    element = _movable(document, read.text(given, "nodeId"), "moved")
    parent = document.container(read.text(given, "newParentId"))
    _refuse_cycle(element, parent)
    index = read.whole(given, "newIndex")
    others = [child for child in parent.children if child is not element]
    if index is None or index > len(others):
        inside = f"besides this node there are {len(others)} elements in it"
        raise CannotDo(
            f"`newIndex` is the place in <{parent.tag}>: {inside}, so it is a number from 0 to {len(others)}."
        )
    if element.parent is parent and parent.children.index(element) == index:
        return document, {"note": "The node stands there already."}
    return _moved(document, element, parent.uid, index), None


def _moved(document: HtmlDocument, element: Element, parent_id: str, index: int) -> HtmlDocument:
    """First taken out, then put in; a comment in front of the node or at the end of its line goes with it."""
    source = document.source
    start, end = own_comment(source, element), same_line_comment(source, element.end)
    uids = tuple(one.uid for one in document.page.elements if element.start <= one.start < element.end)
    payload = own(source, start, end, gap_between(source, document.element(parent_id)))
    taken = document.edited([taken_out(source, element, start, end)], element)
    parent = taken.element(parent_id)
    put = insertion(taken.source, parent, index if index < len(parent.children) else None, payload)
    placed = taken.edited([put], parent, carried=Carried(put, uids))
    if placed.element(element.uid).parent is not placed.element(parent_id):
        raise CannotDo(
            f"A <{element.tag}> cannot stand at this place in <{parent.tag}>. Choose another parent or index."
        )
    return placed


def _refuse_cycle(element: Element, parent: Element) -> None:
    if parent is element or any(above is element for above in parent.ancestors()):
        raise CannotDo(f"{parent.uid} is {element.uid} or lies in it: a node cannot be moved into itself.")


def _movable(document: HtmlDocument, uid: str, done: str) -> Element:
    element = document.element(uid)
    if element.tag in FIXED or element.tag == ROOT:
        raise CannotDo(f"The {element.tag} of a page cannot be {done}. Choose a node in it.")
    return element


def duplicate_node(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    element = _movable(document, read.text(given, "nodeId"), "duplicated")
    count = read.whole(given, "count", 1, MOST_COPIES) or 1
    if element.tag in ONCE:
        raise CannotDo(f"A <{element.tag}> is there once; a copy of it would do nothing good.")
    assert element.parent is not None
    copies, renamed = _copies(document, element, count)
    splice = _behind(document.source, element, copies)
    edited = document.edited([splice], element.parent, element)
    made = [child for child in edited.created_since(document) if child.parent is edited.element(element.parent.uid)]
    if len(made) != count:
        raise CannotDo(f"This <{element.tag}> has no end of its own, so a copy would fall into it. Mend it by hand.")
    uids = [child.uid for child in made]
    data: dict[str, Any] = {"nodeId": uids[0], "nodeIds": uids}
    if renamed:
        data["note"] = f"An id stands once on a page, so the copies have others: {', '.join(renamed)}."
    return edited, data


def _behind(source: bytes, element: Element, copies: list[bytes]) -> Splice:
    assert element.parent is not None
    if starts_line(source, element.start):
        at, lead = same_line_comment(source, element.end), gap_between(source, element.parent)
        lead += indent_at(source, element.start)
    else:
        at, lead = element.end, b" " if source[element.end : element.end + 1] in (b" ", b"\n", b"\r") else b""
    return Splice(at, at, b"".join(lead + copy for copy in copies))


def _copies(document: HtmlDocument, element: Element, count: int) -> tuple[list[bytes], list[str]]:
    """The markup of each copy with ids of its own, and those ids."""
    markup = closed(document.source[element.start : element.end])
    taken = {found for one in document.page.elements if (found := one.attribute("id"))}
    ids = [found for one in parse(markup).elements if (found := one.attribute("id"))]
    copies: list[bytes] = []
    renamed: list[str] = []
    for _ in range(count):
        fresh = {old: _free(old, taken) for old in dict.fromkeys(ids)}
        taken |= set(fresh.values())
        renamed += fresh.values()
        copies.append(spliced(markup, list(_renaming(markup, fresh))))
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
    for attribute in (attribute for element in parse(markup).elements for attribute in element.attributes):
        if attribute.name == "id" or attribute.name in REFERENCES:
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
