"""Design tokens in a file: what the tools write, what the snapshot reads back; the service derives the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.agents.site.situation import situation
from fermata.tools.site.design_tokens.colors import ColorSettings, describe_colors
from fermata.tools.site.design_tokens.fonts import FontSettings, describe_fonts
from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.site.design_tokens.scales import (
    SPACING_SCALE,
    TYPE_SCALE,
    ScalePreferences,
    ScaleSettings,
    describe_scales,
)
from fermata.tools.tool_names import ToolNaming
from fermata_client import HtmlDocument
from fermata_client.design_tokens.custom_properties import DARK_SCHEME_QUERY, read_custom_properties
from fermata_client.design_tokens.font_variables import font_stack, font_variable
from fermata_client.document.site_snapshot import build_site_snapshot
from fermata_client.html.edit_error import EditError
from fermata_client.tools.design_tokens.colors import set_color_tokens
from fermata_client.tools.design_tokens.fonts import set_font_tokens
from fermata_client.tools.design_tokens.scales import set_spacing_scale, set_type_scale
from tests.client.html_strategies import BAKERY


def page(css: str = "") -> HtmlDocument:
    return HtmlDocument.parse(f"<head>\n  <style>\n{css}  </style>\n</head>\n<body></body>\n".encode())


def color(document: HtmlDocument, **token: Any) -> HtmlDocument:
    return set_color_tokens(document, {"tokens": [token]})[0]


# The same as the service derives

channels = st.integers(0, 255)
colors = st.one_of(
    st.tuples(channels, channels, channels).map(lambda rgb: "#{:02x}{:02x}{:02x}".format(*rgb)),
    st.tuples(channels, channels, channels).map(lambda rgb: "rgb({}, {}, {})".format(*rgb)),
    st.tuples(st.integers(-400, 800), st.integers(0, 100), st.integers(0, 100), st.floats(0, 1)).map(
        lambda c: f"hsla({c[0]}, {c[1]}%, {c[2]}%, {c[3]:.2f})"
    ),
    st.sampled_from(
        ("#abc", "rgba(1 2 3 / 50%)", "hsl(10.5deg, 20%, 30%)", "tomato", "oklch(0.6 0.2 250)", "#12345678")
    ),
)


@given(st.text("aZ 9-_é", max_size=8), colors)
def test_a_new_colour_has_the_variables_that_the_service_lists(name: str, value: str) -> None:
    document = color(page(), slug=name or "x", lightValue=value)
    token = {"slug": name or "x", "lightValue": value}
    (listed,) = describe_colors(ColorSettings.from_wire({"tokens": [token]}))
    value_by_variable = {token["cssVar"]: token["value"] for token in (listed, *listed["variants"])}
    assert read_custom_properties(document) == value_by_variable


ratios = st.floats(1.01, 2, allow_nan=False).map(lambda ratio: round(ratio, 3))
pixels = st.floats(4, 60, allow_nan=False).map(lambda size: round(size, 2))


@given(pixels, ratios, pixels, ratios, st.integers(0, 4), st.sampled_from((10, 16)))
def test_a_scale_has_the_variables_that_the_service_lists(
    least: float, low: float, most: float, high: float, base: int, root: int
) -> None:
    size = f":root {{ font-size: {root}px }}\n"
    for family, tool, name in ((TYPE_SCALE, set_type_scale, "fontSize"), (SPACING_SCALE, set_spacing_scale, "size")):
        ends = {"min": {name: least, "scaleRatio": low}, "max": {name: most, "scaleRatio": high}}
        document, data = tool(page(size), {"baseScaleIndex": base, **ends})
        settings = ScaleSettings.from_wire({"groups": [{"baseScaleIndex": base, **ends}]})
        (listed,) = describe_scales(family, settings, ScalePreferences.from_wire({"rootFontSize": root}))
        value_by_variable = {step["cssVar"]: step["value"] for step in listed["steps"]}
        assert read_custom_properties(document) == value_by_variable
        assert data["generatedVars"] == list(value_by_variable)


@given(st.text('aZ 9-_é"<', max_size=8), st.text("ab,' \"", max_size=8))
def test_a_font_has_the_variable_and_the_stack_that_the_service_lists(name: str, fallback: str) -> None:
    token = {"name": name, "variable": name, "fallback": fallback}
    (listed,) = describe_fonts(FontSettings.from_wire({"tokens": [token]}))
    assert f"--{font_variable(name)}" == (listed["cssVar"] or "--")
    assert font_stack("", fallback) == listed["stack"]


# Colours


def test_a_colour_that_is_there_is_changed_in_place_and_keeps_its_notation() -> None:
    document = HtmlDocument.parse(BAKERY.read_bytes())
    edited, data = set_color_tokens(document, {"tokens": [{"slug": "color-crust", "lightValue": "#8a4415"}]})
    assert edited.source == document.source.replace(b"--color-crust: #a4551e;", b"--color-crust: #8a4415;")
    assert data == {"tokens": [{"slug": "color-crust", "ref": "var(--color-crust)", "action": "updated"}]}


def test_variants_follow_their_colour() -> None:
    blue = read_custom_properties(color(color(page(), slug="Brand", lightValue="red"), slug="brand", lightValue="blue"))
    assert blue == {"--brand": "blue"}
    green = read_custom_properties(
        color(color(page(), slug="brand", lightValue="#f00"), slug="brand", lightValue="#0f0")
    )
    assert green == read_custom_properties(color(page(), slug="brand", lightValue="#0f0"))
    assert len(green) == 19


def test_dark_screens_have_a_value_of_their_own_until_it_is_removed() -> None:
    document = color(page(), slug="ink", lightValue="#111", darkValue="#eee")
    assert read_custom_properties(document, DARK_SCHEME_QUERY)["--ink"] == "hsla(0, 0%, 93.33%, 1)"
    assert read_custom_properties(document)["--ink"] == "hsla(0, 0%, 6.67%, 1)"
    light = color(document, slug="ink", lightValue="#111", darkModeEnabled=False)
    assert read_custom_properties(light, DARK_SCHEME_QUERY) == {}
    assert (
        color(page(), slug="ink", lightValue="#111", darkValue="#eee", darkModeEnabled=False).css.count("@media") == 0
    )


@pytest.mark.parametrize("value", ["red; } body { display: none", "/* x", "rgb(1, 2", "</style>", "\\"])
def test_a_colour_is_one_value(value: str) -> None:
    with pytest.raises(EditError, match="`lightValue` must be one CSS colour"):
        color(page(), slug="x", lightValue=value)


# Fonts


def font(document: HtmlDocument, **token: Any) -> HtmlDocument:
    return set_font_tokens(document, {"tokens": [token]})[0]


def test_a_web_font_is_loaded_once_and_keeps_the_kind_of_the_font_before() -> None:
    document = page("    :root { --font-heading: Georgia, serif; }\n")
    edited = font(document, name="Heading", googleFamily="Playfair Display", variants=["regular", "700italic"])
    link = (
        '<link rel="stylesheet" href="https://fonts.googleapis.com/css2?family=Playfair+Display:ital,wght@0,400;1,700'
        '&amp;display=swap">'
    )
    assert edited.source.decode().count(link) == 1
    assert read_custom_properties(edited) == {"--font-heading": '"Playfair Display", serif'}
    again = font(edited, name="Heading", googleFamily="Playfair Display", variants=["regular", "700italic"])
    assert again.source == edited.source


def test_an_invalid_font_is_refused() -> None:
    with pytest.raises(EditError, match="not the name of a Google font"):
        font(page(), name="x", googleFamily='Lora"><script>')
    with pytest.raises(EditError, match="no installed fonts"):
        font(page(), name="x", familyId="f1")
    with pytest.raises(EditError, match="There is no CSS name in"):
        font(page(), name="é")


# Scales


def test_a_scale_goes_on_from_the_page_s_own_numbers() -> None:
    document = page("    :root { --space-s: 8px; --space-m: 16px; --space-l: 32px; }\n")
    edited, data = set_spacing_scale(document, {"min": {"size": 12}})
    assert (data["action"], data["groupId"], data["generatedVars"]) == (
        "updated",
        "space",
        ["--space-s", "--space-m", "--space-l"],
    )
    assert data["used"]["max"] == {"size": 16, "scaleRatio": 2}
    assert read_custom_properties(edited)["--space-m"].startswith("clamp(0.75rem, calc(")
    assert read_custom_properties(edited)["--space-m"].endswith(", 1rem)")


def test_a_scale_may_be_named_and_stepped() -> None:
    edited, data = set_type_scale(page(), {"namingConvention": "step-{step}", "steps": "1, 2", "baseScaleIndex": 0})
    assert data["generatedVars"] == ["--step-1", "--step-2"]
    assert list(read_custom_properties(edited)) == ["--step-1", "--step-2"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"groupId": "other"}, "no typography scale other here"),
        ({"min": {"fontSize": 0}}, "`fontSize` must be a number above 0"),
        ({"min": {"scaleRatio": "wide"}}, "`scaleRatio` must be a number, not “wide”"),
        ({"min": {"fontSize": float("nan")}}, "above 0"),
        ({"max": {"scaleRatio": 1e4}, "baseScaleIndex": 0, "steps": ",".join(f"s{n}" for n in range(100))}, "no scale"),
        ({"steps": "a b;c"}, "`steps` are names"),
        ({"namingConvention": "x: y"}, "`namingConvention` is the beginning"),
        ({"baseScaleIndex": -1}, "`baseScaleIndex` must be a whole number"),
    ],
)
def test_numbers_that_make_no_scale_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        set_type_scale(page(), arguments)


# What the prompt is told


def test_the_snapshot_names_the_tokens_that_a_file_has() -> None:
    document = color(page(), slug="brand", lightValue="#a4551e", darkValue="#fff")
    document = color(document, slug="plain", lightValue="tomato")
    document, _ = set_type_scale(document, {})
    document, _ = set_spacing_scale(document, {})
    document = font(document, name="Body", fallback="system-ui, sans-serif")
    listed = list_tokens(build_site_snapshot(document))
    properties = read_custom_properties(document)
    brand = listed["colors"][0]
    assert {token["cssVar"]: token["value"] for token in (brand, *brand["variants"])} == {
        name: value for name, value in properties.items() if name.startswith("--brand")
    }
    assert len(listed["colors"]) == 1
    assert brand["darkValue"] == "hsla(0, 0%, 100%, 1)"
    for family, naming in (("typography", "text"), ("spacing", "space")):
        (group,) = listed[family]
        assert {step["cssVar"]: step["value"] for step in group["steps"]} == {
            name: value for name, value in properties.items() if f"--{naming}-" in name
        }
    assert [(token["cssVar"], token["stack"]) for token in listed["fonts"]] == [
        ("--font-body", "system-ui, sans-serif")
    ]


def test_the_prompt_names_tokens_and_breakpoints_of_the_page() -> None:
    line = situation(build_site_snapshot(HtmlDocument.parse(BAKERY.read_bytes())), ToolNaming.CANONICAL)
    assert "all breakpoints: [all@1280px, min-768@768px:(min-width: 48rem)]" in line
    assert "color-crust=hsla(24.63, 69.07%, 38.04%, 1)" in line
    assert "spacing --space-*: [s, m, l]" in line
    assert "--font-body→system-ui" in line
