"""Open the AWS resources of a deployed stack from outside, as its operator."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fermata_client.service.connection_files import iter_connection_files, read_connection_file

if TYPE_CHECKING:
    from botocore.config import Config

    from fermata.aws.resources import Resources
    from fermata.aws.settings import Settings

STACK_OUTPUT_BY_SETTING = {
    "conversations_table": "ConversationsTableName",
    "bridges_table": "BridgesTableName",
    "pricing_table": "PricingTableName",
    "usage_table": "UsageTableName",
    "settings_table": "SettingsTableName",
    "content_table": "ContentTableName",
    "bucket": "BucketName",
    "key_id": "KeyArn",
    "state_machine_arn": "TurnMachineArn",
    "fermata_stage": "StageName",
}
"""Fields of `fermata.aws.settings.Settings`, and the outputs of template.yaml that hold their values."""
OPTIONAL_STACK_OUTPUT_BY_SETTING = {"vector_bucket_arn": "VectorBucketArn"}
"""The same of what not every stack has."""
LOCAL_STACK_NAME = "fermata"
LOCAL_REGION = "us-east-1"


@dataclass(frozen=True)
class LocalCloudAccess:
    """The address of the local cloud, the access key of its run, and the URL of the service that runs on it."""

    endpoint: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    service_url: str = ""


@dataclass(frozen=True)
class StackLocation:
    """The name of a stack, and where it is. None is what the operator's own AWS settings say."""

    stack: str | None
    region: str | None = None
    local: LocalCloudAccess | None = None
    """None for a stack on AWS."""

    def create_client(self, service: Any, config: "Config | None" = None) -> Any:
        """Create a client of an AWS service for this stack. The process's settings stay as they are."""
        import boto3

        if self.local is None:
            return boto3.client(service, region_name=self.region, config=config)
        return boto3.client(
            service,
            region_name=self.region or LOCAL_REGION,
            endpoint_url=self.local.endpoint,
            aws_access_key_id=self.local.access_key_id,
            aws_secret_access_key=self.local.secret_access_key,
            config=config,
        )


def open_stack_resources(location: StackLocation) -> "Resources":
    """Open the resources of a CloudFormation stack; without a name, those that the environment variables name.

    Raises:
        click.ClickException: the stack is not one of Fermata.
    """
    from fermata.aws.settings import Settings

    if location.stack is None:
        return _locate_resources(Settings.from_environment(), location)
    stacks = location.create_client("cloudformation").describe_stacks(StackName=location.stack)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}
    missing = sorted(set(STACK_OUTPUT_BY_SETTING.values()) - set(outputs))
    if missing:
        raise click.ClickException(
            f"The stack {location.stack!r} is no Fermata: it has no output {', '.join(missing)}."
        )
    fields = {
        field: outputs[name]
        for field, name in (STACK_OUTPUT_BY_SETTING | OPTIONAL_STACK_OUTPUT_BY_SETTING).items()
        if name in outputs
    }
    return _locate_resources(Settings.model_validate(fields), location)


def open_operator_resources(stack: str | None, region: str | None) -> "Resources":
    """Open a stack by its name; without one, what the environment variables name, or else the local cloud.

    Args:
        stack: The name of the stack.
        region: The stack's AWS region.
    """
    if stack is None and not os.environ.get("SETTINGS_TABLE") and (local := find_local_stack(region)):
        return open_stack_resources(local)
    return open_stack_resources(StackLocation(stack, region))


def _locate_resources(settings: "Settings", location: StackLocation) -> "Resources":
    """Create resources whose clients call the stack where it is."""
    from fermata.aws.clock import Clock
    from fermata.aws.resources import CLIENT_CONFIG, S3_CONFIG, Resources

    class LocatedResources(Resources):
        def _client(self, service: Any) -> Any:
            return location.create_client(service, S3_CONFIG if service == "s3" else CLIENT_CONFIG)

    return LocatedResources(settings, Clock())


def find_local_stack(region: str | None = None, start: Path | None = None) -> StackLocation | None:
    """Find the stack of the local cloud of `make run`; None if none runs in `start`, above it, or for the user."""
    for file in iter_connection_files(start or Path.cwd()):
        state = read_connection_file(file)
        values = [state.get(name) for name in ("endpoint", "accessKeyId", "secretAccessKey", "url")]
        if all(values):
            return StackLocation(LOCAL_STACK_NAME, region, LocalCloudAccess(*map(str, values)))
    return None
