"""What an edit left pointing at something that is gone: links to a part of the page, and references by id."""

from html import unescape
from urllib.parse import unquote

from fermata_client.html.tree import Element, HtmlTree
from fermata_client.tools.node_structure import ID_REFERENCE_ATTRIBUTES

MAX_LISTED_LINKS = 8


def describe_broken_links(before: HtmlTree, after: HtmlTree) -> str:
    """A sentence that names them with their uids; nothing when every link leads where it led."""
    gone = _anchors(before) - _anchors(after) - {"", "top"}
    lost = [(one, f"{how}{target}") for one in after.elements for how, target in _pointed_at(one) if target in gone]
    if not lost:
        return ""
    listed = ", ".join(f"{where} from the <{one.tag}> {one.uid}" for one, where in lost[:MAX_LISTED_LINKS])
    more = f" and {len(lost) - MAX_LISTED_LINKS} more" if len(lost) > MAX_LISTED_LINKS else ""
    return f"These now lead nowhere: {listed}{more}. Point them elsewhere with updateNodeProps, or delete them."


def _anchors(page: HtmlTree) -> set[str]:
    named = [one.attribute_value("name") for one in page.elements if one.tag == "a"]
    return {unescape(name) for name in (*named, *(one.attribute_value("id") for one in page.elements)) if name}


def _pointed_at(element: Element) -> list[tuple[str, str]]:
    """How it is written in front of the name, and the name."""
    found = []
    for attribute in element.attributes:
        value = unescape(attribute.value).strip()
        if attribute.name in ("href", "xlink:href") and value.startswith("#"):
            found.append(("#", unquote(value[1:])))
        elif attribute.name in ID_REFERENCE_ATTRIBUTES:
            found += [(f"{attribute.name}=", name) for name in value.split()]
    return found
