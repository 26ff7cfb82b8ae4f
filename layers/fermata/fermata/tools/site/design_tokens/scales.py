"""Fluid type and spacing scales: one CSS `clamp()` per step, growing with the width of the screen."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from fermata.tools.site.design_tokens.css_numbers import format_css_number, round_like_editor
from fermata.tools.site.snapshot import FiniteNumber, LenientModel
from fermata.tools.tool import ToolFailure


class ScalePreferences(LenientModel):
    root_font_size: FiniteNumber = 10
    min_screen_width: FiniteNumber = 320
    max_screen_width: FiniteNumber = 1400
    is_rem: bool = True


class ScaleEnd(LenientModel):
    """One end of a fluid scale. Type scales call their base `fontSize`, spacing scales `size`."""

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
    """`text-*`, `padding-{step}` or a bare prefix, for the steps of the group `tab_id`."""

    name: str
    tab_id: str = ""
    is_disabled: bool = False


class ScaleSettings(LenientModel):
    groups: tuple[ScaleGroup, ...] = ()
    classes: tuple[ClassGenerator, ...] = ()
    is_disabled: bool = False


@dataclass(frozen=True)
class ScaleFamily:
    """What a group of this family is when it does not say otherwise."""

    name: str
    naming: str
    steps: str
    base_index: int
    min_base: float
    min_ratio: float
    max_base: float
    max_ratio: float


MAX_SCALE_STEPS = 100
"""More than any scale has; a longer list is not one."""

TYPE_SCALE = ScaleFamily("typography", "text", "xs,s,m,l,xl,2xl,3xl,4xl", 2, 16, 1.125, 18, 1.333)
SPACING_SCALE = ScaleFamily("spacing", "space", "4xs,3xs,2xs,xs,s,m,l,xl,2xl,3xl,4xl", 5, 16, 1.25, 28, 1.414)


@dataclass(frozen=True)
class ScaleStep:
    label: str
    variable: str
    min_px: float
    max_px: float


def describe_scales(
    family: ScaleFamily, settings: ScaleSettings, preferences: ScalePreferences
) -> list[dict[str, Any]]:
    if settings.is_disabled:
        return []
    groups = sorted(settings.groups, key=lambda group: group.order)
    described = [_describe(family, group, settings, preferences) for group in groups if not group.is_disabled]
    return [group for group in described if group["steps"]]


def _describe(
    family: ScaleFamily, group: ScaleGroup, settings: ScaleSettings, preferences: ScalePreferences
) -> dict[str, Any]:
    generators = [one for one in settings.classes if one.tab_id and one.tab_id == group.id and not one.is_disabled]
    try:
        steps = [_described_step(step, generators, preferences) for step in compute_scale_steps(family, group)]
    except ArithmeticError:
        told = f"The {family.name} scale {group.name or group.id!r} cannot be computed from its numbers."
        raise ToolFailure(told) from None
    naming = group.naming_convention or family.naming
    return {"id": group.id, "family": family.name, "name": group.name, "namingConvention": naming, "steps": steps}


def _described_step(step: ScaleStep, generators: list[ClassGenerator], preferences: ScalePreferences) -> dict[str, Any]:
    classes = (_class_name(generator.name, step.label) for generator in generators)
    return {
        "step": step.label,
        "cssVar": step.variable,
        "ref": f"var({step.variable})",
        "value": format_css_clamp(step.min_px, step.max_px, preferences),
        "utilityClasses": [name for name in classes if name],
    }


def compute_scale_steps(family: ScaleFamily, group: ScaleGroup) -> Iterator[ScaleStep]:
    labels = [label for label in (part.strip() for part in (group.steps or family.steps).split(",")) if label]
    labels = labels[:MAX_SCALE_STEPS]
    if group.mode == "fluid_manual":
        for place, size in enumerate(group.manual_sizes):
            label = labels[place] if place < len(labels) else size.name
            yield ScaleStep(label, _manual_variable(size.name), size.min, size.max)
        return
    base_index = family.base_index if group.base_scale_index is None else group.base_scale_index
    for place, label in enumerate(labels):
        low = _size(group.min, family.min_base, family.min_ratio, place - base_index)
        high = _size(group.max, family.max_base, family.max_ratio, place - base_index)
        yield ScaleStep(label, format_step_variable(group.naming_convention or family.naming, label), low, high)


def _size(end: ScaleEnd, base: float, ratio: float, exponent: int) -> float:
    if end.is_custom_scale_ratio and end.scale_ratio_input_value is not None:
        ratio = end.scale_ratio_input_value
    elif end.scale_ratio is not None:
        ratio = end.scale_ratio
    own_base = end.size if end.font_size is None else end.font_size
    return float((base if own_base is None else own_base) * ratio**exponent)


def format_css_clamp(min_px: float, max_px: float, preferences: ScalePreferences) -> str:
    """Ends are not swapped where the smaller screen has the larger size; the editor writes them so as well."""
    widths = preferences.max_screen_width - preferences.min_screen_width
    slope = (max_px - min_px) / widths
    intercept = min_px - slope * preferences.min_screen_width
    start, low, high = (_length(px, preferences) for px in (intercept, min_px, max_px))
    return f"clamp({low}, calc({format_css_number(slope * 100)}vw + {start}), {high})"


def _length(px: float, preferences: ScalePreferences) -> str:
    """Rounded in pixels first, then once more in rem."""
    if preferences.is_rem:
        return f"{format_css_number(round_like_editor(px) / preferences.root_font_size)}rem"
    return f"{format_css_number(px)}px"


def format_step_variable(naming: str, step: str) -> str:
    """Of a step that is not sized by hand; `*` for the step makes the pattern of all of them."""
    name = naming.replace("{step}", step, 1) if "{step}" in naming else f"{naming}-{step}"
    return "--" + re.sub(r"\s", "-", name)


def _manual_variable(name: str) -> str:
    """The size's own name, made safe for CSS: `Text M` and `textM` are `--text-m`."""
    safe = re.sub(r"[^a-zA-Z0-9_-]", "", re.sub(r"\s+", "-", name)) or "size"
    dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", safe).lower()
    return dashed if dashed.startswith("--") else f"--{dashed}"


def _class_name(pattern: str, step: str) -> str:
    name = pattern.strip().removeprefix(".")
    if not name:
        return ""
    for place in ("*", "{step}"):
        if place in name:
            return name.replace(place, step)
    return f"{name}-{step}"
