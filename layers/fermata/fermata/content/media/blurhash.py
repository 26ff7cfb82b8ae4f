"""Compute the BlurHash of an image: 28 characters from which a page draws a blurred picture while it loads.

The format is https://github.com/woltapp/blurhash/blob/master/Algorithm.md. The hash has four components across and
three down, computed from 32 by 24 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"
_ACROSS, _DOWN = 4, 3
_WIDTH, _HEIGHT = 32, 24
_Color = tuple[float, float, float]


def compute_blurhash(image: Image) -> str:
    """Return the BlurHash of an image. What is transparent counts as white.

    Args:
        image: Its pixels, in RGB or RGBA.
    """
    light = [_to_light(value / 255) for value in range(256)]
    small = _put_on_white(image.resize((_WIDTH, _HEIGHT), reducing_gap=2.0)).tobytes()
    pixels = [(light[small[at]], light[small[at + 1]], light[small[at + 2]]) for at in range(0, len(small), 3)]
    across, down = _make_waves(_ACROSS, _WIDTH), _make_waves(_DOWN, _HEIGHT)
    average, *others = (_weigh(pixels, wave, column) for column in down for wave in across)
    greatest = max(abs(part) for color in others for part in color)
    steps = max(0, min(82, math.floor(greatest * 166 - 0.5)))
    scale = (steps + 1) / 166
    size = _to_digits(_ACROSS - 1 + (_DOWN - 1) * 9, 1)
    first = _to_digits(sum(_to_byte(part) << shift for part, shift in zip(average, (16, 8, 0), strict=True)), 4)
    return size + _to_digits(steps, 1) + first + "".join(_encode_wave(color, scale) for color in others)


def _put_on_white(image: Image) -> Image:
    if image.mode != "RGBA":
        return image.convert("RGB")
    from PIL import Image as PillowImage

    white = PillowImage.new("RGBA", image.size, "white")
    white.alpha_composite(image)
    return white.convert("RGB")


def _make_waves(count: int, length: int) -> list[list[float]]:
    return [[math.cos(math.pi * wave * at / length) for at in range(length)] for wave in range(count)]


def _weigh(pixels: Sequence[_Color], across: Sequence[float], down: Sequence[float]) -> _Color:
    """Return how much of one wave is in the pixels, for red, green and blue."""
    red = green = blue = 0.0
    weights = (vertical * horizontal for vertical in down for horizontal in across)
    for weight, (own_red, own_green, own_blue) in zip(weights, pixels, strict=True):
        red += weight * own_red
        green += weight * own_green
        blue += weight * own_blue
    is_average = across[-1] == down[-1] == 1
    scale = (1 if is_average else 2) / len(pixels)
    return red * scale, green * scale, blue * scale


def _encode_wave(color: _Color, scale: float) -> str:
    steps = [_to_step(part / scale) for part in color]
    return _to_digits((steps[0] * 19 + steps[1]) * 19 + steps[2], 2)


def _to_step(part: float) -> int:
    root = math.copysign(math.sqrt(abs(part)), part)
    return max(0, min(18, math.floor(root * 9 + 9.5)))


def _to_light(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _to_byte(light: float) -> int:
    part = max(0.0, min(1.0, light))
    byte = part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055
    return int(byte * 255 + 0.5)


def _to_digits(number: int, count: int) -> str:
    return "".join(_DIGITS[number // 83**place % 83] for place in reversed(range(count)))
