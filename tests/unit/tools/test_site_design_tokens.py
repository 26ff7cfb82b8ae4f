"""Design tokens are computed from the raw snapshot exactly as the editor writes them into CSS."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.site.design_tokens.colors import parse_color, slugify_color_name, to_hsla_text
from fermata.tools.site.design_tokens.css_numbers import format_css_number, round_like_editor
from fermata.tools.site.design_tokens.fonts import to_font_variable
from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.unit.tools.builders import (
    PRIMARY_COLOR,
    contract_cases,
    make_call,
    make_context,
    make_site_snapshot,
    run_tool,
)


def list_colors(*tokens: dict[str, Any]) -> list[dict[str, Any]]:
    return list_tokens(make_site_snapshot(framework={"colors": {"tokens": list(tokens)}}))["colors"]


def get_only_case(area: str, case: str | None = None) -> tuple[Any, Any]:
    ((_, case_input, expected),) = [item for item in contract_cases(area) if case in (None, item[0])]
    return case_input, expected


def call_list_tokens(snapshot: Any, **arguments: Any) -> ToolOutput:
    outcome = admit_call(SITE_TOOLSET, make_call("list_tokens", arguments), make_context(snapshot=snapshot))
    assert isinstance(outcome, AdmittedCall)
    return run_tool(outcome, make_context(snapshot=snapshot))


def test_a_colour_that_cannot_be_parsed_stays_as_written_and_has_no_variants() -> None:
    case_input, expected = get_only_case("colorToken", "C172")
    (token,) = list_colors(case_input)
    assert {token["cssVar"]: token["value"]} == {"--ink": expected["--ink"]}
    assert len(token["variants"]) == expected["derived_variants"]


def test_repeated_slugs_are_numbered_in_order() -> None:
    case_input, expected = get_only_case("colorToken", "C173")
    tokens = [{"slug": slug, "lightValue": "#fff", "order": order} for order, slug in enumerate(case_input["slugs"])]
    assert [token["slug"] for token in list_colors(*tokens)] == expected


def test_numbering_skips_a_slug_that_exists() -> None:
    case_input = [{"slug": slug, "lightValue": "#fff", "order": i} for i, slug in enumerate(["a", "a-2", "a"])]
    assert [token["slug"] for token in list_colors(*case_input)] == ["a", "a-2", "a-3"]


def test_a_colour_has_a_variable_a_reference_utility_classes_and_variants() -> None:
    (token,) = list_colors({**PRIMARY_COLOR, "category": "Brand"})
    assert {key: token[key] for key in token if key != "variants"} == {
        "slug": "primary",
        "category": "Brand",
        "cssVar": "--primary",
        "ref": "var(--primary)",
        "value": "hsla(217.22, 91.22%, 59.8%, 1)",
        "utilityClasses": ["text-primary", "bg-primary", "border-primary"],
    }
    transparent = ["5", *(str(step) for step in range(10, 100, 10))]
    shades, tints = [f"d-{i}" for i in range(1, 5)], [f"l-{i}" for i in range(1, 5)]
    assert [variant["variant"] for variant in token["variants"]] == transparent + shades + tints


def test_variants_are_computed_from_the_lightness_and_the_step() -> None:
    (token,) = list_colors({"slug": "p", "lightValue": "hsl(210, 50%, 50%)"})
    values = {variant["cssVar"]: variant["value"] for variant in token["variants"]}
    assert values["--p-30"] == "hsla(210, 50%, 50%, 0.3)"
    assert values["--p-d-1"] == "hsla(210, 50%, 42%, 1)"
    assert values["--p-d-4"] == "hsla(210, 50%, 18%, 1)"
    assert values["--p-l-1"] == "hsla(210, 50%, 58%, 1)"
    assert values["--p-l-4"] == "hsla(210, 50%, 82%, 1)"


def test_a_variant_has_its_own_utility_classes() -> None:
    utilities = {"text": True, "background": False, "border": False, "fill": True}
    (token,) = list_colors({**PRIMARY_COLOR, "generateUtilities": utilities, "generateTransparent": False})
    assert token["variants"][0]["utilityClasses"] == ["text-primary-d-1", "fill-primary-d-1"]


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (-3, 0), (2, 2), (2.9, 2), (99, 12)])
def test_the_number_of_shades_is_clamped(count: float, kept: int) -> None:
    off = {"generateTransparent": False, "generateTints": {"enabled": False}}
    (token,) = list_colors({**PRIMARY_COLOR, **off, "generateShades": {"enabled": True, "count": count}})
    assert [variant["variant"] for variant in token["variants"]] == [f"d-{i}" for i in range(1, kept + 1)]


def test_a_dark_value_requires_dark_mode() -> None:
    dark = {**PRIMARY_COLOR, "darkValue": "#000"}
    assert "darkValue" not in list_colors(dark)[0]
    assert list_colors({**dark, "darkModeEnabled": True})[0]["darkValue"] == "hsla(0, 0%, 0%, 1)"


def test_colours_are_sorted_by_order_then_slug() -> None:
    case_input = [
        {"slug": slug, "lightValue": "#fff", "order": order} for slug, order in (("z", 0), ("b", 1), ("a", 1))
    ]
    assert [token["slug"] for token in list_colors(*case_input)] == ["z", "a", "b"]


@pytest.mark.parametrize(
    ("written_as", "value"),
    [
        ("#fff", "hsla(0, 0%, 100%, 1)"),
        ("#F00", "hsla(0, 100%, 50%, 1)"),
        (" #00ff00 ", "hsla(120, 100%, 50%, 1)"),
        ("#ff0080", "hsla(329.88, 100%, 50%, 1)"),
        ("rgb(0, 0, 255)", "hsla(240, 100%, 50%, 1)"),
        ("rgba(0 0 255 / 50%)", "hsla(240, 100%, 50%, 0.5)"),
        ("rgba(300,0,0,.25)", "hsla(0, 100%, 50%, 0.25)"),
        ("hsl(-30, 120%, 50%)", "hsla(330, 100%, 50%, 1)"),
        ("HSLA(238deg, 100%, 62%, 0.4)", "hsla(238, 100%, 62%, 0.4)"),
        ("#3b82f680", "#3b82f680"),
        ("rebeccapurple", "rebeccapurple"),
        ("hsl(238 100% 62%)", "hsl(238 100% 62%)"),
        (" color-mix(in srgb, red, blue) ", "color-mix(in srgb, red, blue)"),
        ("", ""),
    ],
)
def test_colours_that_the_editor_can_parse_become_hsla(written_as: str, value: str) -> None:
    assert to_hsla_text(written_as) == value


@given(st.text(alphabet="rgbahsl#0123456789.,%/() deg-+", max_size=30) | st.text(max_size=12))
def test_no_text_breaks_the_colour_parser(text: str) -> None:
    color = parse_color(text)
    assert color is None or re.fullmatch(r"hsla\([\d.]+, [\d.]+%, [\d.]+%, [\d.]+\)", str(color))


@pytest.mark.parametrize(
    ("name", "slug"), [("Primary Color", "primary-color"), ("--ink", "ink"), ("Tür 2!", "t-r-2"), ("---", "color")]
)
def test_colour_slugs_have_only_letters_digits_and_dashes(name: str, slug: str) -> None:
    assert slugify_color_name(name) == slug


def compute_scale(family: str, case_input: dict[str, Any], **preferences: Any) -> dict[str, str]:
    group = {"id": "g1", "name": "Scale", **case_input}
    framework = {family: {"groups": [group]}, "preferences": preferences}
    (described_group,) = list_tokens(make_site_snapshot(framework=framework))[family]
    return {step["cssVar"]: step["value"] for step in described_group["steps"]}


def test_the_type_scale_equals_the_editors() -> None:
    case_input, expected = get_only_case("typeScale")
    values = compute_scale("typography", {**case_input, "namingConvention": "text"})
    assert {name: values[name] for name in expected} == expected
    assert len(values) == 8


def test_the_spacing_scale_equals_the_editors() -> None:
    case_input, expected = get_only_case("spacingScale")
    case_input = {key: value for key, value in case_input.items() if key != "steps"}
    values = compute_scale("spacing", {**case_input, "namingConvention": "space"})
    assert {name: values[name] for name in expected} == expected
    assert len(values) == 11


def test_an_empty_group_has_the_defaults_of_its_family() -> None:
    type_case, space_case = get_only_case("typeScale")[1], get_only_case("spacingScale")[1]
    assert type_case.items() <= compute_scale("typography", {}).items()
    assert space_case.items() <= compute_scale("spacing", {}).items()


def test_a_custom_ratio_overrides_the_chosen_one() -> None:
    custom = {"scaleRatio": "1.125", "isCustomScaleRatio": True, "scaleRatioInputValue": 2}
    values = compute_scale(
        "typography", {"min": {"fontSize": 10, **custom}, "max": {"fontSize": 10, **custom}, "steps": "s,m"}
    )
    assert values == {
        "--text-s": "clamp(0.25rem, calc(0vw + 0.25rem), 0.25rem)",
        "--text-m": "clamp(0.5rem, calc(0vw + 0.5rem), 0.5rem)",
    }


def test_sizes_are_in_px_if_the_site_does_not_use_rem() -> None:
    values = compute_scale(
        "spacing", {"steps": "m", "baseScaleIndex": 0}, isRem=False, minScreenWidth=400, maxScreenWidth=800
    )
    assert values == {"--space-m": "clamp(16px, calc(3vw + 4px), 28px)"}


def test_manual_sizes_have_variables_of_their_own_names() -> None:
    sizes = [
        {"id": "a", "name": "Text Lead", "min": 20, "max": 24},
        {"id": "b", "name": "heroSize", "min": 40, "max": 40},
    ]
    values = compute_scale("typography", {"mode": "fluid_manual", "manualSizes": sizes}, isRem=False)
    assert values == {
        "--text-lead": "clamp(20px, calc(0.37vw + 18.81px), 24px)",
        "--hero-size": "clamp(40px, calc(0vw + 40px), 40px)",
    }


def test_the_naming_convention_can_contain_the_step() -> None:
    assert list(compute_scale("spacing", {"namingConvention": "gap {step} fluid", "steps": "s, ,m"})) == [
        "--gap-s-fluid",
        "--gap-m-fluid",
    ]


def test_utility_classes_come_from_the_generators_of_the_group() -> None:
    names = ["text-*", ".lead-{step}", "size", " ", "off-*", "other-*"]
    generators: list[dict[str, Any]] = [{"id": name, "name": name, "property": [], "tabId": "g1"} for name in names]
    generators[4]["isDisabled"], generators[5]["tabId"] = True, "g2"
    family = {"groups": [{"id": "g1", "name": "Type", "steps": "xl"}], "classes": generators}
    (group,) = list_tokens(make_site_snapshot(framework={"typography": family}))["typography"]
    assert group["steps"][0]["utilityClasses"] == ["text-xl", "lead-xl", "size-xl"]
    assert {key: group[key] for key in group if key != "steps"} == {
        "id": "g1",
        "family": "typography",
        "name": "Type",
        "namingConvention": "text",
    }


def test_groups_are_sorted_and_disabled_groups_are_left_out() -> None:
    groups = [
        {"id": "b", "name": "B", "order": 2},
        {"id": "a", "name": "A", "order": 1},
        {"id": "c", "name": "C", "isDisabled": True},
    ]
    framework = {"spacing": {"groups": groups}, "typography": {"groups": groups, "isDisabled": True}}
    tokens = list_tokens(make_site_snapshot(framework=framework))
    assert [group["id"] for group in tokens["spacing"]] == ["a", "b"]
    assert tokens["typography"] == []


@pytest.mark.parametrize(
    "group",
    [
        {"min": {"fontSize": 16, "scaleRatio": 0}},
        {"min": {"fontSize": 1e300, "scaleRatio": 1e300}, "baseScaleIndex": -9},
        {"min": {"fontSize": 1e200}},
    ],
)
def test_a_scale_that_cannot_be_computed_is_a_tool_failure(group: dict[str, Any]) -> None:
    framework = {"typography": {"groups": [{"id": "g1", "name": "Odd", **group}]}}
    output = call_list_tokens(make_site_snapshot(framework=framework))
    assert output == ToolOutput.failure("The typography scale 'Odd' cannot be computed from its numbers.")


def test_equal_screen_widths_have_no_fluid_scale() -> None:
    framework = {"spacing": {"groups": [{"id": "g1"}]}, "preferences": {"minScreenWidth": 400, "maxScreenWidth": 400}}
    assert "cannot be computed" in (call_list_tokens(make_site_snapshot(framework=framework)).error or "")


def test_font_variables_are_prefixed_slugs() -> None:
    case_input, expected = get_only_case("fontToken")
    assert to_font_variable(case_input["variable"]) == expected
    assert to_font_variable("font-Head") == "font-head"


def test_a_font_token_has_its_family_and_its_stack() -> None:
    fonts = {
        "items": [{"id": "f1", "family": 'In"ter'}],
        "tokens": [
            {
                "id": "t2",
                "name": "Body",
                "variable": "body",
                "familyId": "f1",
                "fallback": "Arial, , serif",
                "order": 1,
            },
            {"id": "t1", "name": "Code", "variable": "--mono", "fallback": "monospace;", "order": 1},
            {"id": "t0", "name": "Lost", "variable": "lost", "familyId": "gone", "order": 0},
        ],
    }
    assert list_tokens(make_site_snapshot(fonts=fonts))["fonts"] == [
        {"name": "Lost", "cssVar": "--font-lost", "ref": "var(--font-lost)", "family": "", "stack": "sans-serif"},
        {
            "name": "Body",
            "cssVar": "--font-body",
            "ref": "var(--font-body)",
            "family": 'In"ter',
            "stack": '"Inter", Arial, serif',
        },
        {"name": "Code", "cssVar": "--font-mono", "ref": "var(--font-mono)", "family": "", "stack": "monospace"},
    ]


def test_one_family_is_listed_with_the_others_empty() -> None:
    output = call_list_tokens(
        make_site_snapshot(framework={"colors": {"tokens": [PRIMARY_COLOR]}, "spacing": {"groups": [{"id": "g"}]}}),
        family="colors",
    )
    assert [token["slug"] for token in output.data["tokens"]["colors"]] == ["primary"]
    assert {name: output.data["tokens"][name] for name in ("typography", "spacing", "fonts")} == {
        "typography": [],
        "spacing": [],
        "fonts": [],
    }


@pytest.mark.parametrize("settings", [{}, {"framework": None, "fonts": None}, {"framework": {"typography": None}}])
def test_a_site_without_a_design_system_has_no_tokens(settings: dict[str, Any]) -> None:
    assert call_list_tokens(make_site_snapshot(**settings)).data == {
        "tokens": {"colors": [], "typography": [], "spacing": [], "fonts": []}
    }


def test_without_a_snapshot_the_tool_fails_with_a_reason() -> None:
    assert "no snapshot" in (call_list_tokens(None).error or "")


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ("hello", "snapshot: "),
        ([], "snapshot: "),
        ({"site": 42}, "snapshot.site: "),
        ({"page": "x"}, "snapshot.site: Expected required property"),
        (
            make_site_snapshot(framework={"colors": {"tokens": [{"slug": "a"}]}}),
            "colors.tokens[0].lightValue: Expected",
        ),
        (make_site_snapshot(framework={"preferences": {"rootFontSize": float("nan")}}), "preferences.rootFontSize: "),
    ],
)
def test_a_broken_snapshot_is_a_failure_that_names_the_wrong_member(broken: Any, path: str) -> None:
    output = call_list_tokens(broken)
    assert not output.ok
    assert path in (output.error or "")


@pytest.mark.parametrize(
    ("value", "text"), [(3.125, "3.13"), (-3.125, "-3.13"), (1.005, "1"), (2.5, "2.5"), (-0.001, "0"), (100.0, "100")]
)
def test_numbers_are_rounded_like_the_editor_rounds_them(value: float, text: str) -> None:
    assert format_css_number(value) == text


@given(st.floats(min_value=-1e9, max_value=1e9))
def test_rounding_changes_a_number_by_half_a_hundredth_at_most(value: float) -> None:
    assert abs(round_like_editor(value) - value) <= 0.005 + 1e-6
