"""`render_snapshot` without a browser: what can be told about a page from its markup alone. Nothing is painted."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.cannot import CannotDo
from fermata_client.html.tree import ROOT, Element, names
from fermata_client.html_document import HtmlDocument
from fermata_client.snapshot import BASE, breakpoints

LANDMARKS = names("header nav main section article aside footer form dialog h1 h2 h3 h4 h5 h6")
MOST_NODES, MOST_WARNINGS, MOST_TEXT = 80, 40, 80
NOT_PAINTED = "An HTML file is not painted here, so there is no picture. The report comes from the markup."


def render_snapshot(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    frame = _frame(document, read.optional_text(given, "breakpointId"))
    uid = read.optional_text(given, "nodeId")
    scope = document.element(uid) if uid else document.root
    inside = [one for one in document.page.elements if scope.tag == ROOT or scope.start <= one.start < scope.end]
    told = {"breakpointId": frame["id"], "label": frame["label"], "width": frame["width"]}
    return document, {
        **told,
        **({"nodeId": uid} if uid else {}),
        "capturedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "layout": _layout(document, inside),
        "screenshot": {"status": "unavailable", "error": NOT_PAINTED},
    }


def _frame(document: HtmlDocument, wanted: str) -> dict[str, Any]:
    every = {one["id"]: one for one in breakpoints(document)}
    if wanted and wanted not in every:
        raise CannotDo(f"There is no breakpoint {wanted}. There are: {', '.join(every)}.")
    return every[wanted or BASE["id"]]


def _layout(document: HtmlDocument, inside: list[Element]) -> dict[str, Any]:
    outline = [_described(document, one) for one in inside if one.tag in LANDMARKS]
    warnings = list(_warnings(document, inside))
    return {
        "source": "markup",
        "note": "There are no boxes and no sizes: nothing was laid out.",
        "elements": len(inside),
        "outline": outline[:MOST_NODES],
        "outlineLeftOut": max(0, len(outline) - MOST_NODES),
        "warnings": warnings[:MOST_WARNINGS],
        "warningsLeftOut": max(0, len(warnings) - MOST_WARNINGS),
    }


def _described(document: HtmlDocument, element: Element) -> dict[str, Any]:
    depth = sum(above.tag in LANDMARKS for above in element.ancestors())
    told = {"nodeId": element.uid, "tag": element.tag, "depth": depth, "classes": element.classes}
    return {**told, **({"text": words_of(document, element)} if element.tag[1:].isdigit() else {})}


def words_of(document: HtmlDocument, element: Element) -> str:
    """The beginning of an element's text, without its tags."""
    start = document.source[element.inner_start : min(element.inner_end, element.inner_start + 50 * MOST_TEXT)]
    text = " ".join(re.sub(rb"<!--.*?-->|<[^>]*>?", b"", start, flags=re.DOTALL).decode("utf-8", "replace").split())
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _warnings(document: HtmlDocument, inside: list[Element]) -> Iterator[dict[str, str]]:
    ids = Counter(found for one in document.page.elements if (found := one.attribute("id")))
    anchors = {*ids, "top", *(one.attribute("name") or "" for one in document.page.elements if one.tag == "a")}
    for one in inside:
        for problem in _problems(document, one, ids, anchors):
            yield {"nodeId": one.uid, "warning": problem}


def _problems(document: HtmlDocument, one: Element, ids: Counter[str], anchors: set[str]) -> Iterator[str]:
    if ids[one.attribute("id") or ""] > 1:
        yield f"The id “{one.attribute('id')}” stands {ids[one.attribute('id') or '']} times on the page."
    if one.tag == "img":
        yield from _picture_problems(one)
    href = one.attribute("href") or ""
    if one.tag == "a" and href.startswith("#") and href[1:] not in anchors:
        yield f"The link leads to {href}, which is not on the page."
    if one.tag == "a" and "href" not in {attribute.name for attribute in one.attributes}:
        yield "The link leads nowhere: it has no href."
    if one.tag in ("a", "button") and not (one.children or words_of(document, one) or one.attribute("aria-label")):
        yield f"The <{one.tag}> has no words."
    if one.attribute("hidden") is not None:
        yield "It is hidden."
    if not (one.has_end_tag or one.is_void) and one.tag in ("div", "section", "main", "article", "span", "a"):
        yield f"The <{one.tag}> is never closed."


def _picture_problems(picture: Element) -> Iterator[str]:
    if not (picture.attribute("src") or picture.attribute("srcset")):
        yield "The picture has no src, so nothing is shown."
    if picture.attribute("alt") is None:
        yield "The picture has no alt text."
