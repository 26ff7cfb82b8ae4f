"""Find links and references by id whose target an edit removed."""

from html import unescape
from urllib.parse import unquote

from fermata_client.html.tags import name_set
from fermata_client.html.tree import Element, HtmlTree

ID_REFERENCE_ATTRIBUTES = name_set(
    "for form list headers aria-labelledby aria-describedby aria-controls aria-owns aria-details aria-activedescendant "
    "popovertarget"
)
"""Attributes whose value is one or more ids."""
MAX_LISTED_LINKS = 8


def describe_broken_links(before: HtmlTree, after: HtmlTree) -> str:
    """Return a sentence with the links of `after` that only `before` had a target for; empty if there are none."""
    removed = _anchor_names(before) - _anchor_names(after) - {"", "top"}
    broken = [
        f"{prefix}{name} from the <{element.tag}> {element.uid}"
        for element in after.elements
        for prefix, name in _references(element)
        if name in removed
    ]
    if not broken:
        return ""
    listed = ", ".join(broken[:MAX_LISTED_LINKS])
    suffix = f" and {len(broken) - MAX_LISTED_LINKS} more" if len(broken) > MAX_LISTED_LINKS else ""
    return (
        f"These links have no target now: {listed}{suffix}. Point them elsewhere with updateNodeProps, or delete them."
    )


def _anchor_names(tree: HtmlTree) -> set[str]:
    ids = [element.attribute_value("id") for element in tree.elements]
    names = [element.attribute_value("name") for element in tree.elements if element.tag == "a"]
    return {unescape(name) for name in (*names, *ids) if name}


def _references(element: Element) -> list[tuple[str, str]]:
    """Return the names that an element refers to, each after the text to show in front of it."""
    references: list[tuple[str, str]] = []
    for attribute in element.attributes:
        value = unescape(attribute.value).strip()
        if attribute.name in ("href", "xlink:href") and value.startswith("#"):
            references.append(("#", unquote(value[1:])))
        elif attribute.name in ID_REFERENCE_ATTRIBUTES:
            references += [(f"{attribute.name}=", name) for name in value.split()]
    return references
