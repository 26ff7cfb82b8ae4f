"""What a page already has to build with: its classes, custom properties and heading levels."""

import colorsys
import re
from collections import Counter
from dataclasses import dataclass

from local.demo_model.pages import HEADINGS, Node, Page

_HEX = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})$", re.I)
_SIZES = r"(?:space|gap|spacing|size)[\w-]*-"


@dataclass(frozen=True)
class Kit:
    """Classes are empty where the page has nothing of the kind; values are then plain ones."""

    section: str = ""
    wrap: str = ""
    grid: str = ""
    card: str = ""
    button: str = ""
    lead: str = ""
    price: str = ""
    heading: str = "h2"
    accent: str = "currentColor"
    line: str = "color-mix(in srgb, currentColor 18%, transparent)"
    surface: str = "color-mix(in srgb, currentColor 4%, transparent)"
    radius: str = "0.75rem"
    gap: str = "1.5rem"
    room: str = "4rem"


def kit_of(page: Page) -> Kit:
    sections = [node for node in page.sections if node.tag == "section"]
    inner = [child for section in sections for child in section.children if child.tag == "div"]
    headings = [found.tag for section in sections if (found := section.first(*HEADINGS)) and found.tag != "h1"]
    card, grid = cards_of(page)
    values = page.variables
    return Kit(
        section=_shared(sections),
        wrap=_shared(inner),
        grid=grid,
        card=card,
        button=_button(page),
        lead=_shared([follower for section in sections if (follower := _after_heading(section))]),
        price=price_class(page),
        heading=Counter(headings).most_common(1)[0][0] if headings else Kit.heading,
        accent=accent_of(page) or Kit.accent,
        line=_variable(values, r"line|border|rule|divider") or Kit.line,
        surface=_variable(values, r"surface|paper|card|panel") or Kit.surface,
        radius=_variable(values, r"radius|round") or Kit.radius,
        gap=_variable(values, _SIZES + r"(?:m|md|medium)$") or Kit.gap,
        room=_variable(values, _SIZES + r"(?:l|lg|large|xl)$") or Kit.room,
    )


def cards_of(page: Page) -> tuple[str, str]:
    """The class of like siblings that each have a heading, and the class of what holds them."""
    for node in page.container.walk():
        alike = Counter(child.classes[0] for child in node.children if child.classes and child.first(*HEADINGS))
        name, count = alike.most_common(1)[0] if alike else ("", 0)
        if count > 1 and node.classes:
            return name, node.classes[0]
    return "", ""


def price_class(page: Page) -> str:
    """The class of the prices on the page's cards."""
    card, _ = cards_of(page)
    inside = [node for found in page.container.walk() if card and card in found.classes for node in found.walk()]
    return next((name for node in inside for name in node.classes if re.search(r"price|cost", name)), "")


def accent_of(page: Page) -> str:
    """The page's main colour: the property that says so, else the most vivid one."""
    named = _variable(page.variables, r"accent|primary|brand")
    vivid = {name: score for name, value in page.variables.items() if (score := _vividness(value)) > 0.2}
    return named or (f"var({max(vivid, key=lambda name: vivid[name])})" if vivid else "")


def _button(page: Page) -> str:
    for node in page.container.all("a", "button"):
        if any(re.search(r"button|btn|cta", name) for name in node.classes):
            return " ".join(node.classes)
    return ""


def _after_heading(section: Node) -> Node | None:
    """The paragraph that follows a section's heading at once."""
    heading = section.first(*HEADINGS)
    if heading is None or heading.parent is None:
        return None
    following = heading.parent.children[heading.position() + 1 :][:1]
    return following[0] if following and following[0].tag == "p" else None


def _shared(nodes: list[Node]) -> str:
    """The class that at least two of the nodes have."""
    counts = Counter(name for node in nodes for name in node.classes)
    name, count = counts.most_common(1)[0] if counts else ("", 0)
    return name if count > 1 else ""


def _variable(values: dict[str, str], pattern: str) -> str:
    name = next((name for name in values if re.search(pattern, name)), "")
    return f"var({name})" if name else ""


def _vividness(value: str) -> float:
    found = _HEX.match(value)
    if not found:
        return 0.0
    digits = found[1] if len(found[1]) == 6 else "".join(digit * 2 for digit in found[1])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    _, light, saturation = colorsys.rgb_to_hls(red, green, blue)
    return saturation * (1 - abs(2 * light - 1))
