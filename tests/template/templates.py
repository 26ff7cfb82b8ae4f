"""Read the template as it is written and as CloudFormation gets it, and the workflow inside it."""

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from cfnlint.api import lint
from cfnlint.decode import cfn_yaml
from cfnlint.rules import RulesCollection
from cfnlint.rules.resources.CircularDependency import CircularDependency

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
STATE_MACHINE = ROOT / "statemachines" / "turn.asl.yaml"
TRANSLATOR = ROOT / ".venv-emulator" / "bin" / "python"
FUNCTION_FOLDERS = frozenset(app.parent.name for app in (ROOT / "functions").glob("*/app.py"))
"""Of all functions."""
OWN_TABLES = dict.fromkeys(
    ("OwnsConversations", "OwnsBridges", "OwnsPricing", "OwnsUsage", "OwnsSettings", "OwnsContent"), True
)
"""Conditions of a stack that has made its own tables, as every first one does."""
OWN_STORAGE = OWN_TABLES | {"HasVectorBucket": True}
"""The same, in a Region that has vector buckets."""
SUBSTITUTES = {
    "Partition": "aws",
    "RoundFunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:fermata-round:live",
    "HoldFunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:fermata-hold:live",
    "RecoverFunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:fermata-recover:live",
    "HeartbeatSeconds": "90",
}
UNUSED_COMPLAINTS = ("W2001", "W7001", "W8001")
"""How cfn-lint's complaints begin about parameters, mappings and conditions that nothing uses."""
ALIAS_SUFFIX = "Aliaslive"
"""What SAM appends to the logical id of a function to name its alias `live`."""

Template = dict[str, Any]


def read_template(text: str) -> Template:
    """Parse a template, with its short tags written out (`!Ref X` is {"Ref": "X"})."""
    template: Template = json.loads(json.dumps(cfn_yaml.loads(text)))
    return template


def transform_template(text: str, **parameters: str) -> Template:
    """Transform a template as SAM does. A template that SAM refuses fails with SAM's error.

    Args:
        text: The template.
        parameters: Values of parameters that differ from their defaults.
    """
    assert TRANSLATOR.exists(), "The emulator's environment is missing: install requirements/emulator.txt into it."
    process = subprocess.run(
        [TRANSLATOR, Path(__file__).with_name("transform.py"), json.dumps(parameters)],
        input=text,
        capture_output=True,
        text=True,
        env=os.environ | {"AWS_DEFAULT_REGION": "eu-west-1"},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    template: Template = json.loads(process.stdout)
    return template


def resolve_conditions(value: Any, conditions: dict[str, bool]) -> Any:
    """Choose the branch of each Fn::If of these conditions, as CloudFormation does. Others stay."""
    if isinstance(value, list):
        return [resolve_conditions(one, conditions) for one in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["Fn::If"] and value["Fn::If"][0] in conditions:
        condition, when_true, otherwise = value["Fn::If"]
        return resolve_conditions(when_true if conditions[condition] else otherwise, conditions)
    resolved = {name: resolve_conditions(one, conditions) for name, one in value.items()}
    return _inline_names(resolved["Fn::Sub"]) if list(resolved) == ["Fn::Sub"] else resolved


def _inline_names(argument: Any) -> Template:
    """Write `Fn::Sub` without a map where its values are logical ids or their ARNs."""
    if not isinstance(argument, list) or not all(
        isinstance(one, dict) and ("Ref" in one or "Fn::GetAtt" in one) for one in argument[1].values()
    ):
        return {"Fn::Sub": argument}
    text = str(argument[0])
    for name, one in argument[1].items():
        if not name.startswith("__"):  # those are SAM's own
            text = text.replace(f"${{{name}}}", f"${{{one['Ref'] if 'Ref' in one else '.'.join(one['Fn::GetAtt'])}}}")
    remaining = {name: one for name, one in argument[1].items() if name.startswith("__")}
    return {"Fn::Sub": [text, remaining] if remaining else text}


def function_of_alias(reference: Template) -> str:
    """Return the logical id of the function whose alias something refers to."""
    name = str(reference["Ref"])
    assert name.endswith(ALIAS_SUFFIX), f"{name} is no alias"
    return name.removesuffix(ALIAS_SUFFIX)


def lint_template(template: Template | str) -> list[str]:
    """Return the errors and warnings of cfn-lint."""
    text = template if isinstance(template, str) else json.dumps(template)
    return [f"{match.rule.id} {match.message}" for match in lint(text)]


def lint_part(template: Template, names: Iterable[str]) -> list[str]:
    """Return what cfn-lint says of some resources, in a tenth of the time that the whole template takes.

    What they refer to has to be in the template. Whether parameters and conditions are used shows in the whole only.
    """
    part = {name: found for name, found in template.items() if name != "Outputs"}
    part["Resources"] = {name: template["Resources"][name] for name in names}
    found = [complaint for complaint in lint_template(part) if not complaint.startswith(UNUSED_COMPLAINTS)]
    return [complaint for complaint in found if _read_missing_name(complaint) not in template["Resources"]]


def _read_missing_name(complaint: str) -> str:
    missing = re.match(r"E10\d\d '(\w+)(?:\.\w+)?' is not one of", complaint)
    return missing[1] if missing else ""


def find_cycles(template: Template) -> list[str]:
    """Return what one rule of cfn-lint says, which is among all of `lint_template` and takes a tenth of their time."""
    rules = RulesCollection()
    rules.register(CircularDependency())
    return [f"{match.rule.id} {match.message}" for match in lint(json.dumps(template), rules=rules)]


def resources_of_type(template: Template, kind: str) -> dict[str, Template]:
    """Return the properties of the resources of one type, by logical id."""
    resources = template["Resources"].items()
    return {name: found.get("Properties", {}) for name, found in resources if found["Type"] == kind}


def read_state_machine() -> Template:
    """Read the workflow with the template's substitutions, as Step Functions gets it."""
    text = STATE_MACHINE.read_text()
    for name, value in SUBSTITUTES.items():
        text = text.replace(f"${{{name}}}", value)
    definition: Template = yaml.safe_load(text)
    return definition
