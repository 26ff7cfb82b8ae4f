"""Describe a page's design tokens in the form of a site's settings (decision 0123)."""

import re
from collections.abc import Iterator

from fermata_client.design_tokens.color_variants import SHADE_COUNT, parse_color
from fermata_client.design_tokens.custom_properties import (
    DARK_SCHEME_QUERY,
    PageScale,
    find_scales,
    read_custom_properties,
    root_font_pixels,
)
from fermata_client.design_tokens.fluid_scales import MAX_SCREEN_PIXELS, MIN_SCREEN_PIXELS
from fermata_client.design_tokens.font_variables import GENERIC_FONTS
from fermata_client.document.html_document import HtmlDocument
from fermata_client.service.json_types import JsonObject

_COLOR = re.compile(r"#[0-9a-f]{3,8}|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color|color-mix)a?\(.*\)", re.IGNORECASE)


def framework_settings(document: HtmlDocument) -> JsonObject:
    """Return `settings.framework`: colours and scales; empty if the page has none."""
    framework: JsonObject = {}
    light = read_custom_properties(document)
    dark = read_custom_properties(document, DARK_SCHEME_QUERY)
    if colors := list(_iter_color_tokens(light, dark)):
        framework["colors"] = {"tokens": colors}
    for scale in find_scales(document):
        groups = framework.setdefault(scale.family, {"groups": []})["groups"]
        groups.append(_scale_group(scale, len(groups)))
    if framework:
        framework["preferences"] = {
            "rootFontSize": root_font_pixels(document),
            "minScreenWidth": MIN_SCREEN_PIXELS,
            "maxScreenWidth": MAX_SCREEN_PIXELS,
            "isRem": True,
        }
    return framework


def font_tokens(document: HtmlDocument) -> list[JsonObject]:
    """Return `settings.fonts.tokens`."""
    properties = read_custom_properties(document).items()
    fonts = [(name, value) for name, value in properties if name.startswith("--font-")]
    return [
        {"id": name, "name": name.removeprefix("--"), "variable": name, "family": "", "fallback": value, "order": order}
        for order, (name, value) in enumerate(fonts)
        if "," in value or value.startswith(("'", '"')) or value in GENERIC_FONTS
    ]


def _iter_color_tokens(light: dict[str, str], dark: dict[str, str]) -> Iterator[JsonObject]:
    """Yield a token for each colour but those that are variants of another one."""
    colors = {name: value for name, value in light.items() if _COLOR.fullmatch(value)}
    variants_by_color = {name: _existing_variants(name, colors) for name in colors}
    derived = {f"{name}-{variant}" for name, variants in variants_by_color.items() for variant in variants}
    for order, name in enumerate(name for name in colors if name not in derived):
        variants = variants_by_color[name]
        dark_value = dark.get(name, "")
        yield {
            "id": name,
            "slug": name.removeprefix("--"),
            "lightValue": colors[name],
            **({"darkValue": dark_value} if dark_value else {}),
            "darkModeEnabled": bool(dark_value),
            "generateUtilities": {"text": False, "background": False, "border": False, "fill": False},
            "generateTransparent": "5" in variants,
            "generateShades": {"enabled": "d-1" in variants, "count": SHADE_COUNT},
            "generateTints": {"enabled": "l-1" in variants, "count": SHADE_COUNT},
            "order": order,
        }


def _existing_variants(name: str, colors: dict[str, str]) -> set[str]:
    """Return the variants of a colour that the page has, by families (shades, tints, transparent) it has completely."""
    color = parse_color(colors[name])
    derived = {variant: str(shade) for variant, shade in color.variants()} if color else {}
    families: dict[str, set[str]] = {}
    for variant in derived:
        families.setdefault(variant[0] if variant[0] in "dl" else "", set()).add(variant)
    return {
        variant
        for family in families.values()
        if all(colors.get(f"{name}-{member}") == derived[member] for member in family)
        for variant in family
    }


def _scale_group(scale: PageScale, order: int) -> JsonObject:
    """Describe a scale by the sizes that the page has, without the ratios they may come from."""
    sizes = [
        {"name": f"{scale.naming}-{step}", "min": min_size, "max": max_size}
        for step, (min_size, max_size) in scale.sizes.items()
    ]
    return {
        "id": scale.naming,
        "name": scale.naming,
        "namingConvention": scale.naming,
        "mode": "fluid_manual",
        "steps": ",".join(scale.sizes),
        "manualSizes": sizes,
        "order": order,
    }
