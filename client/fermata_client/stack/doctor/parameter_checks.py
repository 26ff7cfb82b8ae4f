"""Compare the parameters of a deployment with the template."""

import re
from typing import Any

from fermata_client.stack.doctor.deployment_plan import DeploymentPlan
from fermata_client.stack.doctor.finding import Finding


def check_parameters(plan: DeploymentPlan) -> list[Finding]:
    """Check that each parameter exists and has a value that the template allows, and that none is missing."""
    problems = [*_find_missing(plan)]
    for name, value in plan.values.items():
        if name not in plan.parameters:
            problems.append(f"template.yaml has no parameter {name}. Remove it from samconfig.toml.")
        elif complaint := _find_complaint(plan.parameters[name], value):
            problems.append(f"{name} is {value!r}: {complaint}.")
    if problems:
        return [Finding("problem", "parameters", text) for text in problems]
    set_ones = ", ".join(f"{name}={value}" for name, value in plan.values.items()) or "none"
    return [Finding("ok", "parameters", f"All are allowed; set are {set_ones}. The others have their defaults.")]


def _find_missing(plan: DeploymentPlan) -> list[str]:
    required = [name for name, declared in plan.parameters.items() if "Default" not in declared]
    return [f"{name} has no default. Set it in samconfig.toml." for name in required if name not in plan.values]


def _find_complaint(declared: dict[str, Any], value: str) -> str:
    """Return why CloudFormation would refuse a value, or nothing."""
    allowed = [str(one) for one in declared.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"it must be one of {', '.join(allowed)}"
    if declared.get("Type") == "Number":
        return _find_number_complaint(declared, value)
    pattern = declared.get("AllowedPattern")
    if pattern and not re.fullmatch(pattern, value):
        return str(declared.get("ConstraintDescription", f"it must match {pattern}")).rstrip(".")
    return ""


def _find_number_complaint(declared: dict[str, Any], value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return "it must be a number"
    if "MinValue" in declared and number < declared["MinValue"]:
        return f"it must be at least {declared['MinValue']}"
    if "MaxValue" in declared and number > declared["MaxValue"]:
        return f"it must be at most {declared['MaxValue']}"
    return ""
