"""Draw the sizes of an image that a preset names, each cut or fitted to its place on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fermata.content.media.redraw_image import RedrawnFile, open_upright_image, write_image

if TYPE_CHECKING:
    from PIL.Image import Image

_QUALITY = 85


class FocalPoint(NamedTuple):
    """What a cut keeps in its middle as far as it can: a place of an image, from 0 to 1 across and down."""

    x: float = 0.5
    y: float = 0.5

    @classmethod
    def parse(cls, value: Any) -> FocalPoint:
        """Return the point that a field of an asset says; the middle if it says none."""
        across, down = (value.get("x"), value.get("y")) if isinstance(value, Mapping) else (None, None)
        if not isinstance(across, int | float) or not isinstance(down, int | float):
            return cls()
        return cls(float(across), float(down)) if 0 <= across <= 1 and 0 <= down <= 1 else cls()


class PresetSize(NamedTuple):
    """A size of a preset.

    Attributes:
        is_cut: Whether the image fills it, and what is outside is cut off; else all of the image fits into it.
        box: How a size of a project's own preset is defined, by which it is known when that changes; else empty.
    """

    name: str
    width: int
    height: int
    kind: str = "WEBP"
    is_cut: bool = True
    box: str = ""


MEDIA_PRESETS: dict[str, tuple[PresetSize, ...]] = {
    "hero-image": (
        PresetSize("hero", 1920, 1080),
        PresetSize("card", 600, 400),
        PresetSize("preview", 300, 200),
        PresetSize("social", 1200, 630, "JPEG"),
    ),
    "avatar": (
        PresetSize("avatar-256", 256, 256),
        PresetSize("avatar-96", 96, 96),
        PresetSize("avatar-48", 48, 48),
    ),
    "gallery": (
        PresetSize("gallery", 1600, 1600, is_cut=False),
        PresetSize("tile", 400, 400),
    ),
    "icon": (
        PresetSize("icon-128", 128, 128, "PNG"),
        PresetSize("icon-64", 64, 64, "PNG"),
        PresetSize("icon-32", 32, 32, "PNG"),
    ),
    "logo": (
        PresetSize("logo", 400, 200, "PNG", is_cut=False),
        PresetSize("logo-small", 200, 100, "PNG", is_cut=False),
    ),
}


def draw_preset(raw: bytes, sizes: Sequence[PresetSize], focus: FocalPoint | None = None) -> list[RedrawnFile]:
    """Return the sizes of a preset. None is larger than the image: a smaller one keeps the shape of its place.

    Args:
        raw: The file as somebody has uploaded it.
        sizes: Those of the preset.
        focus: What is not cut off; the middle of the image without one.

    Raises:
        InvalidImageError: The bytes are no accepted image, or damaged.
        ImageTooLargeError: It has more pixels than are decoded.
    """
    image = open_upright_image(raw)
    point = focus or FocalPoint()
    return [write_image(size.name, _fit(image, size, point), size.kind, _QUALITY) for size in sizes]


def _fit(image: Image, size: PresetSize, focus: FocalPoint) -> Image:
    width, height = image.size
    if not size.is_cut:
        scale = min(1.0, size.width / width, size.height / height)
        return image.resize((max(1, round(width * scale)), max(1, round(height * scale))), reducing_gap=2.0)
    scale = min(width / size.width, height / size.height)
    cut_width, cut_height = size.width * scale, size.height * scale
    left = max(0.0, min(width * focus.x - cut_width / 2, width - cut_width))
    top = max(0.0, min(height * focus.y - cut_height / 2, height - cut_height))
    shrink = min(1.0, scale)
    target = (max(1, round(size.width * shrink)), max(1, round(size.height * shrink)))
    box = (left, top, min(width, left + cut_width), min(height, top + cut_height))
    return image.resize(target, box=box, reducing_gap=2.0)
