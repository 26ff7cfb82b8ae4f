"""Make of an upload the files that are stored of it: an image in its sizes, a clean SVG, a PDF or video as it is."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import NamedTuple

from fermata.content.media.blurhash import compute_blurhash
from fermata.content.media.clean_svg import clean_svg
from fermata.content.media.media_kind import PIXEL_TYPES, SVG, detect_media_type
from fermata.content.media.redraw_image import ORIGINAL, THUMBNAIL, RedrawnFile, redraw_image
from fermata.content.media.variant_presets import FocalPoint, PresetSize, draw_preset


class PreparedMedia(NamedTuple):
    """The files of an upload, the whole one first, and the BlurHash of an image; empty of anything else."""

    files: list[RedrawnFile]
    blurhash: str = ""


def prepare_media(raw: bytes, sizes: Sequence[PresetSize] = ()) -> PreparedMedia:
    """Return what is stored of an upload.

    Args:
        raw: The file as somebody has uploaded it.
        sizes: Those of a preset, which an image of pixels has too. Others look the same in any size.

    Raises:
        InvalidImageError: It is of no kind that is stored, or damaged.
        ImageTooLargeError: It has too many bytes, pixels or parts.
    """
    kind = detect_media_type(raw)
    if kind in PIXEL_TYPES:
        files = redraw_image(raw)
        return PreparedMedia([*files, *draw_sizes(raw, sizes)], _compute_blurhash(files))
    if kind == SVG:
        clean = clean_svg(raw)
        return PreparedMedia([RedrawnFile(ORIGINAL, SVG, clean.width, clean.height, clean.data)])
    return PreparedMedia([RedrawnFile(ORIGINAL, kind, 0, 0, raw)])


def draw_sizes(raw: bytes, sizes: Sequence[PresetSize], focus: FocalPoint | None = None) -> list[RedrawnFile]:
    """Return the sizes of a preset; none without one, or of what is not made of pixels.

    Args:
        raw: The file as somebody has uploaded it.
        sizes: Those of the preset.
        focus: What is not cut off.

    Raises:
        InvalidImageError: As in `draw_preset`.
    """
    return draw_preset(raw, sizes, focus) if sizes and detect_media_type(raw) in PIXEL_TYPES else []


def _compute_blurhash(files: list[RedrawnFile]) -> str:
    """Compute the BlurHash from the smallest file that shows all of an image."""
    from PIL import Image

    whole = min((file for file in files if file.name != THUMBNAIL), key=lambda file: file.width)
    with Image.open(io.BytesIO(whole.data)) as image:
        return compute_blurhash(image if image.mode == "RGBA" else image.convert("RGB"))
