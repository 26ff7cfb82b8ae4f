"""Read template.yaml with CloudFormation's short forms."""

from pathlib import Path
from typing import Any

import yaml

from local.processes import ROOT

try:
    from yaml import CSafeLoader as SafeLoader  # reads template.yaml ten times as fast as the one in Python
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

Json = dict[str, Any]
TEMPLATE_PATH = ROOT / "template.yaml"
SAM_TYPE_PREFIX = "AWS::Serverless::"


class _Loader(SafeLoader):
    """A YAML loader for CloudFormation's short forms: `!Ref x` is {"Ref": x}, `!GetAtt a.b` {"Fn::GetAtt": [a, b]}."""


def _construct_short_form(loader: _Loader, name: str, node: yaml.Node) -> Json:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _construct_short_form)


def load_template(path: Path = TEMPLATE_PATH) -> Json:
    document: Json = yaml.load(path.read_text(), _Loader)  # noqa: S506  a SafeLoader with CloudFormation's tags
    return document


def resources_of_type(document: Json, kind: str) -> dict[str, Json]:
    """Get the resources of one SAM type, by logical id. `kind`: `Function`, `Api`, …"""
    wanted_type = f"{SAM_TYPE_PREFIX}{kind}"
    return {name: resource for name, resource in document["Resources"].items() if resource["Type"] == wanted_type}
