"""Design tokens are derived from the raw snapshot exactly as the editor writes them into CSS."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.site.design_tokens.colors import parse_color, slugify_color_name, to_hsla_text
from fermata.tools.site.design_tokens.css_numbers import format_css_number, round_like_editor
from fermata.tools.site.design_tokens.fonts import to_font_variable
from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.site.toolset import SITE_TOOLSET
from tests.unit.tools.builders import PRIMARY_COLOR, contract_cases, make_call, make_context, make_site_snapshot


def colors(*tokens: dict[str, Any]) -> list[dict[str, Any]]:
    return list_tokens(make_site_snapshot(framework={"colors": {"tokens": list(tokens)}}))["colors"]


def only_case(area: str, case: str | None = None) -> tuple[Any, Any]:
    ((_, given, expected),) = [one for one in contract_cases(area) if case in (None, one[0])]
    return given, expected


def ask(snapshot: Any, **arguments: Any) -> ToolOutput:
    outcome = admit_call(SITE_TOOLSET, make_call("list_tokens", arguments), make_context(snapshot=snapshot))
    assert isinstance(outcome, AdmittedCall)
    return run_tool(outcome, make_context(snapshot=snapshot))


def test_a_colour_that_cannot_be_parsed_stays_as_written_and_has_no_variants() -> None:
    given, expected = only_case("colorToken", "C172")
    (token,) = colors(given)
    assert {token["cssVar"]: token["value"]} == {"--ink": expected["--ink"]}
    assert len(token["variants"]) == expected["derived_variants"]


def test_slugs_that_collide_are_numbered_in_order() -> None:
    given, expected = only_case("colorToken", "C173")
    tokens = [{"slug": slug, "lightValue": "#fff", "order": order} for order, slug in enumerate(given["slugs"])]
    assert [token["slug"] for token in colors(*tokens)] == expected


def test_a_third_collision_steps_over_a_slug_that_is_taken() -> None:
    given = [{"slug": slug, "lightValue": "#fff", "order": i} for i, slug in enumerate(["a", "a-2", "a"])]
    assert [token["slug"] for token in colors(*given)] == ["a", "a-2", "a-3"]


def test_a_colour_has_a_variable_a_reference_utilities_and_variants_in_order() -> None:
    (token,) = colors({**PRIMARY_COLOR, "category": "Brand"})
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
    (token,) = colors({"slug": "p", "lightValue": "hsl(210, 50%, 50%)"})
    values = {variant["cssVar"]: variant["value"] for variant in token["variants"]}
    assert values["--p-30"] == "hsla(210, 50%, 50%, 0.3)"
    assert values["--p-d-1"] == "hsla(210, 50%, 42%, 1)"
    assert values["--p-d-4"] == "hsla(210, 50%, 18%, 1)"
    assert values["--p-l-1"] == "hsla(210, 50%, 58%, 1)"
    assert values["--p-l-4"] == "hsla(210, 50%, 82%, 1)"


def test_a_variant_has_its_own_utility_classes() -> None:
    utilities = {"text": True, "background": False, "border": False, "fill": True}
    (token,) = colors({**PRIMARY_COLOR, "generateUtilities": utilities, "generateTransparent": False})
    assert token["variants"][0]["utilityClasses"] == ["text-primary-d-1", "fill-primary-d-1"]


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (-3, 0), (2, 2), (2.9, 2), (99, 12)])
def test_the_number_of_shades_is_clamped(count: float, kept: int) -> None:
    off = {"generateTransparent": False, "generateTints": {"enabled": False}}
    (token,) = colors({**PRIMARY_COLOR, **off, "generateShades": {"enabled": True, "count": count}})
    assert [variant["variant"] for variant in token["variants"]] == [f"d-{i}" for i in range(1, kept + 1)]


def test_the_dark_value_is_there_only_when_dark_mode_is_on() -> None:
    dark = {**PRIMARY_COLOR, "darkValue": "#000"}
    assert "darkValue" not in colors(dark)[0]
    assert colors({**dark, "darkModeEnabled": True})[0]["darkValue"] == "hsla(0, 0%, 0%, 1)"


def test_colours_come_by_order_then_slug() -> None:
    given = [{"slug": slug, "lightValue": "#fff", "order": order} for slug, order in (("z", 0), ("b", 1), ("a", 1))]
    assert [token["slug"] for token in colors(*given)] == ["z", "a", "b"]


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
def test_colours_the_editor_can_parse_become_hsla(written_as: str, value: str) -> None:
    assert to_hsla_text(written_as) == value


@given(st.text(alphabet="rgbahsl#0123456789.,%/() deg-+", max_size=30) | st.text(max_size=12))
def test_no_text_breaks_the_colour_parser(text: str) -> None:
    color = parse_color(text)
    assert color is None or re.fullmatch(r"hsla\([\d.]+, [\d.]+%, [\d.]+%, [\d.]+\)", str(color))


@pytest.mark.parametrize(
    ("name", "slug"), [("Primary Color", "primary-color"), ("--ink", "ink"), ("Tür 2!", "t-r-2"), ("---", "color")]
)
def test_colour_slugs_are_plain(name: str, slug: str) -> None:
    assert slugify_color_name(name) == slug


def scale(family: str, given: dict[str, Any], **preferences: Any) -> dict[str, str]:
    group = {"id": "g1", "name": "Scale", **given}
    framework = {family: {"groups": [group]}, "preferences": preferences}
    (described,) = list_tokens(make_site_snapshot(framework=framework))[family]
    return {step["cssVar"]: step["value"] for step in described["steps"]}


def test_the_type_scale_is_the_editors() -> None:
    given, expected = only_case("typeScale")
    values = scale("typography", {**given, "namingConvention": "text"})
    assert {name: values[name] for name in expected} == expected
    assert len(values) == 8


def test_the_spacing_scale_is_the_editors() -> None:
    given, expected = only_case("spacingScale")
    given = {key: value for key, value in given.items() if key != "steps"}
    values = scale("spacing", {**given, "namingConvention": "space"})
    assert {name: values[name] for name in expected} == expected
    assert len(values) == 11


def test_a_group_that_says_nothing_has_the_defaults_of_its_family() -> None:
    type_case, space_case = only_case("typeScale")[1], only_case("spacingScale")[1]
    assert type_case.items() <= scale("typography", {}).items()
    assert space_case.items() <= scale("spacing", {}).items()


def test_a_custom_ratio_goes_before_the_chosen_one() -> None:
    custom = {"scaleRatio": "1.125", "isCustomScaleRatio": True, "scaleRatioInputValue": 2}
    values = scale("typography", {"min": {"fontSize": 10, **custom}, "max": {"fontSize": 10, **custom}, "steps": "s,m"})
    assert values == {
        "--text-s": "clamp(0.25rem, calc(0vw + 0.25rem), 0.25rem)",
        "--text-m": "clamp(0.5rem, calc(0vw + 0.5rem), 0.5rem)",
    }


def test_pixels_are_kept_where_the_site_does_not_use_rem() -> None:
    values = scale("spacing", {"steps": "m", "baseScaleIndex": 0}, isRem=False, minScreenWidth=400, maxScreenWidth=800)
    assert values == {"--space-m": "clamp(16px, calc(3vw + 4px), 28px)"}


def test_manual_sizes_are_named_by_themselves() -> None:
    sizes = [
        {"id": "a", "name": "Text Lead", "min": 20, "max": 24},
        {"id": "b", "name": "heroSize", "min": 40, "max": 40},
    ]
    values = scale("typography", {"mode": "fluid_manual", "manualSizes": sizes}, isRem=False)
    assert values == {
        "--text-lead": "clamp(20px, calc(0.37vw + 18.81px), 24px)",
        "--hero-size": "clamp(40px, calc(0vw + 40px), 40px)",
    }


def test_the_naming_convention_may_place_the_step_itself() -> None:
    assert list(scale("spacing", {"namingConvention": "gap {step} fluid", "steps": "s, ,m"})) == [
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


def test_groups_come_in_order_and_disabled_ones_not_at_all() -> None:
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
def test_a_scale_that_cannot_be_computed_is_an_ordinary_failure(group: dict[str, Any]) -> None:
    framework = {"typography": {"groups": [{"id": "g1", "name": "Odd", **group}]}}
    output = ask(make_site_snapshot(framework=framework))
    assert output == ToolOutput.failure("The typography scale 'Odd' cannot be computed from its numbers.")


def test_screens_of_one_width_have_no_fluid_scale() -> None:
    framework = {"spacing": {"groups": [{"id": "g1"}]}, "preferences": {"minScreenWidth": 400, "maxScreenWidth": 400}}
    assert "cannot be computed" in (ask(make_site_snapshot(framework=framework)).error or "")


def test_font_variables_are_prefixed_and_plain() -> None:
    given, expected = only_case("fontToken")
    assert to_font_variable(given["variable"]) == expected
    assert to_font_variable("font-Head") == "font-head"


def test_a_font_token_names_its_family_and_its_stack() -> None:
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
    output = ask(
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
    assert ask(make_site_snapshot(**settings)).data == {
        "tokens": {"colors": [], "typography": [], "spacing": [], "fonts": []}
    }


def test_without_a_snapshot_the_tool_fails_and_says_so() -> None:
    assert "no snapshot" in (ask(None).error or "")


@pytest.mark.parametrize(
    ("broken", "told"),
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
def test_a_broken_snapshot_is_a_failure_that_names_the_broken_member(broken: Any, told: str) -> None:
    output = ask(broken)
    assert not output.ok
    assert told in (output.error or "")


@pytest.mark.parametrize(
    ("value", "text"), [(3.125, "3.13"), (-3.125, "-3.13"), (1.005, "1"), (2.5, "2.5"), (-0.001, "0"), (100.0, "100")]
)
def test_numbers_are_rounded_as_the_editor_rounds_them(value: float, text: str) -> None:
    assert format_css_number(value) == text


@given(st.floats(min_value=-1e9, max_value=1e9))
def test_rounding_moves_a_number_by_half_a_cent_at_most(value: float) -> None:
    assert abs(round_like_editor(value) - value) <= 0.005 + 1e-6
