"""`moveNode` and `duplicateNode`: move an element, or copy it with ids of its own."""

import re
from collections.abc import Iterator

from fermata_client.css.preformatted_selectors import find_preformatted_selectors
from fermata_client.document.html_document import FIXED_TAGS, HtmlDocument
from fermata_client.document.transfer_ids import CarriedIds
from fermata_client.html.broken_links import ID_REFERENCE_ATTRIBUTES
from fermata_client.html.browser_parser import FragmentContext
from fermata_client.html.browser_placement import check_browser_keeps_all, check_browser_place, check_same_namespace
from fermata_client.html.content_model import check_nesting, check_place
from fermata_client.html.edit_error import EditError
from fermata_client.html.fragment import close_elements, fragment_from_page, is_within_preformatted
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
from fermata_client.html.tags import HEAD_TAGS, ROOT_TAG
from fermata_client.html.tree import Attribute, Element
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import ToolArguments, optional_integer, required_text
from fermata_client.tools.tool_function import ToolEffect, ToolEffectWithData

MAX_COPIES = 50
UNCOPYABLE_TAGS = HEAD_TAGS - {"template", "noscript"}

_LOCAL_REFERENCE = re.compile(r"^#(.+)$|url\(#([^()]+)\)")
_ID_NUMBER = re.compile(r"-\d+$")


