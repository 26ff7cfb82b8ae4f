"""`render_snapshot` without a browser: what can be told about a page from its markup alone. Nothing is painted."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.site_snapshot import BASE_BREAKPOINT, find_breakpoints
from fermata_client.html.errors import EditError
from fermata_client.html.tags import ROOT_TAG, name_set
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import ToolArguments, optional_text

OUTLINE_TAGS = name_set("header nav main section article aside footer form dialog h1 h2 h3 h4 h5 h6")
MAX_OUTLINE_NODES, MAX_WARNINGS, MAX_TEXT_CHARS = 80, 40, 80
NO_SCREENSHOT_NOTE = "An HTML file is not painted here, so there is no picture. The report comes from the markup."


def render_snapshot(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    frame = _frame(document, optional_text(given, "breakpointId"))
    uid = optional_text(given, "nodeId")
    scope = document.find_element(uid) if uid else document.content_root
    inside = [one for one in document.tree.elements if scope.tag == ROOT_TAG or scope.start <= one.start < scope.end]
    told = {"breakpointId": frame["id"], "label": frame["label"], "width": frame["width"]}
    return document, {
        **told,
        **({"nodeId": uid} if uid else {}),
        "capturedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "layout": _layout(document, inside),
        "screenshot": {"status": "unavailable", "error": NO_SCREENSHOT_NOTE},
    }


def _frame(document: HtmlDocument, wanted: str) -> dict[str, Any]:
    every = {one["id"]: one for one in find_breakpoints(document)}
    if wanted and wanted not in every:
        raise EditError(f"There is no breakpoint {wanted}. There are: {', '.join(every)}.")
    return every[wanted or BASE_BREAKPOINT["id"]]


def _layout(document: HtmlDocument, inside: list[Element]) -> dict[str, Any]:
    outline = [_described(document, one) for one in inside if one.tag in OUTLINE_TAGS]
    warnings = list(_warnings(document, inside))
    return {
        "source": "markup",
        "note": "There are no boxes and no sizes: nothing was laid out.",
        "elements": len(inside),
        "outline": outline[:MAX_OUTLINE_NODES],
        "outlineLeftOut": max(0, len(outline) - MAX_OUTLINE_NODES),
        "warnings": warnings[:MAX_WARNINGS],
        "warningsLeftOut": max(0, len(warnings) - MAX_WARNINGS),
    }


def _described(document: HtmlDocument, element: Element) -> dict[str, Any]:
    depth = sum(above.tag in OUTLINE_TAGS for above in element.ancestors())
    told = {"nodeId": element.uid, "tag": element.tag, "depth": depth, "classes": element.classes}
    return {**told, **({"text": element_text(document, element)} if element.tag[1:].isdigit() else {})}


def element_text(document: HtmlDocument, element: Element) -> str:
    """The beginning of an element's text, without its tags."""
    start = document.source[element.inner_start : min(element.inner_end, element.inner_start + 50 * MAX_TEXT_CHARS)]
    text = " ".join(re.sub(rb"<!--.*?-->|<[^>]*>?", b"", start, flags=re.DOTALL).decode("utf-8", "replace").split())
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def _warnings(document: HtmlDocument, inside: list[Element]) -> Iterator[dict[str, str]]:
    ids = Counter(found for one in document.tree.elements if (found := one.attribute_value("id")))
    anchors = {*ids, "top", *(one.attribute_value("name") or "" for one in document.tree.elements if one.tag == "a")}
    for one in inside:
        for problem in _problems(document, one, ids, anchors):
            yield {"nodeId": one.uid, "warning": problem}


def _problems(document: HtmlDocument, one: Element, ids: Counter[str], anchors: set[str]) -> Iterator[str]:
    if ids[one.attribute_value("id") or ""] > 1:
        yield f"The id “{one.attribute_value('id')}” stands {ids[one.attribute_value('id') or '']} times on the page."
    if one.tag == "img":
        yield from _picture_problems(one)
    href = one.attribute_value("href") or ""
    if one.tag == "a" and href.startswith("#") and href[1:] not in anchors:
        yield f"The link leads to {href}, which is not on the page."
    if one.tag == "a" and "href" not in {attribute.name for attribute in one.attributes}:
        yield "The link leads nowhere: it has no href."
    if one.tag in ("a", "button") and not (
        one.children or element_text(document, one) or one.attribute_value("aria-label")
    ):
        yield f"The <{one.tag}> has no words."
    if one.attribute_value("hidden") is not None:
        yield "It is hidden."
    if not (one.has_end_tag or one.is_void) and one.tag in ("div", "section", "main", "article", "span", "a"):
        yield f"The <{one.tag}> is never closed."


def _picture_problems(picture: Element) -> Iterator[str]:
    if not (picture.attribute_value("src") or picture.attribute_value("srcset")):
        yield "The picture has no src, so nothing is shown."
    if picture.attribute_value("alt") is None:
        yield "The picture has no alt text."
