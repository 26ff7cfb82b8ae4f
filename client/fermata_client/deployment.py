"""For an operator's commands: where the deployment is, and its own tables as they are reached from outside."""

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from fermata_client.connection import STATE_FILE

if TYPE_CHECKING:
    from fermata.aws.desk import Desk

P = ParamSpec("P")
R = TypeVar("R")
OUTPUTS = {
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
LOCAL_STACK = "fermata"
LOCAL_ACCOUNT = {"AWS_ACCESS_KEY_ID": "0" * 12, "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}


def deployment(command: Callable[P, R]) -> Callable[P, R]:
    """Gives a command its options for where, and turns what goes wrong into one sentence."""

    @click.option("--stack", help="The CloudFormation stack. Without it, the environment variables of its functions.")
    @click.option("--region", help="The stack's AWS region.")
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return in_one_sentence(lambda: command(*args, **kwargs))

    return wrapped


def in_one_sentence(act: Callable[[], R]) -> R:
    try:
        from botocore.exceptions import BotoCoreError, ClientError

        from fermata.aws.settings import SettingsMissing
        from fermata.words.errors import Refusal
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"This needs the service's own package ({error.name} is missing): pip install -e layers/fermata"
        ) from error
    try:
        return act()
    except Refusal as refusal:
        raise click.ClickException(refusal.error) from refusal
    except SettingsMissing as missing:
        raise click.ClickException(f"Name the deployment with --stack. ({missing})") from missing
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(str(error)) from error


def desk_of(stack: str | None, region: str | None) -> "Desk":
    import boto3

    from fermata.aws.clock import Clock
    from fermata.aws.desk import Desk
    from fermata.aws.settings import Settings

    if region:
        boto3.setup_default_session(region_name=region)
    if stack is None:
        return Desk(Settings.from_environment(), Clock())
    found = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found}
    missing = sorted(set(OUTPUTS.values()) - set(outputs))
    if missing:
        raise click.ClickException(f"The stack {stack!r} is no Fermata: it has no output {', '.join(missing)}.")
    return Desk(Settings.model_validate({field: outputs[name] for field, name in OUTPUTS.items()}), Clock())


def local_stack(start: Path | None = None) -> str | None:
    """The stack that `make run` keeps, when it runs here: from now on this process talks to that cloud."""
    here = start or Path.cwd()
    for file in (folder / STATE_FILE for folder in (here, *here.parents)):
        if file.is_file() and (endpoint := json.loads(file.read_text(encoding="utf-8")).get("endpoint")):
            os.environ.update(LOCAL_ACCOUNT | {"AWS_ENDPOINT_URL": str(endpoint)})
            return LOCAL_STACK
    return None
