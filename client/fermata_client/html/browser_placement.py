"""Check that a browser finds new elements in the parent that they were written into (decision 0220)."""

from collections.abc import Sequence

from selectolax.lexbor import LexborNode

from fermata_client.html.browser_parser import IMPLIED_TABLE_TAGS, FragmentContext, count_elements, parse_page
from fermata_client.html.content_model import FREE_PARENT_TAGS, UNNESTABLE_TAGS
from fermata_client.html.edit_error import EditError
from fermata_client.html.splices import Splice, apply_splices
from fermata_client.html.tree import Element

UNMARKED_PARENT_TAGS = FREE_PARENT_TAGS | {"html"}
"""Elements around which a browser adds or keeps others, such as a body."""

_PARENT_MARK, _CHILD_MARK = "data-fermata-parent", "data-fermata-child"


def check_browser_place(source: bytes, parent: Element, children: Sequence[Element]) -> None:
    """Raise `EditError` if a browser moves one of these children of `parent` elsewhere, or ignores it.

    Content of templates is not judged, because it is parsed where it is used; nor is an element within one of its kind,
    of which the model is told otherwise.
    """
    outer_tags = {parent.tag, *(outer.tag for outer in parent.ancestors())} & UNNESTABLE_TAGS
    judged = [child for child in children if child.tag not in outer_tags]
    if parent.tag in UNMARKED_PARENT_TAGS or not judged:
        return
    marks = [(parent, _PARENT_MARK), *((child, _CHILD_MARK) for child in judged)]
    splices = [Splice(element.name_end, element.name_end, f" {mark}".encode()) for element, mark in marks]
    page = parse_page(apply_splices(source, splices), scripting=False)
    if not page.css(f"[{_PARENT_MARK}]"):
        return
    placed = [node for node in page.css(f"[{_CHILD_MARK}]") if _is_in_marked_parent(node)]
    if len(placed) != len(judged):
        tags = ", ".join(dict.fromkeys(f"<{child.tag}>" for child in judged))
        raise EditError(
            f"A browser does not leave {tags} in this <{parent.tag}>, but moves it elsewhere or ignores it. "
            "Choose another parent, or other elements."
        )


def check_same_namespace(element: Element, parent: Element) -> None:
    """Raise `EditError` if an element would move from a drawing or formula into HTML, or the other way."""
    assert element.parent is not None
    old, new = (FragmentContext.from_element(around).namespace for around in (element.parent, parent))
    if old != new:
        raise EditError(
            f"The <{element.tag}> is {old.upper()} markup, and <{parent.tag}> holds {new.upper()} markup, where it "
            "means something else. Choose another parent, or move the whole drawing or formula."
        )


def check_browser_keeps_all(before: bytes, kept: bytes, after: bytes) -> None:
    """Raise `EditError` if a browser finds an element changed or lost after an edit that only moves or adds elements.

    Args:
        before: the page before the edit.
        kept: the part of it that stays in its place.
        after: the edited page.
    """
    found = count_elements(after)
    if count_elements(kept) - found or found.total() < count_elements(before).total():
        raise EditError(
            "A browser would change other elements with this: one of these cannot be within another of its kind, "
            "such as a link in a link. Choose another parent."
        )


def _is_in_marked_parent(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag in IMPLIED_TABLE_TAGS and _PARENT_MARK not in parent.attributes:
        parent = parent.parent  # one that the browser has added around rows or columns
    return parent is not None and _PARENT_MARK in parent.attributes
