"""A stack uses restored tables instead of its own, by parameters: the same permissions, and no table is lost."""

import json
import re
from typing import Any

import pytest

from fermata_client.stack.table_backups import STACK_TABLES
from tests.template import templates
from tests.template.templates import Template

ADOPTED = templates.OWN_STORAGE | dict.fromkeys(templates.OWN_TABLES, False)
PARAMETERS = {
    "ConversationsTable": "AdoptedConversationsTable",
    "BridgesTable": "AdoptedBridgesTable",
    "PricingTable": "AdoptedPricingTable",
    "UsageTable": "AdoptedUsageStream",
    "SettingsTable": "AdoptedSettingsTable",
    "ContentTable": "AdoptedContentStream",
}
ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/fermata-ConversationsTable-1AB.restored"
STREAM = ARN + "/stream/2026-11-28T12:00:00.000"


@pytest.fixture(scope="module")
def adopting(transformed: Template) -> Template:
    resolved: Template = templates.resolve_conditions(transformed, ADOPTED)
    return resolved


def evaluate(value: Any, arns: dict[str, str]) -> Any:
    """Evaluate what refers to an adopted table, as CloudFormation does."""
    if isinstance(value, list):
        return [evaluate(one, arns) for one in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name)} if name in arns:
            return arns[name]
        case {"Fn::Sub": str(text)}:
            for name, arn in arns.items():
                text = text.replace(f"${{{name}}}", arn)
            return {"Fn::Sub": text}
        case {"Fn::Split": [separator, text]}:
            return str(evaluate(text, arns)).split(separator) if is_adopted(text) else value
        case {"Fn::Select": [index, parts]}:
            evaluated = evaluate(parts, arns)
            return evaluated[int(index)] if isinstance(evaluated, list) else value
    return {name: evaluate(one, arns) for name, one in value.items()}


def is_adopted(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("Ref", "")).startswith("Adopted")


def own_names(value: Any) -> Any:
    """Write own tables as adopted ones evaluate to, for a comparison."""
    text = json.dumps(value)
    for table in PARAMETERS:
        text = text.replace(json.dumps({"Fn::GetAtt": [table, "StreamArn"]}), f'"{arn_of(table)}/stream/label"')
        text = text.replace(json.dumps({"Fn::GetAtt": [table, "Arn"]}), f'"{arn_of(table)}"')
        text = text.replace(json.dumps({"Ref": table}), f'"restored-{table}"')
        text = text.replace(f"${{{table}.Arn}}", arn_of(table)).replace(f"${{{table}}}", f"restored-{table}")
    return json.loads(text)


def arn_of(table: str) -> str:
    return f"arn:aws:dynamodb:eu-west-1:123456789012:table/restored-{table}"


def fill_substitutions(value: Any) -> Any:
    """Fill in the values of `Fn::Sub` that are texts by now."""
    if isinstance(value, list):
        return [fill_substitutions(one) for one in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("Fn::Sub"), list):
        text, given = value["Fn::Sub"]
        texts = {name: one for name, one in given.items() if isinstance(one, str) and not name.startswith("__")}
        for name, one in texts.items():
            text = text.replace(f"${{{name}}}", one)
        others = {name: one for name, one in given.items() if name not in texts}
        return {"Fn::Sub": [text, others] if others else text} if "${" in text or others else text
    filled = {name: fill_substitutions(one) for name, one in value.items()}
    return filled["Fn::Sub"] if list(filled) == ["Fn::Sub"] and "${" not in str(filled["Fn::Sub"]) else filled


def test_the_stack_makes_no_table_that_it_adopts_and_keeps_the_one_that_it_had(transformed: Template) -> None:
    for table, parameter in PARAMETERS.items():
        resource = transformed["Resources"][table]
        condition = resource["Condition"]
        assert transformed["Conditions"][condition] == {"Fn::Equals": [{"Ref": parameter}, ""]}
        assert transformed["Parameters"][parameter]["Default"] == ""
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"


def test_an_adopted_table_has_the_place_of_the_stacks_own_everywhere(deployed: Template, adopting: Template) -> None:
    """Permissions, variables of functions, alarms, the dashboard, the event source and outputs name it."""
    arns = {
        parameter: arn_of(table) + ("/stream/label" if parameter.endswith("Stream") else "")
        for table, parameter in PARAMETERS.items()
    }
    for part in ("Resources", "Outputs"):
        for name, expected in deployed[part].items():
            if name in PARAMETERS or name == "FunctionSettings":
                continue
            found = fill_substitutions(evaluate(adopting[part][name], arns))
            assert found == fill_substitutions(own_names(expected)), name


def test_a_parameter_takes_the_arn_that_dynamodb_reports(source: Template) -> None:
    for parameter in PARAMETERS.values():
        allowed = source["Parameters"][parameter]["AllowedPattern"]
        value = STREAM if parameter.endswith("Stream") else ARN
        assert matches(allowed, value)
        assert matches(allowed, "")
        assert not matches(allowed, "fermata-ConversationsTable-1AB")


def test_a_table_without_a_stream_cannot_be_adopted_for_the_ledger(source: Template) -> None:
    assert not matches(source["Parameters"]["AdoptedUsageStream"]["AllowedPattern"], ARN)


def test_a_restored_table_is_given_what_the_template_gives_to_its_own(deployed: Template) -> None:
    known = {table.output: table for table in STACK_TABLES}
    assert {name for name in deployed["Outputs"] if name.endswith("TableName")} == set(known)
    for output, table in known.items():
        name = deployed["Outputs"][output]["Value"]["Ref"]
        properties = deployed["Resources"][name]["Properties"]
        assert PARAMETERS[name] == table.parameter
        assert table.has_stream == ("StreamSpecification" in properties)
        assert table.has_expiry == ("TimeToLiveSpecification" in properties)


def matches(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value) is not None
