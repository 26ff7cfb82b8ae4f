"""For an operator's commands: where the deployment is, and its own tables as they are reached from outside."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from fermata_client.service.connection import STATE_FILE

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

P = ParamSpec("P")
R = TypeVar("R")
STACK_OUTPUT_BY_SETTING = {
    "conversations_table": "ConversationsTableName",
    "bridges_table": "BridgesTableName",
    "pricing_table": "PricingTableName",
    "usage_table": "UsageTableName",
    "settings_table": "SettingsTableName",
    "bucket": "BucketName",
    "key_id": "KeyArn",
    "state_machine_arn": "TurnMachineArn",
    "fermata_stage": "StageName",
}
"""Settings and the outputs of template.yaml they come from."""
LOCAL_STACK_NAME = "fermata"
LOCAL_AWS_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "0" * 12,
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def stack_options(command: Callable[P, R]) -> Callable[P, R]:
    """Gives a command its options for where, and turns what goes wrong into one sentence."""

    @click.option("--stack", help="The CloudFormation stack. Without it, the environment variables of its functions.")
    @click.option("--region", help="The stack's AWS region.")
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_reporting_errors(lambda: command(*args, **kwargs))

    return wrapped


def run_reporting_errors(act: Callable[[], R]) -> R:
    try:
        from botocore.exceptions import BotoCoreError, ClientError

        from fermata.aws.settings import SettingsError
        from fermata.domain.errors import ApiError
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"This needs the service's own package ({error.name} is missing): pip install -e layers/fermata"
        ) from error
    try:
        return act()
    except ApiError as refusal:
        raise click.ClickException(refusal.message) from refusal
    except SettingsError as missing:
        raise click.ClickException(f"Name the deployment with --stack. ({missing})") from missing
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(str(error)) from error


def open_stack_resources(stack: str | None, region: str | None) -> "Resources":
    import boto3

    from fermata.aws.clock import Clock
    from fermata.aws.resources import Resources
    from fermata.aws.settings import Settings

    if region:
        boto3.setup_default_session(region_name=region)
    if stack is None:
        return Resources(Settings.from_environment(), Clock())
    found = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found}
    missing = sorted(set(STACK_OUTPUT_BY_SETTING.values()) - set(outputs))
    if missing:
        raise click.ClickException(f"The stack {stack!r} is no Fermata: it has no output {', '.join(missing)}.")
    return Resources(
        Settings.model_validate({field: outputs[name] for field, name in STACK_OUTPUT_BY_SETTING.items()}), Clock()
    )


def select_local_stack(start: Path | None = None) -> str | None:
    """The stack that `make run` keeps, when it runs here: from now on this process talks to that cloud."""
    here = start or Path.cwd()
    for file in (folder / STATE_FILE for folder in (here, *here.parents)):
        if file.is_file() and (endpoint := json.loads(file.read_text(encoding="utf-8")).get("endpoint")):
            os.environ.update(LOCAL_AWS_ENVIRONMENT | {"AWS_ENDPOINT_URL": str(endpoint)})
            return LOCAL_STACK_NAME
    return None
