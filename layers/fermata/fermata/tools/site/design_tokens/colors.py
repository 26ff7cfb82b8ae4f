"""Compute colour tokens, and the variants that the editor generates for them: transparencies, shades and tints."""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import Field

from fermata.tools.lenient_models import FiniteNumber, LenientModel
from fermata.tools.site.design_tokens.css_numbers import format_css_number

TRANSPARENCY_PERCENTAGES = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
MAX_VARIANT_SHARE = 0.8
"""How far the next shade after the last would be mixed with black, the next tint with white (0 to 1)."""
MAX_COLOR_VARIANTS = 12

_DIGITS = r"(?:\d++(?:\.\d++)?|\.\d++)"
_SIGNED_NUMBER = rf"([-+]?{_DIGITS})"
_HSL = re.compile(
    rf"hsla?\(\s*{_SIGNED_NUMBER}(?:deg)?\s*,\s*{_SIGNED_NUMBER}%\s*,\s*{_SIGNED_NUMBER}%"
    rf"(?:\s*,\s*{_SIGNED_NUMBER})?\s*\)",
    re.IGNORECASE | re.ASCII,
)
_NUMBER = rf"({_DIGITS})"
_COMMA_OR_SPACE = r"(?:\s*+,\s*+|(?=\s* )\s++)"
"""Written so that a row of blanks can be divided in one way only (decision 0234)."""
_RGB = re.compile(
    rf"rgba?\(\s*{_NUMBER}{_COMMA_OR_SPACE}{_NUMBER}{_COMMA_OR_SPACE}{_NUMBER}"
    rf"\s*+(?:[,/]\s*({_NUMBER}%?))?\s*\)",
    re.IGNORECASE | re.ASCII,
)
_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)


class VariantSettings(LenientModel):
    """Whether shades (or tints) are generated, and how many."""

    enabled: bool = True
    count: FiniteNumber = 4


class UtilitySettings(LenientModel):
    """The kinds of utility classes that a token has."""

    text: bool = True
    background: bool = True
    border: bool = True
    fill: bool = False


class ColorToken(LenientModel):
    slug: str
    light_value: str
    dark_value: str = ""
    dark_mode_enabled: bool = False
    category: str = ""
    generate_utilities: UtilitySettings = Field(default_factory=UtilitySettings)
    generate_transparent: bool = True
    generate_shades: VariantSettings = Field(default_factory=VariantSettings)
    generate_tints: VariantSettings = Field(default_factory=VariantSettings)
    order: FiniteNumber = 0


class ColorSettings(LenientModel):
    tokens: tuple[ColorToken, ...] = ()


class Hsla(NamedTuple):
    """Hue in degrees, saturation and lightness in percent, alpha from 0 to 1."""

    h: float
    s: float
    l: float  # noqa: E741 - the channel's own name
    a: float = 1.0

    def __str__(self) -> str:
        h, s, l, a = map(format_css_number, self)  # noqa: E741 - the channel's own name
        return f"hsla({h}, {s}%, {l}%, {a})"


def describe_colors(settings: ColorSettings) -> list[dict[str, Any]]:
    return [_describe_token(slug, token) for slug, token in assign_slugs(settings)]


def assign_slugs(settings: ColorSettings) -> Iterator[tuple[str, ColorToken]]:
    """Yield each token, in order, with the slug of its CSS variable; repeated slugs get `-2`, `-3`, …"""
    slugs = _FreeSlugs()
    for token in sorted(settings.tokens, key=lambda token: (token.order, token.slug)):
        yield slugs.take(token.slug), token


def _describe_token(slug: str, token: ColorToken) -> dict[str, Any]:
    base = parse_color(token.light_value)
    dark = to_hsla_text(token.dark_value) if token.dark_mode_enabled else ""
    variants = _generate_variants(token, base) if base else ()
    return {
        "slug": slug,
        "category": token.category,
        **_describe_color(token, slug, "", to_hsla_text(token.light_value)),
        **({"darkValue": dark} if dark else {}),
        "variants": [_describe_color(token, slug, name, str(color)) for name, color in variants],
    }


