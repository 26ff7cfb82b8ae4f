"""cfn-lint passes for the template, which it transforms as SAM does, and for its workflow."""

import copy
import json

import pytest

from tests.template import templates
from tests.template.templates import Template

pytestmark = pytest.mark.exhaustive

BY_NAME = "!Sub arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}-turn"


def with_workflow(deployed: Template, machine: Template) -> Template:
    """Inline the workflow, where cfn-lint checks it against the schema of its language.

    That schema does not allow JSONata for time-outs yet, so numbers replace these expressions.
    """
    inlined, definition = copy.deepcopy(deployed), copy.deepcopy(machine)
    for state in definition["States"].values():
        for clock in ("HeartbeatSeconds", "TimeoutSeconds"):
            if str(state.get(clock, "")).startswith("{%"):
                state[clock] = 90
    properties = inlined["Resources"]["TurnMachine"]["Properties"]
    del properties["DefinitionS3Location"], properties["DefinitionSubstitutions"]
    properties["DefinitionString"] = json.dumps(definition)
    return inlined


def test_the_template_as_written_passes_cfn_lint() -> None:
    assert templates.lint_template(templates.TEMPLATE.read_text()) == []


def test_the_workflow_passes_cfn_lint(transformed: Template, machine: Template) -> None:
    assert templates.lint_part(with_workflow(transformed, machine), ["TurnMachine"]) == []


def test_an_invalid_workflow_fails_cfn_lint(transformed: Template, machine: Template) -> None:
    broken = copy.deepcopy(machine)
    broken["States"]["RunRound"]["ResultPath"] = "$.round"
    del broken["States"]["Hold"]["Next"]
    whole = with_workflow(transformed, broken)
    whole["Resources"]["TurnMachine"]["Properties"]["RoleArn"] = {"Fn::GetAtt": ["NoRole", "Arn"]}
    found = templates.lint_part(whole, ["TurnMachine"])
    assert any(complaint.startswith("E1010 'NoRole'") for complaint in found), found
    assert any("ResultPath" in complaint and complaint.startswith("E3601") for complaint in found)
    assert any("States/Hold" in complaint and complaint.startswith("E3601") for complaint in found)


def test_a_cycle_between_functions_and_workflow_fails_cfn_lint() -> None:
    text = templates.TEMPLATE.read_text()
    circular = text.replace(f"STATE_MACHINE_ARN: {BY_NAME}", "STATE_MACHINE_ARN: !Ref TurnMachine")
    assert circular != text
    found = templates.find_cycles(templates.transform_template(circular))
    assert any(complaint.startswith("E3004") for complaint in found), found


def test_the_template_as_deployed_has_no_cycle(transformed: Template) -> None:
    assert templates.find_cycles(transformed) == []
