"""Derive the steps of a scale as fluid lengths, which grow with the screen.

The service derives the same from a token. A test compares the two, which share no code (decision 0123).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fermata_client.design_tokens.css_numbers import format_css_number, round_css_number

MIN_SCREEN_PIXELS = 320
"""Screen width up to which a fluid length is smallest."""
MAX_SCREEN_PIXELS = 1400
"""Screen width from which a fluid length is largest."""

_NUMBER = r"([-+]?(?:\d++(?:\.\d++)?|\.\d++))"
_FLUID_LENGTH = re.compile(rf"clamp\([-.\d]+rem, calc\({_NUMBER}vw \+ {_NUMBER}rem\), [-.\d]+rem\)")
_ROUNDING_OFFSETS = (0.0, 0.002, -0.002, 0.004, -0.004, 0.001, -0.001, 0.003, -0.003)


@dataclass(frozen=True)
class TokenScale:
    """A scale of lengths in pixels. Each step is its ratio times as large as the one before.

    `min_*` holds on the narrowest screens, `max_*` on the widest.
    """

    naming: str
    steps: tuple[str, ...]
    base_index: int
    """The step that has the sizes."""
    min_size: float
    min_ratio: float
    max_size: float
    max_ratio: float

    def css_variables(self, root_pixels: float) -> Iterator[tuple[str, str]]:
        """Yield name and value of each step's variable. `root_pixels` is the size of 1rem."""
        for index, step in enumerate(self.steps):
            exponent = index - self.base_index
            min_size = self.min_size * self.min_ratio**exponent
            max_size = self.max_size * self.max_ratio**exponent
            yield scale_variable(self.naming, step), fluid_length(min_size, max_size, root_pixels)


DEFAULT_TYPE_SCALE = TokenScale(
    naming="text",
    steps=("xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"),
    base_index=2,
    min_size=16,
    min_ratio=1.125,
    max_size=18,
    max_ratio=1.333,
)
DEFAULT_SPACING_SCALE = TokenScale(
    naming="space",
    steps=("4xs", "3xs", "2xs", "xs", "s", "m", "l", "xl", "2xl", "3xl", "4xl"),
    base_index=5,
    min_size=16,
    min_ratio=1.25,
    max_size=28,
    max_ratio=1.414,
)


def scale_variable(naming: str, step: str) -> str:
    """Return the CSS variable of a step. The naming may say where the step goes: `space-{step}`."""
    name = naming.replace("{step}", step, 1) if "{step}" in naming else f"{naming}-{step}"
    return "--" + re.sub(r"\s", "-", name)


def fluid_length(min_size: float, max_size: float, root_pixels: float) -> str:
    """Return a CSS length that grows with the screen between two sizes in pixels, written in rem."""
    slope = (max_size - min_size) / (MAX_SCREEN_PIXELS - MIN_SCREEN_PIXELS)
    low, start, high = (
        f"{format_css_number(round_css_number(pixels) / root_pixels)}rem"
        for pixels in (min_size, min_size - slope * MIN_SCREEN_PIXELS, max_size)
    )
    return f"clamp({low}, calc({format_css_number(slope * 100)}vw + {start}), {high})"


def parse_fluid_length(value: str, root_pixels: float) -> tuple[float, float] | None:
    """Return sizes in pixels from which `fluid_length` makes this value; None if there are none.

    The value is rounded, so several sizes make it.
    """
    match = _FLUID_LENGTH.fullmatch(value)
    if match is None:
        return None
    for slope_offset, start_offset in product(_ROUNDING_OFFSETS, repeat=2):
        slope = (float(match[1]) + slope_offset) / 100
        start = (float(match[2]) + start_offset) * root_pixels
        sizes = start + slope * MIN_SCREEN_PIXELS, start + slope * MAX_SCREEN_PIXELS
        if fluid_length(*sizes, root_pixels) == value:
            return sizes
    return None
