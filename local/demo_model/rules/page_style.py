"""Detect the classes, custom properties and heading level that a page uses for its sections."""

import colorsys
import re
from collections import Counter
from dataclasses import dataclass

from local.demo_model.rules.html_page import HEADING_TAGS, HtmlNode, HtmlPage

_HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})$", re.I)
_SIZES = r"(?:space|gap|spacing|size)[\w-]*-"


@dataclass(frozen=True)
class PageStyle:
    """The style of a page. A class is empty, and a value a default one, where the page has none."""

    section_class: str = ""
    wrapper_class: str = ""
    grid_class: str = ""
    card_class: str = ""
    button_class: str = ""
    lead_class: str = ""
    price_class: str = ""
    heading_tag: str = "h2"
    accent_color: str = "currentColor"
    border_color: str = "color-mix(in srgb, currentColor 18%, transparent)"
    surface_color: str = "color-mix(in srgb, currentColor 4%, transparent)"
    radius: str = "0.75rem"
    gap: str = "1.5rem"
    section_padding: str = "4rem"


def detect_page_style(page: HtmlPage) -> PageStyle:
    sections = [node for node in page.sections if node.tag == "section"]
    wrappers = [child for section in sections for child in section.children if child.tag == "div"]
    headings = [
        heading.tag for section in sections if (heading := section.find_first(*HEADING_TAGS)) and heading.tag != "h1"
    ]
    card, grid = find_card_classes(page)
    values = page.variables
    return PageStyle(
        section_class=_shared(sections),
        wrapper_class=_shared(wrappers),
        grid_class=grid,
        card_class=card,
        button_class=_button(page),
        lead_class=_shared([follower for section in sections if (follower := _after_heading(section))]),
        price_class=find_price_class(page),
        heading_tag=Counter(headings).most_common(1)[0][0] if headings else PageStyle.heading_tag,
        accent_color=find_accent_color(page) or PageStyle.accent_color,
        border_color=_variable(values, r"line|border|rule|divider") or PageStyle.border_color,
        surface_color=_variable(values, r"surface|paper|card|panel") or PageStyle.surface_color,
        radius=_variable(values, r"radius|round") or PageStyle.radius,
        gap=_variable(values, _SIZES + r"(?:m|md|medium)$") or PageStyle.gap,
        section_padding=_variable(values, _SIZES + r"(?:l|lg|large|xl)$") or PageStyle.section_padding,
    )


def find_card_classes(page: HtmlPage) -> tuple[str, str]:
    """Find the class of similar siblings with headings, and the class of their parent."""
    for node in page.content_root.iter_descendants():
        alike = Counter(
            child.classes[0] for child in node.children if child.classes and child.find_first(*HEADING_TAGS)
        )
        name, count = alike.most_common(1)[0] if alike else ("", 0)
        if count > 1 and node.classes:
            return name, node.classes[0]
    return "", ""


def find_price_class(page: HtmlPage) -> str:
    """Find the class of the prices on the page's cards."""
    card, _ = find_card_classes(page)
    inside = [
        node
        for found in page.content_root.iter_descendants()
        if card and card in found.classes
        for node in found.iter_descendants()
    ]
    return next((name for node in inside for name in node.classes if re.search(r"price|cost", name)), "")


def find_accent_color(page: HtmlPage) -> str:
    """Find the page's main color: the custom property named so, else the most vivid one."""
    named = _variable(page.variables, r"accent|primary|brand")
    vivid = {name: score for name, value in page.variables.items() if (score := _vividness(value)) > 0.2}
    return named or (f"var({max(vivid, key=lambda name: vivid[name])})" if vivid else "")


def _button(page: HtmlPage) -> str:
    for node in page.content_root.find_all("a", "button"):
        if any(re.search(r"button|btn|cta", name) for name in node.classes):
            return " ".join(node.classes)
    return ""


def _after_heading(section: HtmlNode) -> HtmlNode | None:
    """Get the paragraph right after a section's heading."""
    heading = section.find_first(*HEADING_TAGS)
    if heading is None or heading.parent is None:
        return None
    following = heading.parent.children[heading.sibling_index() + 1 :][:1]
    return following[0] if following and following[0].tag == "p" else None


def _shared(nodes: list[HtmlNode]) -> str:
    """Get the most common class that at least two of the nodes have."""
    counts = Counter(name for node in nodes for name in node.classes)
    name, count = counts.most_common(1)[0] if counts else ("", 0)
    return name if count > 1 else ""


def _variable(values: dict[str, str], pattern: str) -> str:
    name = next((name for name in values if re.search(pattern, name)), "")
    return f"var({name})" if name else ""


def _vividness(value: str) -> float:
    match = _HEX.match(value)
    if not match:
        return 0.0
    digits = match[1] if len(match[1]) == 6 else "".join(digit * 2 for digit in match[1])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    _, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    return saturation * (1 - abs(2 * light - 1))
