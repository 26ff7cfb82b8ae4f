"""`set_type_scale` and `set_spacing_scale`: set the steps of a scale."""

import re
from dataclasses import replace

from fermata_client.design_tokens.css_numbers import round_css_number
from fermata_client.design_tokens.custom_properties import PageScale, find_scales, root_font_pixels
from fermata_client.design_tokens.fluid_scales import DEFAULT_SPACING_SCALE, DEFAULT_TYPE_SCALE, TokenScale
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.tools.arguments import (
    ToolArguments,
    optional_integer,
    optional_number,
    optional_object,
    optional_text,
)
from fermata_client.tools.design_tokens.property_changes import CustomPropertyChanges
from fermata_client.tools.tool_function import ToolEffectWithData

MAX_SCALE_STEPS = 100
MAX_SCALE_NUMBER = 10_000.0
BASE_STEP = "m"


def set_type_scale(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    return _set_scale(document, arguments, "typography", DEFAULT_TYPE_SCALE, "fontSize")


def set_spacing_scale(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    return _set_scale(document, arguments, "spacing", DEFAULT_SPACING_SCALE, "size")


def _set_scale(
    document: HtmlDocument, arguments: ToolArguments, family: str, default: TokenScale, size_member: str
) -> ToolEffectWithData:
    page_scale = _select_scale(document, arguments, family, default)
    if page_scale.sizes:
        start_scale = _scale_from_page(page_scale, default)
    else:
        start_scale = replace(default, naming=page_scale.naming)
    scale = _apply_arguments(start_scale, arguments, size_member)
    try:
        values = dict(scale.css_variables(root_font_pixels(document)))
    except (ArithmeticError, ValueError):
        raise EditError("These numbers make no scale. A ratio is usually between 1 and 2.") from None
    return CustomPropertyChanges(values).apply_to(document), {
        "groupId": scale.naming,
        "action": "updated" if page_scale.sizes else "created",
        "namingConvention": scale.naming,
        "generatedVars": list(values),
        "used": {
            "steps": ",".join(scale.steps),
            "baseScaleIndex": scale.base_index,
            "min": {size_member: scale.min_size, "scaleRatio": scale.min_ratio},
            "max": {size_member: scale.max_size, "scaleRatio": scale.max_ratio},
        },
    }


def _select_scale(document: HtmlDocument, arguments: ToolArguments, family: str, default: TokenScale) -> PageScale:
    """Return the scale that the call names, or else the first one of the family, or else a new one without sizes."""
    scale_by_naming = {scale.naming: scale for scale in find_scales(document) if scale.family == family}
    group_id = optional_text(arguments, "groupId")
    if group_id and group_id not in scale_by_naming:
        available = ", ".join(scale_by_naming) or "none"
        raise EditError(f"There is no {family} scale {group_id} here. There is: {available}.")
    naming = optional_text(arguments, "namingConvention").strip().removeprefix("--")
    if naming and not re.fullmatch(r"[A-Za-z][\w{} -]*", naming):
        raise EditError("`namingConvention` is the beginning of a variable's name, such as text or space.")
    name = group_id or naming or next(iter(scale_by_naming), default.naming)
    scale = scale_by_naming.get(name, PageScale(family, name, {}))
    return scale if not naming or naming == scale.naming else PageScale(family, naming, {})


def _scale_from_page(page_scale: PageScale, default: TokenScale) -> TokenScale:
    """Derive the scale from the page's sizes, as far as two neighbouring steps determine it (decision 0123)."""
    steps, sizes = tuple(page_scale.sizes), list(page_scale.sizes.values())
    base_index = min(steps.index(BASE_STEP) if BASE_STEP in steps else default.base_index, len(steps) - 2)
    (min_size, max_size), (next_min, next_max) = sizes[base_index], sizes[base_index + 1]
    min_ratio = next_min / min_size if min_size else 0
    max_ratio = next_max / max_size if max_size else 0
    if not (min_ratio and max_ratio):
        return replace(default, naming=page_scale.naming, steps=steps)
    return TokenScale(
        naming=page_scale.naming,
        steps=steps,
        base_index=base_index,
        min_size=round_css_number(min_size),
        min_ratio=round_css_number(min_ratio),
        max_size=round_css_number(max_size),
        max_ratio=round_css_number(max_ratio),
    )


def _apply_arguments(scale: TokenScale, arguments: ToolArguments, size_member: str) -> TokenScale:
    """Return the scale with what the call sets. What it leaves out stays."""
    steps = [step.strip() for step in optional_text(arguments, "steps").split(",") if step.strip()]
    if len(steps) > MAX_SCALE_STEPS or not all(re.fullmatch(r"[\w-]+", step) for step in steps):
        raise EditError("`steps` are names of letters and digits with commas between them, such as s,m,l.")
    narrow, wide = optional_object(arguments, "min"), optional_object(arguments, "max")
    base_index = optional_integer(arguments, "baseScaleIndex")
    return TokenScale(
        naming=scale.naming,
        steps=tuple(steps) or scale.steps,
        base_index=scale.base_index if base_index is None else base_index,
        min_size=_positive_number(narrow, size_member, scale.min_size),
        min_ratio=_positive_number(narrow, "scaleRatio", scale.min_ratio),
        max_size=_positive_number(wide, size_member, scale.max_size),
        max_ratio=_positive_number(wide, "scaleRatio", scale.max_ratio),
    )


def _positive_number(arguments: ToolArguments, name: str, default: float) -> float:
    value = optional_number(arguments, name)
    if value is not None and not 0 < value <= MAX_SCALE_NUMBER:
        raise EditError(f"`{name}` must be a number above 0.")
    return default if value is None else value
