"""What an editor tells the service about its site, told about a site of one HTML file."""

import re
from collections.abc import Iterator
from typing import Any

from fermata_client.css.parser import parse_css
from fermata_client.design_tokens import derivation
from fermata_client.design_tokens.custom_properties import (
    DARK_SCHEME_QUERY,
    PageScale,
    find_scales,
    read_custom_properties,
    root_font_pixels,
)
from fermata_client.document.html_document import HtmlDocument

BASE_BREAKPOINT = {"id": "all", "label": "All widths", "width": 1280, "icon": "monitor"}
MAX_BREAKPOINTS = 12
_COLOR = re.compile(r"#[0-9a-f]{3,8}|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color|color-mix)a?\(.*\)", re.IGNORECASE)
_WIDTH = re.compile(r"@media.*\((?:(min|max)-width:|width(>=|<=|>|<))\s*(\d*\.?\d+)(px|em|rem)\)", re.IGNORECASE)


def build_site_snapshot(document: HtmlDocument) -> dict[str, Any]:
    """The page without its nodes: the model reads those with `read_document`."""
    page = {
        "id": document.id,
        "slug": document.id,
        "title": document.title or document.id,
        "rootNodeId": document.content_root.uid,
        "nodes": {},
    }
    return {
        "page": page,
        "currentDocument": {"type": "page", "id": document.id},
        "site": _site(document, page),
        "selectedNodeId": None,
        "activeBreakpointId": BASE_BREAKPOINT["id"],
    }


def _site(document: HtmlDocument, page: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": page["id"],
        "name": page["title"],
        "breakpoints": find_breakpoints(document),
        "settings": _settings(document, page),
        "styleRules": {},
        "files": [],
        "explorer": _explorer(),
        "packageJson": {"dependencies": {}, "devDependencies": {}},
        "runtime": {"dependencyLock": {"version": 1, "packages": {}, "updatedAt": 0}, "scripts": {}, "styles": {}},
        "createdAt": 0,
        "updatedAt": 0,
        "pages": [page],
        "visualComponents": [],
        "layouts": [],
    }


def _explorer() -> dict[str, Any]:
    listed: dict[str, Any] = {"expandedFolders": [], "emptyFolders": [], "rowOrder": []}
    foldered: dict[str, Any] = {"folders": [], "items": []}
    return {
        **dict.fromkeys(("pages", "styles", "scripts"), listed),
        **dict.fromkeys(("templates", "components"), foldered),
    }


def find_breakpoints(document: HtmlDocument) -> list[dict[str, Any]]:
    """All widths, and every width at which a media query of the page begins or ends, the widest first."""
    found: dict[str, dict[str, Any]] = {}
    for sheet in document.sheet_elements:
        for rule in parse_css(document.sheet_source(sheet)):
            if width := _WIDTH.search(rule.key):
                side = "min" if "min" in (width[1] or "").lower() or ">" in (width[2] or "") else "max"
                pixels = round(float(width[3]) * (1 if width[4].lower() == "px" else 16))
                name, query = f"{side}-{pixels}", rule.prelude.removeprefix("@media").strip()
                point = {"id": name, "label": f"{side}. {pixels}px", "width": pixels, "mediaQuery": query}
                found.setdefault(name, {**point, "icon": _icon(pixels)})
    ordered = sorted(found.values(), key=lambda point: (-point["width"], point["id"]))
    return [BASE_BREAKPOINT, *ordered[:MAX_BREAKPOINTS]]


def _icon(pixels: int) -> str:
    return "smartphone" if pixels < 600 else "tablet" if pixels < 1000 else "monitor"


def _settings(document: HtmlDocument, page: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {"shortcuts": {}, "metaTitle": page["title"]}
    html = document.tree.find_first("html")
    language = html.attribute_value("lang") if html else None
    if language:
        settings["language"] = language
    framework = _framework(document)
    if framework:
        settings["framework"] = framework
    if fonts := _fonts(read_custom_properties(document)):
        settings["fonts"] = {"items": [], "tokens": fonts}
    return settings


def _framework(document: HtmlDocument) -> dict[str, Any]:
    framework: dict[str, Any] = {}
    if colors := list(_colors(read_custom_properties(document), read_custom_properties(document, DARK_SCHEME_QUERY))):
        framework["colors"] = {"tokens": colors}
    for steps in find_scales(document):
        family = framework.setdefault(steps.family, {"groups": []})
        family["groups"].append(_group(steps, len(family["groups"])))
    if framework:
        framework["preferences"] = {
            "rootFontSize": root_font_pixels(document),
            "minScreenWidth": derivation.MIN_SCREEN_PIXELS,
            "maxScreenWidth": derivation.MAX_SCREEN_PIXELS,
            "isRem": True,
        }
    return framework


def _colors(properties: dict[str, str], dark: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Each colour as a token. Variants that follow from another colour belong to it; any other has its own."""
    found = {name: value for name, value in properties.items() if _COLOR.fullmatch(value)}
    kept = {name: _variants(name, found) for name in found}
    derived = {f"{name}-{variant}" for name, variants in kept.items() for variant in variants}
    for order, name in enumerate(name for name in found if name not in derived):
        variants = kept[name]
        darker = dark.get(name, "")
        yield {
            "id": name,
            "slug": name.removeprefix("--"),
            "lightValue": found[name],
            **({"darkValue": darker} if darker else {}),
            "darkModeEnabled": bool(darker),
            "generateUtilities": {"text": False, "background": False, "border": False, "fill": False},
            "generateTransparent": "5" in variants,
            "generateShades": {"enabled": "d-1" in variants, "count": derivation.SHADE_COUNT},
            "generateTints": {"enabled": "l-1" in variants, "count": derivation.SHADE_COUNT},
            "order": order,
        }


def _variants(name: str, properties: dict[str, str]) -> set[str]:
    """The variants of a colour that the page has, where it has a whole family of them."""
    color = derivation.parse_color(properties[name])
    expected = {variant: str(shade) for variant, shade in color.variants()} if color else {}
    families: dict[str, set[str]] = {}
    for variant in expected:
        families.setdefault(variant[0] if variant[0] in "dl" else "", set()).add(variant)
    return {
        variant
        for family in families.values()
        if all(properties.get(f"{name}-{one}") == expected[one] for one in family)
        for variant in family
    }


def _group(steps: PageScale, order: int) -> dict[str, Any]:
    """A scale by its sizes, because those are what the page says."""
    sizes = [
        {"name": f"{steps.naming}-{step}", "min": least, "max": most} for step, (least, most) in steps.sizes.items()
    ]
    return {
        "id": steps.naming,
        "name": steps.naming,
        "namingConvention": steps.naming,
        "mode": "fluid_manual",
        "steps": ",".join(steps.sizes),
        "manualSizes": sizes,
        "order": order,
    }


def _fonts(properties: dict[str, str]) -> list[dict[str, Any]]:
    found = [(name, value) for name, value in properties.items() if name.startswith("--font-")]
    return [
        {"id": name, "name": name.removeprefix("--"), "variable": name, "family": "", "fallback": value, "order": order}
        for order, (name, value) in enumerate(found)
        if "," in value or value.startswith(("'", '"')) or value in derivation.GENERIC_FONTS
    ]
