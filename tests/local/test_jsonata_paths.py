"""Plain expressions, which are evaluated without the engine, give what the engine gives."""

import json

import pytest

from tests.local.emulator_lab import EmulatorLab

GIVEN = {
    "text": "so",
    "empty": "",
    "number": 7,
    "fraction": 0.5,
    "no": False,
    "object": {"inner": {"a": 1}, "none": {}},
    "list": [{"a": 1}, {"a": 2}],
    "single": [3],
    "nothing": None,
}
PATHS = [
    "text",
    "empty",
    "number",
    "fraction",
    "no",
    "object",
    "object.inner.a",
    "object.none",
    "list",
    "list.a",
    "single",
    "nothing",
]
MISSING = ["other", "text.a", "object.other", "nothing.a"]


def output_of(lab: EmulatorLab, expression: str) -> str:
    """Run a state whose output is an expression. Returns the output as JSON, which for a failed state is its error."""
    state = {"Type": "Pass", "Output": {"value": f"{{% {expression} %}}"}, "End": True}
    machine = lab.make_machine({"StartAt": "One", "States": {"One": state}})
    execution = lab.wait_for_end(lab.start_execution(machine, **GIVEN))
    return str(execution["output"])


@pytest.mark.parametrize("path", PATHS)
def test_a_path_gives_what_the_engine_gives(lab: EmulatorLab, path: str) -> None:
    plain = output_of(lab, f"$states.input.{path}")
    assert plain == output_of(lab, f"($states.input.{path})")
    assert "value" in json.loads(plain)


@pytest.mark.parametrize(
    "expression",
    [
        "$states.input.text = 'so'",
        "$states.input.text = 'other'",
        "$states.input.number = '7'",
        "$states.input.other = 'so'",
        "$exists($states.input.object) ? $states.input.object : null",
        "$exists($states.input.other) ? $states.input.other : null",
        "$exists($states.input.single) ? $states.input.single : null",
        "60",
    ],
)
def test_a_plain_expression_gives_what_the_engine_gives(lab: EmulatorLab, expression: str) -> None:
    assert output_of(lab, expression) == output_of(lab, f"({expression})")


@pytest.mark.parametrize("path", MISSING)
def test_what_is_missing_fails_the_state(lab: EmulatorLab, path: str) -> None:
    assert json.loads(output_of(lab, f"$states.input.{path}"))["Error"] == "States.QueryEvaluationError"
