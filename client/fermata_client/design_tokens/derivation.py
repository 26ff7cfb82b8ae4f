"""What follows from a design token: the variants of a colour, the steps of a scale, the stack of a font.

The service derives the same for the model's list of tokens. A test holds the two together; they share no code, because
this package is installed where the service is not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from itertools import product

TRANSPARENCY_PERCENTS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
SHADE_COUNT = 4
"""Shades and tints of a colour each, the outermost four fifths of the way to black or white."""
MAX_SHADE_SHARE = 0.8
GENERIC_FONTS = ("serif", "sans-serif", "monospace", "cursive", "fantasy", "system-ui", "ui-serif", "ui-sans-serif")
MIN_SCREEN_PIXELS, MAX_SCREEN_PIXELS = 320, 1400
"""Pixels of screen width between which a fluid length grows."""

_N = r"([-+]?\d*\.?\d+)"
_C = r"(\d*\.?\d+)"
_HSL = re.compile(rf"hsla?\(\s*{_N}(?:deg)?\s*,\s*{_N}%\s*,\s*{_N}%(?:\s*,\s*{_N})?\s*\)", re.IGNORECASE | re.ASCII)
_RGB = re.compile(rf"rgba?\(\s*{_C}\s*[, ]\s*{_C}\s*[, ]\s*{_C}\s*(?:[,/]\s*({_C}%?))?\s*\)", re.IGNORECASE | re.ASCII)
_FLUID = re.compile(rf"clamp\([-.\d]+rem, calc\({_N}vw \+ {_N}rem\), [-.\d]+rem\)")
_WITHIN_ROUNDING = (0.0, 0.002, -0.002, 0.004, -0.004, 0.001, -0.001, 0.003, -0.003)
_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)


def round_css_number(value: float) -> float:
    return float(Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


def format_css_number(value: float) -> str:
    """At most two decimals, none that are zero."""
    short = round_css_number(value)
    return str(int(short)) if short.is_integer() else repr(short)


@dataclass(frozen=True)
class Color:
    """Degrees, percent, percent, and opacity from 0 to 1."""

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
        for step in TRANSPARENCY_PERCENTS:
            yield str(step), Color(self.hue, self.saturation, self.lightness, step / 100)
        for number in range(1, SHADE_COUNT + 1):
            share = MAX_SHADE_SHARE * number / (SHADE_COUNT + 1)
            yield f"d-{number}", Color(self.hue, self.saturation, self.lightness * (1 - share), self.opacity)
        for number in range(1, SHADE_COUNT + 1):
            share = MAX_SHADE_SHARE * number / (SHADE_COUNT + 1)
            lighter = self.lightness + (100 - self.lightness) * share
            yield f"l-{number}", Color(self.hue, self.saturation, lighter, self.opacity)


def parse_color(text: str) -> Color | None:
    """None for a notation that has no variants, such as a name or `oklch(…)`."""
    text = text.strip()
    if found := _HSL.fullmatch(text):
        hue, saturation, lightness, opacity = (float(part) for part in found.groups(default="1"))
        return Color(hue % 360, _within(saturation, 100), _within(lightness, 100), _within(opacity, 1))
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) == 6 else "".join(2 * digit for digit in found[1])
        return _from_rgb(*bytes.fromhex(digits))
    if found := _RGB.fullmatch(text):
        red, green, blue = (_within(float(found[channel]), 255) for channel in (1, 2, 3))
        given = found[4] or "1"
        return _from_rgb(red, green, blue, _within(float(given.rstrip("%")) / (100 if "%" in given else 1), 1))
    return None


def _from_rgb(red: float, green: float, blue: float, opacity: float = 1.0) -> Color:
    r, g, b = red / 255, green / 255, blue / 255
    top, low = max(r, g, b), min(r, g, b)
    middle, spread = (top + low) / 2, top - low
    if spread == 0:
        return Color(0, 0, middle * 100, opacity)
    saturation = spread / (2 - top - low if middle > 0.5 else top + low)
    if top == r:
        sixth = (g - b) / spread + (6 if g < b else 0)
    else:
        sixth = (b - r) / spread + 2 if top == g else (r - g) / spread + 4
    return Color(sixth * 60, saturation * 100, middle * 100, opacity)


def _within(value: float, most: float) -> float:
    return max(0.0, min(most, value))


def slugify(name: str, nothing: str = "") -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.strip().lower()).strip("-") or nothing


def font_variable(name: str) -> str:
    plain = slugify(name)
    return plain if not plain or plain.startswith("font-") else f"font-{plain}"


def font_stack(family: str, fallback: str) -> str:
    parts = (re.sub(r'["\\\n\r<>;{}]', "", part.strip()) for part in fallback.split(","))
    rest = ", ".join(part for part in parts if part) or "sans-serif"
    quoted = re.sub(r'["\\\n\r<>]', "", family)
    return f'"{quoted}", {rest}' if family else rest


def fluid_length(least: float, most: float, root: float) -> str:
    """A length in rem that grows with the screen from `least` to `most` pixels; `root` is the pixels of 1rem."""
    slope = (most - least) / (MAX_SCREEN_PIXELS - MIN_SCREEN_PIXELS)
    low, start, high = (
        f"{format_css_number(round_css_number(px) / root)}rem"
        for px in (least, least - slope * MIN_SCREEN_PIXELS, most)
    )
    return f"clamp({low}, calc({format_css_number(slope * 100)}vw + {start}), {high})"


def parse_fluid_length(value: str, root: float) -> tuple[float, float] | None:
    """The two sizes in pixels that `fluid` made this value of: some that round to the same; None for another value."""
    found = _FLUID.fullmatch(value)
    if found is None:
        return None
    slope, start = float(found[1]), float(found[2])
    for less, more in product(_WITHIN_ROUNDING, repeat=2):
        grows, begins = (slope + less) / 100, (start + more) * root
        sizes = begins + grows * MIN_SCREEN_PIXELS, begins + grows * MAX_SCREEN_PIXELS
        if fluid_length(*sizes, root) == value:
            return sizes
    return None


@dataclass(frozen=True)
class TokenScale:
    """Sizes in pixels, `least` on the narrowest screens and `most` on the widest: those of the step number `base`.
    Each step is its ratio times as large as the one before.
    """

    naming: str
    steps: tuple[str, ...]
    base_index: int
    min_size: float
    min_ratio: float
    max_size: float
    max_ratio: float

    def css_variables(self, root: float) -> Iterator[tuple[str, str]]:
        for place, step in enumerate(self.steps):
            exponent = place - self.base_index
            sizes = self.min_size * self.min_ratio**exponent, self.max_size * self.max_ratio**exponent
            yield scale_variable(self.naming, step), fluid_length(*sizes, root)


def scale_variable(naming: str, step: str) -> str:
    name = naming.replace("{step}", step, 1) if "{step}" in naming else f"{naming}-{step}"
    return "--" + re.sub(r"\s", "-", name)


DEFAULT_TYPE_SCALE = TokenScale("text", ("xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"), 2, 16, 1.125, 18, 1.333)
DEFAULT_SPACING_SCALE = TokenScale(
    "space", ("4xs", "3xs", "2xs", "xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"), 5, 16, 1.25, 28, 1.414
)
