"""Compute fluid type and spacing scales: one CSS `clamp()` per step, which grows with the width of the screen."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.lenient_models import FiniteNumber, LenientModel
from fermata.tools.site.design_tokens.css_numbers import format_css_number, round_like_editor
from fermata.tools.tool import ToolFailure


class ScalePreferences(LenientModel):
    root_font_size: FiniteNumber = 10
    min_screen_width: FiniteNumber = 320
    max_screen_width: FiniteNumber = 1400
    is_rem: bool = True


class ScaleEnd(LenientModel):
    """One end of a fluid scale. The base size is `fontSize` in type scales and `size` in spacing scales."""

    font_size: FiniteNumber | None = None
    size: FiniteNumber | None = None
    scale_ratio: FiniteNumber | None = None
    is_custom_scale_ratio: bool = False
    scale_ratio_input_value: FiniteNumber | None = None


class ManualSize(LenientModel):
    name: str
    min: FiniteNumber
    max: FiniteNumber


class ScaleGroup(LenientModel):
    id: str = ""
    name: str = ""
    naming_convention: str = ""
    mode: Literal["fluid", "fluid_manual"] = "fluid"
    min: ScaleEnd = Field(default_factory=ScaleEnd)
    max: ScaleEnd = Field(default_factory=ScaleEnd)
    steps: str = ""
    base_scale_index: int | None = None
    manual_sizes: tuple[ManualSize, ...] = ()
    is_disabled: bool = False
    order: FiniteNumber = 0


class ClassGenerator(LenientModel):
    """A pattern of utility classes (`text-*`, `padding-{step}` or a prefix) for the steps of the group `tab_id`."""

    name: str
    tab_id: str = ""
    is_disabled: bool = False


class ScaleSettings(LenientModel):
    groups: tuple[ScaleGroup, ...] = ()
    classes: tuple[ClassGenerator, ...] = ()
    is_disabled: bool = False


@value_dataclass(frozen=True)
class ScaleFamily:
    """The defaults of the groups of one family."""

    name: str
    naming_convention: str
    steps: str
    base_index: int
    min_base: float
    min_ratio: float
    max_base: float
    max_ratio: float


MAX_SCALE_STEPS = 100
"""More than any real scale has."""

TYPE_SCALE = ScaleFamily("typography", "text", "xs,s,m,l,xl,2xl,3xl,4xl", 2, 16, 1.125, 18, 1.333)
SPACING_SCALE = ScaleFamily("spacing", "space", "4xs,3xs,2xs,xs,s,m,l,xl,2xl,3xl,4xl", 5, 16, 1.25, 28, 1.414)


@value_dataclass(frozen=True)
class ScaleStep:
    label: str
    variable: str
    min_px: float
    max_px: float


def describe_scales(
    family: ScaleFamily, settings: ScaleSettings, preferences: ScalePreferences
) -> list[dict[str, Any]]:
    """Describe the groups of a scale that have steps.

    Args:
        family: Which scale it is.
        settings: The site's settings of that scale.
        preferences: How the site computes steps.
    """
    if settings.is_disabled:
        return []
    groups = sorted(settings.groups, key=lambda group: group.order)
    descriptions = [_describe_group(family, group, settings, preferences) for group in groups if not group.is_disabled]
    return [group for group in descriptions if group["steps"]]


def _describe_group(
    family: ScaleFamily, group: ScaleGroup, settings: ScaleSettings, preferences: ScalePreferences
) -> dict[str, Any]:
    generators = [
        generator
        for generator in settings.classes
        if generator.tab_id and generator.tab_id == group.id and not generator.is_disabled
    ]
    try:
        steps = [_describe_step(step, generators, preferences) for step in compute_scale_steps(family, group)]
    except ArithmeticError:
        scale = f"{family.name} scale {group.name or group.id!r}"
        raise ToolFailure(f"The {scale} cannot be computed from its numbers.") from None
    naming = group.naming_convention or family.naming_convention
    return {"id": group.id, "family": family.name, "name": group.name, "namingConvention": naming, "steps": steps}


def _describe_step(step: ScaleStep, generators: list[ClassGenerator], preferences: ScalePreferences) -> dict[str, Any]:
    classes = (_format_class_name(generator.name, step.label) for generator in generators)
    return {
        "step": step.label,
        "cssVar": step.variable,
        "ref": f"var({step.variable})",
        "value": format_css_clamp(step.min_px, step.max_px, preferences),
        "utilityClasses": [name for name in classes if name],
    }


def compute_scale_steps(family: ScaleFamily, group: ScaleGroup) -> Iterator[ScaleStep]:
    """Compute the steps of a group, from the smallest to the largest; raises ArithmeticError for absurd numbers."""
    labels = [label for label in (part.strip() for part in (group.steps or family.steps).split(",")) if label]
    labels = labels[:MAX_SCALE_STEPS]
    if group.mode == "fluid_manual":
        for index, size in enumerate(group.manual_sizes):
            label = labels[index] if index < len(labels) else size.name
            yield ScaleStep(label, _format_manual_variable(size.name), size.min, size.max)
        return
    base_index = family.base_index if group.base_scale_index is None else group.base_scale_index
    for index, label in enumerate(labels):
        low = _compute_size(group.min, family.min_base, family.min_ratio, index - base_index)
        high = _compute_size(group.max, family.max_base, family.max_ratio, index - base_index)
        yield ScaleStep(
            label, format_step_variable(group.naming_convention or family.naming_convention, label), low, high
        )


def _compute_size(end: ScaleEnd, base: float, ratio: float, exponent: int) -> float:
    if end.is_custom_scale_ratio and end.scale_ratio_input_value is not None:
        ratio = end.scale_ratio_input_value
    elif end.scale_ratio is not None:
        ratio = end.scale_ratio
    base_size = end.size if end.font_size is None else end.font_size
    return float((base if base_size is None else base_size) * ratio**exponent)


def format_css_clamp(min_px: float, max_px: float, preferences: ScalePreferences) -> str:
    """Format a size that grows linearly with the screen width.

    Like the editor, it does not swap the ends if the narrow screen has the larger size.
    """
    width_range = preferences.max_screen_width - preferences.min_screen_width
    slope = (max_px - min_px) / width_range
    intercept = min_px - slope * preferences.min_screen_width
    start, low, high = (_format_length(px, preferences) for px in (intercept, min_px, max_px))
    return f"clamp({low}, calc({format_css_number(slope * 100)}vw + {start}), {high})"


def _format_length(px: float, preferences: ScalePreferences) -> str:
    """Format pixels as px or rem; for rem, the pixels are rounded before the division, and the quotient after it."""
    if preferences.is_rem:
        return f"{format_css_number(round_like_editor(px) / preferences.root_font_size)}rem"
    return f"{format_css_number(px)}px"


def format_step_variable(naming: str, step: str) -> str:
    """Format the CSS variable of a step of a fluid scale; the step `*` gives the pattern of all variables."""
    name = naming.replace("{step}", step, 1) if "{step}" in naming else f"{naming}-{step}"
    return "--" + re.sub(r"\s", "-", name)


def _format_manual_variable(name: str) -> str:
    """Format the CSS variable of a manual size from its name: `--text-m` from `Text M` or `textM`."""
    safe = re.sub(r"[^a-zA-Z0-9_-]", "", re.sub(r"\s+", "-", name)) or "size"
    dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", safe).lower()
    return dashed if dashed.startswith("--") else f"--{dashed}"


def _format_class_name(pattern: str, step: str) -> str:
    name = pattern.strip().removeprefix(".")
    if not name:
        return ""
    for placeholder in ("*", "{step}"):
        if placeholder in name:
            return name.replace(placeholder, step)
    return f"{name}-{step}"
