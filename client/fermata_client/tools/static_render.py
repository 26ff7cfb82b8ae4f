"""`render_snapshot` without a browser: report on a page from its markup alone (decision 0120)."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from fermata_client.document.breakpoints import BASE_BREAKPOINT, find_breakpoints
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.tags import ROOT_TAG, name_set
from fermata_client.html.tree import Element
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import ToolArguments, optional_text
from fermata_client.tools.tool_function import ToolEffectWithData

OUTLINE_TAGS = name_set("header nav main section article aside footer form dialog h1 h2 h3 h4 h5 h6")
CONTAINER_TAGS = ("div", "section", "main", "article", "span", "a")
"""Tags that the report expects to be closed."""
MAX_OUTLINE_NODES = 80
MAX_WARNINGS = 40
MAX_TEXT_CHARS = 80
MAX_TEXT_SOURCE_BYTES = 50 * MAX_TEXT_CHARS
NO_SCREENSHOT_NOTE = "An HTML file is not rendered here, so there is no screenshot. The report is made from the markup."


def render_snapshot(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    selected = _select_breakpoint(document, optional_text(arguments, "breakpointId"))
    uid = optional_text(arguments, "nodeId")
    scope = document.find_element(uid) if uid else document.content_root
    elements = [
        element
        for element in document.tree.elements
        if scope.tag == ROOT_TAG or scope.start <= element.start < scope.end
    ]
    return document, {
        "breakpointId": selected["id"],
        "label": selected["label"],
        "width": selected["width"],
        **({"nodeId": uid} if uid else {}),
        "capturedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "layout": _layout_report(document, elements),
        "screenshot": {"status": "unavailable", "error": NO_SCREENSHOT_NOTE},
    }


def _select_breakpoint(document: HtmlDocument, breakpoint_id: str) -> JsonObject:
    breakpoint_by_id = {item["id"]: item for item in find_breakpoints(document)}
    if breakpoint_id and breakpoint_id not in breakpoint_by_id:
        raise EditError(f"There is no breakpoint {breakpoint_id}. There are: {', '.join(breakpoint_by_id)}.")
    return breakpoint_by_id[breakpoint_id or BASE_BREAKPOINT["id"]]


def _layout_report(document: HtmlDocument, elements: list[Element]) -> JsonObject:
    outline = [_outline_node(document, element) for element in elements if element.tag in OUTLINE_TAGS]
    warnings = list(_iter_warnings(document, elements))
    return {
        "source": "markup",
        "note": "There are no boxes and no sizes, because nothing was laid out.",
        "elements": len(elements),
        "outline": outline[:MAX_OUTLINE_NODES],
        "outlineLeftOut": max(0, len(outline) - MAX_OUTLINE_NODES),
        "warnings": warnings[:MAX_WARNINGS],
        "warningsLeftOut": max(0, len(warnings) - MAX_WARNINGS),
    }


def _outline_node(document: HtmlDocument, element: Element) -> JsonObject:
    depth = sum(ancestor.tag in OUTLINE_TAGS for ancestor in element.ancestors())
    is_heading = element.tag[1:].isdigit()
    return {
        "nodeId": element.uid,
        "tag": element.tag,
        "depth": depth,
        "classes": element.classes,
        **({"text": element_text(document, element)} if is_heading else {}),
    }


def element_text(document: HtmlDocument, element: Element) -> str:
    """Return the beginning of an element's text, without tags and comments."""
    end = min(element.inner_end, element.inner_start + MAX_TEXT_SOURCE_BYTES)
    markup = document.source[element.inner_start : end]
    plain = re.sub(rb"<!--.*?(?:-->|\Z)|<[^>]*>?", b"", markup, flags=re.DOTALL).decode("utf-8", "replace")
    text = " ".join(plain.split())
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def _iter_warnings(document: HtmlDocument, elements: list[Element]) -> Iterator[dict[str, str]]:
    ids = Counter(uid for element in document.tree.elements if (uid := element.attribute_value("id")))
    anchor_elements = (element for element in document.tree.elements if element.tag == "a")
    link_targets = {*ids, "top", *(anchor.attribute_value("name") or "" for anchor in anchor_elements)}
    for element in elements:
        for warning in _element_warnings(document, element, ids, link_targets):
            yield {"nodeId": element.uid, "warning": warning}


def _element_warnings(
    document: HtmlDocument, element: Element, ids: Counter[str], link_targets: set[str]
) -> Iterator[str]:
    own_id = element.attribute_value("id") or ""
    if ids[own_id] > 1:
        yield f"The id “{own_id}” occurs {ids[own_id]} times on the page."
    if element.tag == "img":
        yield from _image_warnings(element)
    if element.tag == "a":
        yield from _link_warnings(element, link_targets)
    if element.tag in ("a", "button") and not _has_label(document, element):
        yield f"The <{element.tag}> has no text."
    if element.attribute_value("hidden") is not None:
        yield "It is hidden."
    if not (element.has_end_tag or element.is_void) and element.tag in CONTAINER_TAGS:
        yield f"The <{element.tag}> is never closed."


def _image_warnings(image: Element) -> Iterator[str]:
    if not (image.attribute_value("src") or image.attribute_value("srcset")):
        yield "The image has no src, so nothing is shown."
    if image.attribute_value("alt") is None:
        yield "The image has no alt text."


def _link_warnings(link: Element, link_targets: set[str]) -> Iterator[str]:
    address = link.attribute_value("href")
    if address is None:
        yield "The link has no href."
    elif address.startswith("#") and address[1:] not in link_targets:
        yield f"The link leads to {address}, which is not on the page."


def _has_label(document: HtmlDocument, element: Element) -> bool:
    return bool(element.children or element_text(document, element) or element.attribute_value("aria-label"))
