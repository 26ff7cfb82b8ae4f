"""The design system: colours, fonts, and the fluid scales of type and space."""

from typing import Annotated

from pydantic import Field

from fermata.tools.site.inputs import Place, Text
from fermata.tools.site.records import STYLE, browser_write
from fermata.tools.tool import ToolInput


class ColorToken(ToolInput):
    slug: Text
    light_value: Text
    category: str | None = None
    dark_value: str | None = None
    dark_mode_enabled: bool | None = None


class SetColorTokens(ToolInput):
    tokens: Annotated[tuple[ColorToken, ...], Field(min_length=1)]


class FontToken(ToolInput):
    name: Text
    variable: str | None = None
    fallback: str | None = None
    google_family: str | None = None
    variants: tuple[Text, ...] | None = None
    subsets: tuple[Text, ...] | None = None
    family_id: Text | None = None


class SetFontTokens(ToolInput):
    tokens: Annotated[tuple[FontToken, ...], Field(min_length=1)]


class Scale(ToolInput):
    """`steps` are their names, smallest first, with commas between; `base_scale_index` is the one `min`/`max` size."""

    group_id: Text | None = None
    naming_convention: Text | None = None
    steps: Text | None = None
    base_scale_index: Place | None = None


class TypeEnd(ToolInput):
    font_size: float | None = None
    scale_ratio: float | str | None = None


class SetTypeScale(Scale):
    min: TypeEnd | None = None
    max: TypeEnd | None = None


class SpacingEnd(ToolInput):
    size: float | None = None
    scale_ratio: float | str | None = None


class SetSpacingScale(Scale):
    min: SpacingEnd | None = None
    max: SpacingEnd | None = None


DESIGN = (
    browser_write(
        "set_color_tokens",
        "Creates colour tokens, or changes those whose slug exists; each one is then there as var(--slug), with "
        "shades, tints and utility classes. `darkValue` counts where `darkModeEnabled` is true.",
        SetColorTokens,
        STYLE,
    ),
    browser_write(
        "set_font_tokens",
        "Creates font tokens, or changes those whose variable exists. Give each at most one of `googleFamily`, which "
        "installs that web font with its `variants` and `subsets`, and `familyId`, which takes an installed family; "
        "with neither it is its `fallback` only.",
        SetFontTokens,
        STYLE,
    ),
    browser_write(
        "set_type_scale",
        "Creates or changes the scale of font sizes, var(--text-…): `min` and `max` are the base size in px and the "
        "ratio between steps on narrow and on wide screens, `steps` the names from small to large with commas "
        "between, `baseScaleIndex` which of them has the base size. What is left out stays as it is.",
        SetTypeScale,
        STYLE,
    ),
    browser_write(
        "set_spacing_scale",
        "Creates or changes the scale of distances, var(--space-…): `min` and `max` are the base size in px and the "
        "ratio between steps on narrow and on wide screens, `steps` the names from small to large with commas "
        "between, `baseScaleIndex` which of them has the base size. What is left out stays as it is.",
        SetSpacingScale,
        STYLE,
    ),
)
