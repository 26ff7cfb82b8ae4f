"""Parse colours, and derive their variants: transparent ones, shades and tints.

The service derives the same from a token. A test compares the two, which share no code (decision 0123).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fermata_client.design_tokens.css_numbers import format_css_number

TRANSPARENCY_PERCENTS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
SHADE_COUNT = 4
"""Number of shades, and of tints."""
MAX_SHADE_SHARE = 0.8
"""The share of the way to black or white that one more shade or tint would be at."""

_DIGITS = r"(?:\d++(?:\.\d++)?|\.\d++)"
_SIGNED = rf"([-+]?{_DIGITS})"
_UNSIGNED = rf"({_DIGITS})"
_COMMA_OR_SPACE = r"(?:\s*+,\s*+|(?=\s* )\s++)"
"""Written so that a row of blanks can be divided in one way only (decision 0234)."""
_HSL = re.compile(
    rf"hsla?\(\s*{_SIGNED}(?:deg)?\s*,\s*{_SIGNED}%\s*,\s*{_SIGNED}%(?:\s*,\s*{_SIGNED})?\s*\)",
    re.IGNORECASE | re.ASCII,
)
_RGB = re.compile(
    rf"rgba?\(\s*{_UNSIGNED}{_COMMA_OR_SPACE}{_UNSIGNED}{_COMMA_OR_SPACE}{_UNSIGNED}"
    rf"\s*+(?:[,/]\s*({_UNSIGNED}%?))?\s*\)",
    re.IGNORECASE | re.ASCII,
)
_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)


@dataclass(frozen=True)
class Color:
    """Hue in degrees, saturation and lightness in percent, opacity from 0 to 1."""

    hue: float
    saturation: float
    lightness: float
    opacity: float = 1.0

    def __str__(self) -> str:
        hue, saturation, lightness, opacity = map(
            format_css_number, (self.hue, self.saturation, self.lightness, self.opacity)
        )
        return f"hsla({hue}, {saturation}%, {lightness}%, {opacity})"

    def variants(self) -> Iterator[tuple[str, "Color"]]:
        """Yield the variants by name: `5` to `90` (opacity), `d-1` to `d-4` (shades), `l-1` to `l-4` (tints)."""
        for percent in TRANSPARENCY_PERCENTS:
            yield str(percent), Color(self.hue, self.saturation, self.lightness, percent / 100)
        for number in range(1, SHADE_COUNT + 1):
            share = MAX_SHADE_SHARE * number / (SHADE_COUNT + 1)
            yield f"d-{number}", Color(self.hue, self.saturation, self.lightness * (1 - share), self.opacity)
        for number in range(1, SHADE_COUNT + 1):
            share = MAX_SHADE_SHARE * number / (SHADE_COUNT + 1)
            lightness = self.lightness + (100 - self.lightness) * share
            yield f"l-{number}", Color(self.hue, self.saturation, lightness, self.opacity)


def parse_color(text: str) -> Color | None:
    """Parse a colour; None for a notation without variants, such as a name or `oklch(…)`."""
    text = text.strip()
    if match := _HSL.fullmatch(text):
        hue, saturation, lightness, opacity = (float(part) for part in match.groups(default="1"))
        return Color(hue % 360, _clamp(saturation, 100), _clamp(lightness, 100), _clamp(opacity, 1))
    if match := _HEX.fullmatch(text):
        digits = match[1] if len(match[1]) == 6 else "".join(2 * digit for digit in match[1])
        return _color_from_rgb(*bytes.fromhex(digits))
    if match := _RGB.fullmatch(text):
        red, green, blue = (_clamp(float(match[channel]), 255) for channel in (1, 2, 3))
        return _color_from_rgb(red, green, blue, _parse_opacity(match[4] or "1"))
    return None


def _parse_opacity(text: str) -> float:
    return _clamp(float(text.rstrip("%")) / (100 if "%" in text else 1), 1)


def _color_from_rgb(red: float, green: float, blue: float, opacity: float = 1.0) -> Color:
    r, g, b = red / 255, green / 255, blue / 255
    highest, lowest = max(r, g, b), min(r, g, b)
    lightness, spread = (highest + lowest) / 2, highest - lowest
    if spread == 0:
        return Color(0, 0, lightness * 100, opacity)
    saturation = spread / (2 - highest - lowest if lightness > 0.5 else highest + lowest)
    if highest == r:
        sextant = (g - b) / spread + (6 if g < b else 0)
    else:
        sextant = (b - r) / spread + 2 if highest == g else (r - g) / spread + 4
    return Color(sextant * 60, saturation * 100, lightness * 100, opacity)


def _clamp(value: float, max_value: float) -> float:
    return max(0.0, min(max_value, value))
