"""Define the tools for the design system: colours, fonts, and the fluid scales of type and space."""

from typing import Annotated

from pydantic import Field

from fermata.tools.input_types import NonEmptyText, ZeroBasedIndex
from fermata.tools.site.permissions import CAN_EDIT_STYLE
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ToolInput


class ColorTokenInput(ToolInput):
    slug: NonEmptyText
    light_value: NonEmptyText
    category: str | None = None
    dark_value: str | None = None
    dark_mode_enabled: bool | None = None


class SetColorTokensInput(ToolInput):
    tokens: Annotated[tuple[ColorTokenInput, ...], Field(min_length=1)]


class FontTokenInput(ToolInput):
    name: NonEmptyText
    variable: str | None = None
    fallback: str | None = None
    google_family: str | None = None
    variants: tuple[NonEmptyText, ...] | None = None
    subsets: tuple[NonEmptyText, ...] | None = None
    family_id: NonEmptyText | None = None


class SetFontTokensInput(ToolInput):
    tokens: Annotated[tuple[FontTokenInput, ...], Field(min_length=1)]


class ScaleInput(ToolInput):
    """`steps` are their names, smallest first, with commas between; `base_scale_index` is the one `min`/`max` size."""

    group_id: NonEmptyText | None = None
    naming_convention: NonEmptyText | None = None
    steps: NonEmptyText | None = None
    base_scale_index: ZeroBasedIndex | None = None


class TypeScaleEndInput(ToolInput):
    font_size: float | None = None
    scale_ratio: float | str | None = None


class SetTypeScaleInput(ScaleInput):
    min: TypeScaleEndInput | None = None
    max: TypeScaleEndInput | None = None


class SpacingScaleEndInput(ToolInput):
    size: float | None = None
    scale_ratio: float | str | None = None


class SetSpacingScaleInput(ScaleInput):
    min: SpacingScaleEndInput | None = None
    max: SpacingScaleEndInput | None = None


DESIGN_TOKEN_TOOLS = (
    SITE_TOOL_FACTORY.browser_write(
        name="set_color_tokens",
        description="Creates colour tokens, or changes those whose slug exists; each one is then there as "
        "var(--slug), with shades, tints and utility classes. `darkValue` counts where `darkModeEnabled` is true.",
        input_model=SetColorTokensInput,
        permissions=CAN_EDIT_STYLE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="set_font_tokens",
        description="Creates font tokens, or changes those whose variable exists. Give each at most one of "
        "`googleFamily`, which installs that web font with its `variants` and `subsets`, and `familyId`, which takes "
        "an installed family. With neither, it is its `fallback` only.",
        input_model=SetFontTokensInput,
        permissions=CAN_EDIT_STYLE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="set_type_scale",
        description="Creates or changes the scale of font sizes, var(--text-…): `min` and `max` are for narrow and "
        "wide screens: the base size in px and the ratio between steps. `steps` are the names from small to large, "
        "with commas between. `baseScaleIndex` says which of them has the base size. What is left out stays as it is.",
        input_model=SetTypeScaleInput,
        permissions=CAN_EDIT_STYLE,
    ),
    SITE_TOOL_FACTORY.browser_write(
        name="set_spacing_scale",
        description="Creates or changes the scale of distances, var(--space-…): `min` and `max` are for narrow and "
        "wide screens: the base size in px and the ratio between steps. `steps` are the names from small to large, "
        "with commas between. `baseScaleIndex` says which of them has the base size. What is left out stays as it is.",
        input_model=SetSpacingScaleInput,
        permissions=CAN_EDIT_STYLE,
    ),
)
