"""Open the AWS resources of a deployed stack from outside, as its operator."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fermata_client.service.state_files import iter_state_files, read_state_file

if TYPE_CHECKING:
    from fermata.aws.resources import Resources

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
"""Fields of `fermata.aws.settings.Settings`, and the outputs of template.yaml that hold their values."""
LOCAL_STACK_NAME = "fermata"
LOCAL_AWS_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "0" * 12,
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def open_stack_resources(stack: str | None, region: str | None) -> "Resources":
    """Open the resources of a CloudFormation stack; with None, those that the environment variables name.

    Raises:
        click.ClickException: the stack is not one of Fermata.
    """
    import boto3

    from fermata.aws.clock import Clock
    from fermata.aws.resources import Resources
    from fermata.aws.settings import Settings

    if region:
        boto3.setup_default_session(region_name=region)
    if stack is None:
        return Resources(Settings.from_environment(), Clock())
    description = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}
    missing = sorted(set(STACK_OUTPUT_BY_SETTING.values()) - set(outputs))
    if missing:
        raise click.ClickException(f"The stack {stack!r} is no Fermata: it has no output {', '.join(missing)}.")
    fields = {field: outputs[name] for field, name in STACK_OUTPUT_BY_SETTING.items()}
    return Resources(Settings.model_validate(fields), Clock())


def select_local_stack(start: Path | None = None) -> str | None:
    """Point this process's AWS clients at the local cloud of `make run`, if it runs in `start` or a folder above.

    Returns:
        The local stack's name, or None if no local cloud runs there.
    """
    folder = start or Path.cwd()
    for file in iter_state_files(folder):
        if endpoint := read_state_file(file).get("endpoint"):
            os.environ.update(LOCAL_AWS_ENVIRONMENT | {"AWS_ENDPOINT_URL": str(endpoint)})
            return LOCAL_STACK_NAME
    return None
