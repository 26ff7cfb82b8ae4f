"""Which element of an edited page is which element of the page before: ids are handed on by position."""

from collections.abc import Sequence
from dataclasses import dataclass

from fermata_client.html.browser_parser import find_unfinished_tag
from fermata_client.html.errors import EditError
from fermata_client.html.parser import parse_html
from fermata_client.html.splices import Splice
from fermata_client.html.tree import Element, HtmlTree


@dataclass(frozen=True)
class CarriedIds:
    """The elements that `splice` brings were in the page before: their ids, in document order."""

    splice: Splice
    uids: tuple[str, ...]


def transfer_ids(
    old: HtmlTree,
    old_source: bytes,
    source: bytes,
    splices: list[Splice],
    next_id: int,
    edited: Sequence[Element] | None,
    carried: CarriedIds | None,
) -> tuple[HtmlTree, int]:
    """The new page with ids, and the next free number. Refused when an element outside of `edited` would change its
    place or its end; without `edited`, such an element is a new one.
    """
    around = {above.uid for element in edited or () for above in (element, *element.ancestors())}
    page = parse_html(source)
    page.root.uid = old.root.uid
    found = {element.start: element for element in page.elements}
    for element in old.elements:
        if _within(element.start, splices):
            continue
        new = found.get(_moved(element.start, splices))
        if new is not None and (edited is None or _same_place(element, new, splices, around)):
            new.uid = element.uid if new.tag == element.tag else ""
        elif edited is not None:
            raise EditError(_broken(element, old_source))
    if carried:
        _carry(page, carried, splices)
    fresh = [element for element in page.elements if not element.uid]
    for number, element in enumerate(fresh, next_id):
        element.uid = f"n{number}"
    return page, next_id + len(fresh)


def _broken(element: Element, source: bytes) -> str:
    begun = find_unfinished_tag(source)
    advice = (
        f"The page has a tag {begun} that is not closed with >: mend that first"
        if begun
        else ("Check that every tag in what you send is closed")
    )
    return f"This would break the <{element.tag}> with uid {element.uid}. {advice}."


def _carry(page: HtmlTree, carried: CarriedIds, splices: list[Splice]) -> None:
    begin = _moved(carried.splice.start, [splice for splice in splices if splice is not carried.splice])
    end = begin + len(carried.splice.text)
    brought = [element for element in page.elements if begin <= element.start < end]
    if len(brought) != len(carried.uids):
        raise EditError("The node cannot stand at this place. Choose another parent or index.")
    for element, uid in zip(brought, carried.uids, strict=True):
        element.uid = uid


def _within(at: int, splices: list[Splice]) -> bool:
    return any(splice.start <= at < splice.end for splice in splices)


def _moved(at: int, splices: list[Splice], *, is_end: bool = False) -> int:
    """Where a position outside of the splices is after them."""
    before = [s for s in splices if s.end < at or (s.end == at and not (is_end and s.start == s.end))]
    return at + sum(len(s.text) - (s.end - s.start) for s in before)


def _same_place(old: Element, new: Element, splices: list[Splice], around: set[str]) -> bool:
    if old.tag != new.tag or (old.parent is None) != (new.parent is None):
        return False
    if old.parent is not None and new.parent is not None and old.parent.uid != new.parent.uid:
        return False
    if old.uid in around and not old.has_end_tag:
        return True  # it ends where its content ends, and that is what was changed
    return old.has_end_tag == new.has_end_tag and new.end == _moved(old.end, splices, is_end=True)
