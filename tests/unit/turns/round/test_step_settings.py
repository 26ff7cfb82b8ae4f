"""Settings of single steps: which rule matches, and what it changes."""

from typing import Any

import pytest

from fermata.domain.run_settings import NamedToolChoice, RunSettings
from fermata.domain.tools import ToolSpec
from fermata.turns.round.step_settings import StepSettings, build_step_settings, list_step_overrides

_RANGES = [{"from": 1, "to": 3, "activeTools": ["search"]}, {"from": 4, "toolChoice": "auto"}]
_LISTED = [
    {"steps": [1, 2], "activeTools": ["search"], "toolChoice": "required"},
    {"steps": [3], "activeTools": ["summarize"]},
]


@pytest.mark.parametrize(
    ("rules", "step", "overrides"),
    [
        pytest.param([], 1, {}, id="prepareStep-02: no rules are no overrides"),
        pytest.param(_LISTED, 3, {"active_tools": ("summarize",)}, id="prepareStep-04: only what the rule sets"),
        pytest.param([{"steps": [1], "activeTools": ["search"]}], 5, {}, id="prepareStep-05: no match"),
        pytest.param(_RANGES, 2, {"active_tools": ("search",)}, id="prepareStep-06: ranges are inclusive"),
        pytest.param(_RANGES, 3, {"active_tools": ("search",)}, id="the end of a range belongs to it"),
        pytest.param(_RANGES, 4, {"tool_choice": "auto"}, id="prepareStep-07"),
        pytest.param(_RANGES, 400, {"tool_choice": "auto"}, id="a range without an end goes on"),
        pytest.param(
            [{"steps": [1], "activeTools": ["a"]}, {"steps": [1], "activeTools": ["b"]}],
            1,
            {"active_tools": ("a",)},
            id="prepareStep-09: the first match counts alone",
        ),
        pytest.param([{"steps": [2], "from": 1, "toolChoice": "none"}], 1, {}, id="prepareStep-10: steps decide alone"),
        pytest.param([{"to": 3, "toolChoice": "none"}], 1, {}, id="prepareStep-11: an end alone never matches"),
        pytest.param([{"from": 1, "temperature": 0}], 1, {"temperature": 0}, id="prepareStep-12: 0 is a temperature"),
        pytest.param([{"from": 1, "activeTools": []}], 1, {}, id="an empty list of tools changes nothing"),
        pytest.param(
            [{"steps": [], "from": 1, "toolChoice": "none"}], 1, {}, id="an empty list of steps never matches"
        ),
    ],
)
def test_the_first_matching_rule_says_what_is_different(
    rules: list[dict[str, Any]], step: int, overrides: dict[str, Any]
) -> None:
    settings = RunSettings.from_wire({"prepareStep": rules})
    assert list_step_overrides(settings.prepare_step, step) == overrides


def test_what_no_rule_changes_is_the_agents_own() -> None:
    settings = RunSettings.from_wire(
        {
            "toolChoice": {"type": "tool", "toolName": "search"},
            "activeTools": ["search"],
            "maxOutputTokens": 300,
            "temperature": 0.7,
            "prepareStep": [{"from": 2, "toolChoice": "auto", "temperature": 0.3}],
        }
    )
    own = StepSettings(("search",), NamedToolChoice(tool_name="search"), 300, 0.7)
    assert build_step_settings(settings, 1) == own
    assert build_step_settings(settings, 2) == StepSettings(("search",), "auto", 300, 0.3)


def test_a_tool_that_is_not_offered_cannot_be_required() -> None:
    specs = [ToolSpec(name=name, description="", input_schema={}) for name in ("search", "read")]
    settings = StepSettings(("read", "unknown"), NamedToolChoice(tool_name="search"))
    offered = settings.select_tools(specs)
    assert [spec.name for spec in offered] == ["read"]
    assert settings.choose_tool(offered) == "auto"
    assert settings.choose_tool(specs) == NamedToolChoice(tool_name="search")
    assert StepSettings(tool_choice="required").choose_tool([]) == "auto"
