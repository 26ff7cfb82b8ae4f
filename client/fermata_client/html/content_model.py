"""Check and choose the places of elements that browsers drop, move or ignore elsewhere, such as parts of tables."""

from collections.abc import Sequence

from fermata_client.html.edit_error import EditError
from fermata_client.html.tags import ROOT_TAG, name_set
from fermata_client.html.tree import Element, HtmlTree

PARENTS_BY_TABLE_TAG = {
    "caption": name_set("table"),
    "colgroup": name_set("table"),
    "col": name_set("colgroup table"),
    "thead": name_set("table"),
    "tbody": name_set("table"),
    "tfoot": name_set("table"),
    "tr": name_set("table thead tbody tfoot"),
    "td": name_set("tr"),
    "th": name_set("tr"),
}
TABLE_STRUCTURE_TAGS = name_set("table colgroup thead tbody tfoot tr")
"""Elements from which browsers move out whatever has no place there."""
ANYWHERE_TAGS = name_set("script style template")
FREE_PARENT_TAGS = frozenset({"template", ROOT_TAG})
"""Content that is parsed where it is used, not where it is written."""
UNNESTABLE_TAGS = name_set("a button form")
"""Elements that browsers end where another one of the same kind begins, or whose inner one they ignore."""
FIRST_CHILD_TAGS = name_set("caption legend summary")
COLUMN_TAGS = name_set("colgroup col")
SELF_NESTING_TAGS = name_set(
    "div span section article aside blockquote details fieldset figure object template noscript ins del bdi bdo sub "
    "sup small svg g symbol math mrow"
)
"""Elements that may well hold one of their kind, as custom elements may."""


def check_place(parent: Element, tags: Sequence[str], loose_text: str = "") -> None:
    """Raise `EditError` if a browser would drop or move one of these elements, or the text between them."""
    if parent.tag in FREE_PARENT_TAGS:
        return
    if parent.tag in TABLE_STRUCTURE_TAGS and loose_text and "{" not in loose_text:  # a template engine reads braces
        raise EditError(f"Browsers move text out of a <{parent.tag}>. Put it in a cell.")
    for tag in tags:
        parents = PARENTS_BY_TABLE_TAG.get(tag)
        if parents is not None and parent.tag not in parents:
            listed = " or ".join(f"<{name}>" for name in sorted(parents))
            raise EditError(f"A <{tag}> belongs in a {listed}, not in a <{parent.tag}>. Choose another parent.")
        if parent.tag in TABLE_STRUCTURE_TAGS and parents is None and tag not in ANYWHERE_TAGS:
            own = ", ".join(f"<{name}>" for name, allowed in PARENTS_BY_TABLE_TAG.items() if parent.tag in allowed)
            raise EditError(f"Browsers move a <{tag}> out of a <{parent.tag}>, which takes: {own}. Put it in a cell.")


def check_content_only(element: Element, sent: HtmlTree) -> None:
    """Raise `EditError` if new content of an element is the element itself, as a model that rewrites it may send it."""
    children = sent.root.children
    if not children or element.tag in ("html", "body") or any(child.tag != element.tag for child in children):
        return
    is_same = any(_is_marked_alike(element, child) for child in children)
    if is_same or not (element.tag in SELF_NESTING_TAGS or "-" in element.tag):
        raise EditError(
            f"replaceNodeHtml replaces what is inside of the <{element.tag}> {element.uid}. Send only that, without "
            f"the <{element.tag}> itself, whose attributes are set with updateNodeProps and assignClass. For several "
            f"in its place, add them with insertHtml, and remove this one with deleteNode."
        )


def _is_marked_alike(element: Element, other: Element) -> bool:
    """Return whether another element has the uid or the id of this one, or all of its classes."""
    if other.attribute_value("uid") == element.uid:
        return True
    own_id = element.attribute_value("id")
    return bool(own_id and other.attribute_value("id") == own_id) or (
        bool(element.classes) and element.classes == other.classes
    )


def check_nesting(parent: Element, tags: Sequence[str]) -> None:
    """Raise `EditError` if one of these elements, at any depth, would be within one of its kind around `parent`."""
    for outer in (parent, *parent.ancestors()):
        if outer.tag in UNNESTABLE_TAGS and outer.tag in tags:
            raise EditError(
                f"A <{outer.tag}> cannot be within the <{outer.tag}> {outer.uid}: browsers end the outer one there, "
                "and what follows would no longer belong to it. Put them next to each other."
            )


def choose_place(parent: Element, tags: Sequence[str], index: int | None) -> tuple[Element, int | None]:
    """Return the parent and index where these elements take effect.

    Rows of a table go into its last body, and columns into its group. A caption, a heading of rows, and a source of a
    picture go where they count if no index was given; a source always goes before the image.
    """
    if not tags:
        return parent, index
    is_appended = index is None or index >= len(parent.children)
    if is_appended and parent.tag == "table" and (group := _group_for(parent, tags)):
        return group, None
    position = _effective_index(parent, tags[0])
    if position is None or (index is not None and (tags[0] != "source" or index <= position)):
        return parent, index
    return parent, position


def _group_for(table: Element, tags: Sequence[str]) -> Element | None:
    group_tag = {frozenset({"tr"}): "tbody", frozenset({"col"}): "colgroup"}.get(frozenset(tags))
    has_own_rows = any(child.tag == "tr" for child in table.children)
    groups = [child for child in table.children if child.tag == group_tag]
    return groups[-1] if groups and not has_own_rows else None


def _effective_index(parent: Element, tag: str) -> int | None:
    """Return the index at which an element of this tag counts; None if it counts anywhere."""
    child_tags = [child.tag for child in parent.children]
    if tag in FIRST_CHILD_TAGS and tag not in child_tags:
        return 0
    if parent.tag == "picture" and tag == "source" and "img" in child_tags:
        return child_tags.index("img")
    if parent.tag == "table" and (tag in COLUMN_TAGS or tag == "thead"):
        before = {"caption", *COLUMN_TAGS}
        return next((index for index, own in enumerate(child_tags) if own not in before), len(child_tags))
    return None
