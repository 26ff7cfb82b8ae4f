"""The design tokens that a page has already: custom properties of its root element, read back as tokens and scales."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fermata_client.css.parser import CssRule, rule_key
from fermata_client.css.parser import parse_css as read_css
from fermata_client.design_tokens import derivation
from fermata_client.document.html_document import HtmlDocument

ROOT_SELECTORS = frozenset({":root", "html"})
DARK_SCHEME_QUERY = rule_key("@media (prefers-color-scheme: dark)")
DEFAULT_ROOT_FONT_PIXELS = 16.0
"""Pixels of 1rem unless a page says otherwise."""

_LENGTH = re.compile(r"(\d*\.?\d+)(rem|px)|0", re.IGNORECASE)
_CLAMP = re.compile(r"clamp\(\s*([^,]+),(.+),\s*([^,]+)\)", re.IGNORECASE)
_STEP = re.compile(r"--(?P<naming>[a-z][a-z-]*?)-(?P<step>[a-z0-9]+)")
SCALE_NAMES_BY_FAMILY = {
    "typography": ("text", "font-size", "fs", "type", "step"),
    "spacing": ("space", "spacing", "gap", "spacer"),
}


def find_root_rules(document: HtmlDocument, within: str = "") -> Iterator[CssRule]:
    """The rules of the root element, outside of every condition or right within one."""
    for sheet in document.sheet_elements:
        rules = read_css(document.sheet_source(sheet))
        if within:
            rules = [inner for rule in rules if rule.key == within for inner in rule.rules]
        yield from (rule for rule in rules if ROOT_SELECTORS & set(rule.key.split(",")))


def read_custom_properties(document: HtmlDocument, within: str = "") -> dict[str, str]:
    """The `--name: value` pairs of the root element; the last one counts."""
    return {
        declaration.name: declaration.value
        for rule in find_root_rules(document, within)
        for declaration in rule.declarations
        if declaration.name.startswith("--")
    }


def defining_selector(document: HtmlDocument, name: str) -> str:
    """The selector of the rule that sets a property now; `:root` for a new one."""
    homes = [rule.key for rule in find_root_rules(document) if any(one.name == name for one in rule.declarations)]
    return homes[-1] if homes else ":root"


def root_font_pixels(document: HtmlDocument) -> float:
    """The pixels of 1rem on this page."""
    sizes = [one.value for rule in find_root_rules(document) for one in rule.declarations if one.name == "font-size"]
    found = re.fullmatch(r"(\d*\.?\d+)(%|px)", sizes[-1].strip()) if sizes else None
    if found is None or not float(found[1]):
        return DEFAULT_ROOT_FONT_PIXELS
    return float(found[1]) * (DEFAULT_ROOT_FONT_PIXELS / 100 if found[2] == "%" else 1)


@dataclass(frozen=True)
class PageScale:
    """A scale as it stands in the page: the pixels of each step on the narrowest and on the widest screens."""

    family: str
    naming: str
    sizes: dict[str, tuple[float, float]]


def find_scales(document: HtmlDocument) -> list[PageScale]:
    """Groups of at least two lengths whose names differ in their last word, as `--space-s` and `--space-m`."""
    root, found = (
        root_font_pixels(document),
        {
            naming: PageScale(family, naming, {})
            for family in SCALE_NAMES_BY_FAMILY
            for naming in SCALE_NAMES_BY_FAMILY[family]
        },
    )
    for name, value in read_custom_properties(document).items():
        step, size = _STEP.fullmatch(name), _pixels(value, root)
        if step and size and step["naming"] in found:
            found[step["naming"]].sizes[step["step"]] = size
    return [steps for steps in found.values() if len(steps.sizes) > 1]


def _pixels(value: str, root: float) -> tuple[float, float] | None:
    if exact := derivation.parse_fluid_length(value.strip(), root):
        return exact
    if fluid := _CLAMP.fullmatch(value.strip()):
        low, high = _length(fluid[1], root), _length(fluid[3], root)
    else:
        low = high = _length(value, root)
    return None if low is None or high is None else (low, high)


def _length(text: str, root: float) -> float | None:
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        return None
    return float(found[1] or 0) * (root if (found[2] or "").lower() == "rem" else 1)
