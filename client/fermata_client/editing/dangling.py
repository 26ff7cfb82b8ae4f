"""What an edit left pointing at something that is gone: links to a part of the page, and references by id."""

from html import unescape
from urllib.parse import unquote

from fermata_client.editing.structure import REFERENCES
from fermata_client.html.tree import Element, Page

LISTED = 8


def lost_links(before: Page, after: Page) -> str:
    """A sentence that names them with their uids; nothing when every link leads where it led."""
    gone = _anchors(before) - _anchors(after) - {"", "top"}
    lost = [(one, f"{how}{target}") for one in after.elements for how, target in _pointed_at(one) if target in gone]
    if not lost:
        return ""
    listed = ", ".join(f"{where} from the <{one.tag}> {one.uid}" for one, where in lost[:LISTED])
    more = f" and {len(lost) - LISTED} more" if len(lost) > LISTED else ""
    return f"These now lead nowhere: {listed}{more}. Point them elsewhere with updateNodeProps, or delete them."


def _anchors(page: Page) -> set[str]:
    named = [one.attribute("name") for one in page.elements if one.tag == "a"]
    return {unescape(name) for name in (*named, *(one.attribute("id") for one in page.elements)) if name}


def _pointed_at(element: Element) -> list[tuple[str, str]]:
    """How it is written in front of the name, and the name."""
    found = []
    for attribute in element.attributes:
        value = unescape(attribute.value).strip()
        if attribute.name in ("href", "xlink:href") and value.startswith("#"):
            found.append(("#", unquote(value[1:])))
        elif attribute.name in REFERENCES:
            found += [(f"{attribute.name}=", name) for name in value.split()]
    return found
