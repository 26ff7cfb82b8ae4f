"""Examine the account and the region that a stack is to be deployed to."""

import difflib
from collections.abc import Iterator
from typing import Any

from fermata_client.stack.doctor.deployment_plan import DeploymentPlan
from fermata_client.stack.doctor.finding import Finding, describe_aws_error, get_aws_errors
from fermata_client.stack.resources import LOCAL_REGION, StackLocation

PUBLISHED_PARTITION = "aws"
"""Where the publisher of the web adapter offers its arm64 layer."""
UNUSABLE_STATUSES = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED")
FAILED_UPDATE = "UPDATE_ROLLBACK_FAILED"
NEEDED_SERVICES = ("lambda", "stepfunctions", "apigateway", "dynamodb")
"""Services of the template that some regions lack."""


def check_identity(location: StackLocation) -> Finding:
    """Check that AWS accepts the operator's credentials."""
    try:
        identity = location.create_client("sts").get_caller_identity()
    except get_aws_errors() as error:
        reason = describe_aws_error(error)
        text = f"AWS does not accept your credentials: {reason}. Run `aws configure` or `aws sso login`."
        return Finding("problem", "credentials", text)
    return Finding("ok", "credentials", f"Account {identity['Account']}, as {identity['Arn']}.")


def check_region(region: str | None, partition: str) -> Finding:
    """Check that there is a region, and that the template can be deployed to its partition as it is."""
    if region is None:
        text = "No region is set. Give one: `sam deploy --region eu-central-1`, or `aws configure set region`."
        return Finding("problem", "region", text)
    if reason := _find_fault_of_region(region, partition):
        return Finding("problem", "region", reason)
    if partition != PUBLISHED_PARTITION:
        text = (
            f"{region} is in the partition {partition}, where nothing of this was tried. ARNs follow the partition; "
            "the layer of the web adapter has to be published there, and named by WebAdapterLayerArn."
        )
        return Finding("note", "region", text)
    return Finding("ok", "region", f"{region}, partition {partition}.")


def _find_fault_of_region(region: str, partition: str) -> str:
    """Return why nothing can be deployed to a region, as far as the installed SDK knows; empty if it can."""
    import boto3

    session = boto3.session.Session()
    regions = {service: session.get_available_regions(service, partition) for service in NEEDED_SERVICES}
    known = sorted(set().union(*regions.values()))
    if region not in known:
        similar = difflib.get_close_matches(region, known, 1)
        hint = f" Did you mean {similar[0]}?" if similar else ""
        return f"AWS has no region {region}.{hint} If it is newer than your boto3: `pip install --upgrade boto3`."
    lacking = [service for service in NEEDED_SERVICES if region not in regions[service]]
    return f"{region} has no {', '.join(lacking)}. Choose another region." if lacking else ""


def check_layer(location: StackLocation, plan: DeploymentPlan, partition: str, region: str) -> Finding:
    """Check that the layer of the web adapter can be used in the region."""
    arn = plan.get_layer_arn(partition, region)
    try:
        layer = location.create_client("lambda").get_layer_version_by_arn(Arn=arn)
    except get_aws_errors() as error:
        text = (
            f"{arn} cannot be used: {describe_aws_error(error)}. Publish the web adapter's arm64 layer in {region} "
            "(https://github.com/aws/aws-lambda-web-adapter), and set WebAdapterLayerArn to its ARN."
        )
        return Finding("problem", "layer", text)
    architectures = layer.get("CompatibleArchitectures") or ["arm64"]
    if "arm64" not in architectures:
        return Finding("problem", "layer", f"{arn} is for {', '.join(architectures)}. The functions run on arm64.")
    return Finding("ok", "layer", f"{arn}.")


def check_access_logs(location: StackLocation, plan: DeploymentPlan) -> Iterator[Finding]:
    """Check that API Gateway may write the log that AccessLogDays asks for. Without one, nothing is asked."""
    if plan.values.get("AccessLogDays", "0") == "0":
        return
    try:
        role = location.create_client("apigateway").get_account().get("cloudwatchRoleArn")
    except get_aws_errors() as error:
        yield Finding("note", "access logs", f"API Gateway cannot be asked for its role: {describe_aws_error(error)}.")
        return
    if role:
        yield Finding("ok", "access logs", f"API Gateway writes them as {role}.")
        return
    text = (
        "API Gateway has no role in this account and region to write the log of AccessLogDays. The deployment would be "
        "rolled back. docs/operations.md says how to set one."
    )
    yield Finding("problem", "access logs", text)


def check_stack_status(location: StackLocation, stack: str) -> Finding:
    """Check that CloudFormation would create or update the stack."""
    try:
        stacks = location.create_client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except get_aws_errors() as error:
        if "does not exist" in str(error):
            return Finding("ok", "stack", f"{stack} does not exist yet and will be created.")
        return Finding("problem", "stack", f"CloudFormation cannot be asked: {describe_aws_error(error)}.")
    return _judge_status(stack, stacks[0])


def _judge_status(stack: str, described: dict[str, Any]) -> Finding:
    status = described["StackStatus"]
    reason = described.get("StackStatusReason")
    because = f" ({reason})" if reason else ""
    if status in UNUSABLE_STATUSES:
        text = f"{stack} is in {status}{because} and cannot be updated. Delete it: `sam delete --stack-name {stack}`."
        return Finding("problem", "stack", text)
    if status == FAILED_UPDATE:
        command = f"aws cloudformation continue-update-rollback --stack-name {stack}"
        text = f"{stack} is in {status}{because}. Continue: `{command}`."
        return Finding("problem", "stack", text)
    if status.endswith("IN_PROGRESS"):
        return Finding("note", "stack", f"{stack} is in {status}. Wait until that is over.")
    return Finding("ok", "stack", f"{stack} is in {status} and will be updated.")


def find_region(location: StackLocation) -> str | None:
    """Return the region that is named, or that of the operator's AWS settings."""
    import boto3

    if location.region is None and location.local is not None:
        return LOCAL_REGION
    region: str | None = location.region or boto3.session.Session().region_name
    return region


def get_partition(location: StackLocation, region: str | None) -> str:
    """Return the partition of a region: aws, aws-cn, aws-us-gov, …"""
    import boto3

    if region is None or location.local is not None:
        return PUBLISHED_PARTITION
    try:
        return str(boto3.session.Session().get_partition_for_region(region))
    except get_aws_errors():
        return PUBLISHED_PARTITION


def examine_account(location: StackLocation, plan: DeploymentPlan) -> Iterator[Finding]:
    """Examine credentials, region, layer and stack, as far as what comes first allows."""
    region = find_region(location)
    partition = get_partition(location, region)
    finding = check_region(region, partition)
    yield finding
    if region is None or finding.level == "problem":
        return
    identity = check_identity(location)
    yield identity
    if identity.level == "ok":
        yield check_layer(location, plan, partition, region)
        yield from check_access_logs(location, plan)
        yield check_stack_status(location, plan.stack)