def move_node(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    element = _find_movable(document, required_text(arguments, "nodeId"), "moved")
    parent = document.find_container(required_text(arguments, "newParentId"))
    _check_no_cycle(element, parent)
    check_place(parent, [element.tag])
    check_same_namespace(element, parent)
    check_nesting(parent, [inner.tag for inner in document.tree.elements if element.start <= inner.start < element.end])
    index = optional_integer(arguments, "newIndex")
    sibling_count = sum(child is not element for child in parent.children)
    if index is None or index > sibling_count:
        siblings = f"besides this node there are {sibling_count} elements in it"
        raise EditError(
            f"`newIndex` is the place in <{parent.tag}>: {siblings}, so it is a number from 0 to {sibling_count}."
        )
    if element.parent is parent and parent.children.index(element) == index:
        return document, {"note": "The node is there already."}
    return _move_element(document, element, parent.uid, index), None


def _move_element(document: HtmlDocument, element: Element, parent_id: str, index: int) -> HtmlDocument:
    """Remove an element and insert it elsewhere, with a comment on the line before it or after it on its line."""
    source = document.source
    start, end = leading_comment_start(source, element), trailing_comment_end(source, element.end)
    uids = tuple(inner.uid for inner in document.tree.elements if element.start <= inner.start < element.end)
    gap = sibling_gap(source, document.find_element(parent_id))
    sheets = (document.sheet_source(sheet) for sheet in document.sheet_elements)
    fragment = fragment_from_page(
        source, start, end, gap, find_preformatted_selectors(sheets), is_foreign=_is_within_foreign(element)
    )
    removed = document.with_splices([removal_splice(source, element, start, end)], element)
    parent = removed.find_element(parent_id)
    child_index = index if index < len(parent.children) else None
    splice = insertion_splice(removed.source, parent, child_index, fragment)
    moved = removed.with_splices([splice], parent, carried=CarriedIds(splice, uids))
    _check_place(moved, element.uid, parent_id)
    check_browser_keeps_all(source, removed.source, moved.source)
    return moved


def _check_place(moved: HtmlDocument, uid: str, parent_id: str) -> None:
    element, parent = moved.find_element(uid), moved.find_element(parent_id)
    if element.parent is not parent:
        raise EditError(
            f"A <{element.tag}> is not allowed at this place in <{parent.tag}>. Choose another parent or index."
        )
    check_browser_place(moved.source, parent, [element])


def _is_within_foreign(element: Element) -> bool:
    return element.parent is not None and FragmentContext.from_element(element.parent).is_foreign


def _check_no_cycle(element: Element, parent: Element) -> None:
    if parent is element or any(ancestor is element for ancestor in parent.ancestors()):
        raise EditError(f"{parent.uid} is {element.uid} or is inside it: a node cannot be moved into itself.")


def _find_movable(document: HtmlDocument, uid: str, participle: str) -> Element:
    element = document.find_element(uid)
    if element.tag in FIXED_TAGS or element.tag == ROOT_TAG:
        raise EditError(f"The {element.tag} of a page cannot be {participle}. Choose a node in it.")
    return element


def duplicate_node(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    element = _find_movable(document, required_text(arguments, "nodeId"), "duplicated")
    count = optional_integer(arguments, "count", 1, MAX_COPIES) or 1
    if element.tag in UNCOPYABLE_TAGS:
        raise EditError(f"A <{element.tag}> may occur only once on a page, so it is not copied.")
    assert element.parent is not None
    copies, new_ids = _make_copies(document, element, count)
    edited = document.with_splices([_copies_splice(document.source, element, copies)], element.parent, element)
    parent = edited.find_element(element.parent.uid)
    created = [child for child in edited.elements_created_since(document) if child.parent is parent]
    if len(created) != count:
        raise EditError(
            f"This <{element.tag}> has no end tag, so a copy would become part of it. Add the end tag by hand."
        )
    check_browser_place(edited.source, parent, created)
    check_browser_keeps_all(document.source, document.source, edited.source)
    uids = [child.uid for child in created]
    data: JsonObject = {"nodeId": uids[0], "nodeIds": uids}
    if new_ids:
        data["note"] = f"An id occurs only once on a page, so the copies have others: {', '.join(new_ids)}."
    return edited, data


def _copies_splice(source: bytes, element: Element, copies: list[bytes]) -> Splice:
    """Insert copies after the element: on lines of their own, or on its line."""
    assert element.parent is not None
    if is_within_preformatted(element.parent):
        return Splice(element.end, element.end, b"".join(copies))
    if is_at_line_start(source, element.start):
        position = trailing_comment_end(source, element.end)
        gap = sibling_gap(source, element.parent) + indent_at(source, element.start)
    else:
        position = element.end
        gap = b" " if source[element.end : element.end + 1] in (b" ", b"\n", b"\r") else b""
    return Splice(position, position, b"".join(gap + copy for copy in copies))


def _make_copies(document: HtmlDocument, element: Element, count: int) -> tuple[list[bytes], list[str]]:
    """Return the markup of each copy, and the new ids in them."""
    is_foreign = _is_within_foreign(element)
    markup = close_elements(document.source[element.start : element.end], is_foreign=is_foreign)
    used_ids = {own_id for other in document.tree.elements if (own_id := other.attribute_value("id"))}
    copied_ids = [own_id for inner in parse_html(markup).elements if (own_id := inner.attribute_value("id"))]
    copies: list[bytes] = []
    new_ids: list[str] = []
    free_ids = _FreeIds(used_ids)
    for _ in range(count):
        new_id_by_old = {old_id: free_ids.take(old_id) for old_id in dict.fromkeys(copied_ids)}
        new_ids += new_id_by_old.values()
        copies.append(apply_splices(markup, _rename_ids(markup, new_id_by_old)))
    return copies, new_ids


class _FreeIds:
    """Hand out ids with the lowest free number at their end. No number is tried twice (decision 0234)."""

    def __init__(self, used_ids: set[str]) -> None:
        self._used = set(used_ids)
        self._next_number: dict[str, int] = {}

    def take(self, old_id: str) -> str:
        base = _ID_NUMBER.sub("", old_id)
        number = self._next_number.get(base, 2)
        while f"{base}-{number}" in self._used:
            number += 1
        self._next_number[base] = number + 1
        new_id = f"{base}-{number}"
        self._used.add(new_id)
        return new_id


def _rename_ids(markup: bytes, new_id_by_old: dict[str, str]) -> Iterator[Splice]:
    """Yield the splices that rename ids, and the references to them within the markup."""
    if not new_id_by_old:
        return
    for element in parse_html(markup).elements:
        for attribute in element.attributes:
            value = _renamed_value(attribute, new_id_by_old)
            if value != attribute.value:
                written = markup[attribute.start : attribute.end].decode()
                before, _, after = written.rpartition(attribute.value)
                yield Splice(attribute.start, attribute.end, (before + value + after).encode())


def _renamed_value(attribute: Attribute, new_id_by_old: dict[str, str]) -> str:
    if attribute.name == "id" or attribute.name in ID_REFERENCE_ATTRIBUTES:
        return re.sub(r"\S+", lambda match: new_id_by_old.get(match[0], match[0]), attribute.value)

    def rename_reference(match: re.Match[str]) -> str:
        old_id = match[1] or match[2]
        return match[0].replace(old_id, new_id_by_old.get(old_id, old_id))

    return _LOCAL_REFERENCE.sub(rename_reference, attribute.value)
