"""Read what `sam deploy` will deploy: template.yaml and an environment of samconfig.toml."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

_PUBLISHED_LAYER = re.compile(r"arn:\$\{AWS::Partition\}:lambda:\$\{AWS::Region\}:\d{12}:layer:[\w-]+:\d+")


@dataclass(frozen=True)
class DeploymentPlan:
    """A stack that is to be deployed."""

    stack: str
    region: str | None
    values: dict[str, str]
    """The parameters that samconfig.toml sets."""
    parameters: dict[str, dict[str, Any]]
    """The parameters of the template, as it declares them."""
    published_layer: str
    """The ARN of the web adapter's layer, with CloudFormation's variables for partition and region."""

    def get_value(self, name: str) -> str:
        """Return the value that a parameter will have."""
        return self.values.get(name, str(self.parameters.get(name, {}).get("Default", "")))

    def get_layer_arn(self, partition: str, region: str) -> str:
        """Return the ARN of the web adapter's layer in a region."""
        layer = self.get_value("WebAdapterLayerArn") or self.published_layer
        return layer.replace("${AWS::Partition}", partition).replace("${AWS::Region}", region)


def read_deployment_plan(folder: Path, environment: str) -> DeploymentPlan:
    """Read the plan from a clone of the project.

    Raises:
        click.ClickException: The folder is no clone, or samconfig.toml has no such environment.
    """
    try:
        template = (folder / "template.yaml").read_text()
        config = tomllib.loads((folder / "samconfig.toml").read_text())
    except FileNotFoundError as error:
        raise click.ClickException(
            f"{error.filename} is missing. Run this in a clone of the project, or name it with --folder."
        ) from error
    if environment not in config or not isinstance(config[environment], dict):
        names = ", ".join(name for name, value in config.items() if isinstance(value, dict))
        raise click.ClickException(f"samconfig.toml has no environment {environment!r}. It has {names}.")
    common = config[environment].get("global", {}).get("parameters", {})
    deploy = config[environment].get("deploy", {}).get("parameters", {})
    settings = common | deploy
    layer = _PUBLISHED_LAYER.search(template)
    return DeploymentPlan(
        stack=str(settings.get("stack_name", "")),
        region=settings.get("region"),
        values=dict(pair.split("=", 1) for pair in settings.get("parameter_overrides", [])),
        parameters=_load_parameters(template),
        published_layer=layer[0] if layer else "",
    )


def _load_parameters(template: str) -> dict[str, dict[str, Any]]:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise click.ClickException("This needs PyYAML: pip install pyyaml") from error

    fastest = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # the first is ten times as fast
    # A class of its own reads CloudFormation's short forms as nothing.
    Loader: Any = type("Loader", (fastest,), {})
    Loader.add_multi_constructor("!", lambda *_: None)
    parameters: dict[str, dict[str, Any]] = yaml.load(template, Loader)["Parameters"]  # noqa: S506  a SafeLoader
    return parameters
