"""Transfer the ids of a page's elements to the edited page, by position."""

from collections.abc import Sequence
from dataclasses import dataclass

from fermata_client.html.browser_parser import find_unfinished_tag
from fermata_client.html.edit_error import EditError
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice
from fermata_client.html.tags import HEAD_TAGS
from fermata_client.html.tree import Element, HtmlTree


@dataclass(frozen=True)
class CarriedIds:
    """Ids of elements that an edit moves: the elements in the text of `splice`, in document order."""

    splice: Splice
    uids: tuple[str, ...]


def transfer_ids(
    old_tree: HtmlTree,
    old_source: bytes,
    source: bytes,
    splices: Sequence[Splice],
    next_id: int,
    edited: Sequence[Element] | None,
    carried: CarriedIds | None,
) -> tuple[HtmlTree, int]:
    """Parse the edited page and give its elements ids.

    Args:
        splices: the edits that made `source` of `old_source`.
        next_id: the first number for the ids of new elements.
        edited: the elements that the splices are in. None accepts any change; an element that changed its place is a
            new one then.
        carried: ids of moved elements.

    Returns:
        The tree, and the next free number.

    Raises:
        EditError: an element outside of `edited` would change its place or its end, because markup is not closed.
    """
    tree = parse_html(source)
    tree.root.uid = old_tree.root.uid
    _keep_old_ids(tree, old_tree, old_source, splices, edited)
    if carried:
        _assign_carried_ids(tree, carried, splices)
    created = [element for element in tree.elements if not element.uid]
    for number, element in enumerate(created, next_id):
        element.uid = f"n{number}"
    return tree, next_id + len(created)


def _keep_old_ids(
    tree: HtmlTree,
    old_tree: HtmlTree,
    old_source: bytes,
    splices: Sequence[Splice],
    edited: Sequence[Element] | None,
) -> None:
    """Give the elements that no splice replaces the ids they had. Raises as `transfer_ids`."""
    enclosing = {outer.uid for element in edited or () for outer in (element, *element.ancestors())}
    new_by_start = {element.start: element for element in tree.elements}
    for old in old_tree.elements:
        if _is_replaced(old.start, splices):
            continue
        new = new_by_start.get(_position_after(old.start, splices))
        if new is not None and (edited is None or _has_same_place(old, new, splices, enclosing)):
            new.uid = old.uid if new.tag == old.tag else ""
        elif edited is not None:
            raise EditError(_describe_broken_element(old, old_source))


def _describe_broken_element(element: Element, source: bytes) -> str:
    unfinished_tag = find_unfinished_tag(source)
    broken = f"This would break the <{element.tag}> with uid {element.uid}."
    if element.tag == "head" and not unfinished_tag:
        return f"{broken} Only {', '.join(sorted(HEAD_TAGS))} go into it. Put what is shown into the <body>."
    advice = (
        f"The page has a tag {unfinished_tag} that is not closed with >: close it first"
        if unfinished_tag
        else "Check that every tag in what you send is closed, and that no block goes into a paragraph"
    )
    return f"{broken} {advice}."


def _assign_carried_ids(tree: HtmlTree, carried: CarriedIds, splices: Sequence[Splice]) -> None:
    other_splices = [splice for splice in splices if splice is not carried.splice]
    start = _position_after(carried.splice.start, other_splices)
    end = start + len(carried.splice.text)
    moved = [element for element in tree.elements if start <= element.start < end]
    if len(moved) != len(carried.uids):
        raise EditError("The node is not allowed at this place. Choose another parent or index.")
    for element, uid in zip(moved, carried.uids, strict=True):
        element.uid = uid


def _is_replaced(position: int, splices: Sequence[Splice]) -> bool:
    return any(splice.start <= position < splice.end for splice in splices)


def _position_after(position: int, splices: Sequence[Splice], *, is_end: bool = False) -> int:
    """Return where a position that no splice replaces is after the splices.

    Args:
        is_end: the position is an element's end, so that an insertion there comes after it.
    """
    earlier = [
        splice
        for splice in splices
        if splice.end < position or (splice.end == position and not (is_end and splice.start == splice.end))
    ]
    return position + sum(len(splice.text) - (splice.end - splice.start) for splice in earlier)


def _has_same_place(old: Element, new: Element, splices: Sequence[Splice], enclosing: set[str]) -> bool:
    if old.tag != new.tag or (old.parent is None) != (new.parent is None):
        return False
    if old.parent is not None and new.parent is not None and old.parent.uid != new.parent.uid:
        return False
    if old.uid in enclosing and not old.has_end_tag:
        return True  # it ends where its content ends, which the edit changes
    return old.has_end_tag == new.has_end_tag and new.end == _position_after(old.end, splices, is_end=True)
