"""Read the design tokens of a page: the custom properties of its root element, and the scales they form."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fermata_client.css.parser import CssRule, parse_css, rule_key
from fermata_client.design_tokens.fluid_scales import parse_fluid_length
from fermata_client.document.html_document import HtmlDocument

ROOT_SELECTOR = ":root"
ROOT_SELECTORS = frozenset({ROOT_SELECTOR, "html"})
DARK_SCHEME_QUERY = rule_key("@media (prefers-color-scheme: dark)")
DEFAULT_ROOT_FONT_PIXELS = 16.0
"""Size of 1rem where a page does not set it."""
SCALE_NAMES_BY_FAMILY = {
    "typography": ("text", "font-size", "fs", "type", "step"),
    "spacing": ("space", "spacing", "gap", "spacer"),
}

_DIGITS = r"(?:\d++(?:\.\d++)?|\.\d++)"
_LENGTH = re.compile(rf"({_DIGITS})(rem|px)|0", re.IGNORECASE)
_CLAMP = re.compile(r"clamp\(\s*+([^,]+),(.+),\s*+([^,]+)\)", re.IGNORECASE)
_STEP = re.compile(r"--(?P<naming>[a-z][a-z-]*?)-(?P<step>[a-z0-9]+)")
_FONT_SIZE = re.compile(rf"({_DIGITS})(%|px)")

SizeRange = tuple[float, float]
"""Pixels on the narrowest and on the widest screens."""


@dataclass(frozen=True)
class PageScale:
    """A scale of a page: the sizes of its steps by name."""

    family: str
    naming: str
    sizes: dict[str, SizeRange]


def find_root_rules(document: HtmlDocument, within: str = "") -> Iterator[CssRule]:
    """Yield the rules of the root element in order; those in the conditional group `within`, if given."""
    for sheet in document.sheet_elements:
        rules = parse_css(document.sheet_source(sheet))
        if within:
            rules = [inner for rule in rules if rule.key == within for inner in rule.rules]
        yield from (rule for rule in rules if ROOT_SELECTORS & set(rule.key.split(",")))


def read_custom_properties(document: HtmlDocument, within: str = "") -> dict[str, str]:
    """Return the custom properties of the root element. The last value of each is the one that applies."""
    return {
        declaration.name: declaration.value
        for rule in find_root_rules(document, within)
        for declaration in rule.declarations
        if declaration.name.startswith("--")
    }


def defining_selectors(document: HtmlDocument) -> dict[str, str]:
    """Return the selector of the rule that sets each property of the root element; of several, the last."""
    return {declaration.name: rule.key for rule in find_root_rules(document) for declaration in rule.declarations}


def root_font_pixels(document: HtmlDocument) -> float:
    """Return the size of 1rem on this page."""
    font_sizes = [
        declaration.value
        for rule in find_root_rules(document)
        for declaration in rule.declarations
        if declaration.name == "font-size"
    ]
    size = _FONT_SIZE.fullmatch(font_sizes[-1].strip()) if font_sizes else None
    if size is None or not float(size[1]):
        return DEFAULT_ROOT_FONT_PIXELS
    return float(size[1]) * (DEFAULT_ROOT_FONT_PIXELS / 100 if size[2] == "%" else 1)


def find_scales(document: HtmlDocument) -> list[PageScale]:
    """Return groups of two or more lengths whose names differ in the last word, as `--space-s` and `--space-m`."""
    scale_by_naming = {
        naming: PageScale(family, naming, {}) for family, namings in SCALE_NAMES_BY_FAMILY.items() for naming in namings
    }
    root_pixels = root_font_pixels(document)
    for name, value in read_custom_properties(document).items():
        step = _STEP.fullmatch(name)
        size_range = _parse_size_range(value.strip(), root_pixels)
        if step and size_range and step["naming"] in scale_by_naming:
            scale_by_naming[step["naming"]].sizes[step["step"]] = size_range
    return [scale for scale in scale_by_naming.values() if len(scale.sizes) > 1]


def _parse_size_range(value: str, root_pixels: float) -> SizeRange | None:
    if exact := parse_fluid_length(value, root_pixels):
        return exact
    clamp = _CLAMP.fullmatch(value)
    min_text, max_text = (clamp[1], clamp[3]) if clamp else (value, value)
    min_size, max_size = _parse_length(min_text, root_pixels), _parse_length(max_text, root_pixels)
    return None if min_size is None or max_size is None else (min_size, max_size)


def _parse_length(text: str, root_pixels: float) -> float | None:
    length = _LENGTH.fullmatch(text.strip())
    if length is None:
        return None
    return float(length[1] or 0) * (root_pixels if (length[2] or "").lower() == "rem" else 1)
