"""Derive the breakpoints of a page from its media queries."""

import re

from fermata_client.css.parser import CssRule, parse_css
from fermata_client.document.html_document import HtmlDocument
from fermata_client.service.json_types import JsonObject

BASE_BREAKPOINT = {"id": "all", "label": "All widths", "width": 1280, "icon": "monitor"}
MAX_BREAKPOINTS = 12
MAX_PHONE_PIXELS = 599
MAX_TABLET_PIXELS = 999

_PIXELS_PER_EM = 16
_WIDTH_QUERY = re.compile(
    r"@media.*\((?:(?P<side>min|max)-width:|width(?P<comparison>>=|<=|>|<))\s*"
    r"(?P<length>\d{1,9}(?:\.\d++)?|\.\d++)(?P<unit>px|em|rem)\)",
    re.IGNORECASE,
)


def find_breakpoints(document: HtmlDocument) -> list[JsonObject]:
    """Return the base breakpoint, then one for each width that a media query compares with, the widest first."""
    breakpoint_by_id: dict[str, JsonObject] = {}
    for sheet in document.sheet_elements:
        for rule in parse_css(document.sheet_source(sheet)):
            if derived := _breakpoint_from_rule(rule):
                breakpoint_by_id.setdefault(derived["id"], derived)
    ordered = sorted(breakpoint_by_id.values(), key=lambda item: (-item["width"], item["id"]))
    return [BASE_BREAKPOINT, *ordered[:MAX_BREAKPOINTS]]


def _breakpoint_from_rule(rule: CssRule) -> JsonObject | None:
    query = _WIDTH_QUERY.match(rule.key)
    if query is None:
        return None
    is_min = "min" in (query["side"] or "").lower() or ">" in (query["comparison"] or "")
    side = "min" if is_min else "max"
    pixels = round(float(query["length"]) * (1 if query["unit"].lower() == "px" else _PIXELS_PER_EM))
    return {
        "id": f"{side}-{pixels}",
        "label": f"{side}. {pixels}px",
        "width": pixels,
        "mediaQuery": rule.prelude.removeprefix("@media").strip(),
        "icon": _icon_for_width(pixels),
    }


def _icon_for_width(pixels: int) -> str:
    if pixels <= MAX_PHONE_PIXELS:
        return "smartphone"
    return "tablet" if pixels <= MAX_TABLET_PIXELS else "monitor"