def _describe_color(token: ColorToken, slug: str, variant: str, value: str) -> dict[str, Any]:
    name = f"{slug}-{variant}" if variant else slug
    utilities = token.generate_utilities
    prefixes = {"text": utilities.text, "bg": utilities.background, "border": utilities.border, "fill": utilities.fill}
    return {
        **({"variant": variant} if variant else {}),
        "cssVar": f"--{name}",
        "ref": f"var(--{name})",
        "value": value,
        "utilityClasses": [f"{prefix}-{name}" for prefix, is_enabled in prefixes.items() if is_enabled],
    }


def _generate_variants(token: ColorToken, base: Hsla) -> Iterator[tuple[str, Hsla]]:
    if token.generate_transparent:
        yield from ((str(percent), base._replace(a=percent / 100)) for percent in TRANSPARENCY_PERCENTAGES)
    for number, share in _compute_shares(token.generate_shades):
        yield f"d-{number}", base._replace(l=base.l * (1 - share))
    for number, share in _compute_shares(token.generate_tints):
        yield f"l-{number}", base._replace(l=base.l + (100 - base.l) * share)


def _compute_shares(variants: VariantSettings) -> Iterator[tuple[int, float]]:
    count = int(_clamp(variants.count, 0, MAX_COLOR_VARIANTS)) if variants.enabled else 0
    return ((number, MAX_VARIANT_SHARE * number / (count + 1)) for number in range(1, count + 1))


def slugify_color_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.strip().lower()).strip("-") or "color"


class _FreeSlugs:
    """Hand out slugs. The numbers that a slug was given are not tried again (decision 0234)."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next_number: dict[str, int] = {}

    def take(self, name: str) -> str:
        base = slug = slugify_color_name(name)
        number = self._next_number.get(base, 2)
        while slug in self._used:
            slug = f"{base}-{number}"
            number += 1
        self._next_number[base] = number
        self._used.add(slug)
        return slug


def to_hsla_text(value: str) -> str:
    """Format a colour as `hsla(…)`; one that cannot be parsed (`oklch(…)`, a name) stays as it is."""
    color = parse_color(value)
    return str(color) if color else value.strip()


def parse_color(value: str) -> Hsla | None:
    """Parse a colour in `hsl()`, `hsla()`, hexadecimal, `rgb()` or `rgba()` form; None for any other."""
    text = value.strip()
    if match := _HSL.fullmatch(text):
        hue, saturation, lightness, alpha = (float(channel) for channel in match.groups(default="1"))
        return _make_hsla(hue, saturation, lightness, alpha) if math.isfinite(hue) else None
    if match := _HEX.fullmatch(text):
        digits = match[1] if len(match[1]) == 6 else "".join(digit * 2 for digit in match[1])
        return _hsla_from_rgb(*bytes.fromhex(digits))
    if match := _RGB.fullmatch(text):
        r, g, b = (_clamp(float(channel), 0, 255) for channel in match.group(1, 2, 3))
        return _hsla_from_rgb(r, g, b, _parse_alpha(match[4] or "1"))
    return None


def _make_hsla(hue: float, saturation: float, lightness: float, alpha: float) -> Hsla:
    return Hsla(hue % 360, _clamp(saturation, 0, 100), _clamp(lightness, 0, 100), _clamp(alpha, 0, 1))


def _parse_alpha(text: str) -> float:
    value = float(text.removesuffix("%"))
    return _clamp(value / 100 if text.endswith("%") else value, 0, 1)


def _hsla_from_rgb(red: float, green: float, blue: float, alpha: float = 1.0) -> Hsla:
    r, g, b = red / 255, green / 255, blue / 255
    high, low = max(r, g, b), min(r, g, b)
    lightness, spread = (high + low) / 2, high - low
    if spread == 0:
        return Hsla(0, 0, lightness * 100, alpha)
    saturation = spread / (2 - high - low if lightness > 0.5 else high + low)
    if high == r:
        sextant = (g - b) / spread + (6 if g < b else 0)
    elif high == g:
        sextant = (b - r) / spread + 2
    else:
        sextant = (r - g) / spread + 4
    return Hsla(sextant * 60, saturation * 100, lightness * 100, alpha)


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))
