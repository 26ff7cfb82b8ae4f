"""Examine the state of a deployed stack."""

from fermata_client.stack.doctor.finding import Finding, describe_aws_error, get_aws_errors
from fermata_client.stack.resources import StackLocation

DEPLOYED_STATUSES = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")


def check_deployed_stack(location: StackLocation) -> tuple[Finding, dict[str, str]]:
    """Check that a stack has been deployed, and return its outputs too."""
    try:
        (stack,) = location.create_client("cloudformation").describe_stacks(StackName=location.stack)["Stacks"]
    except get_aws_errors() as error:
        return Finding("problem", "stack", f"{location.stack} cannot be examined: {describe_aws_error(error)}."), {}
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    if "ApiUrl" not in outputs:
        return Finding("problem", "stack", f"{location.stack} is no Fermata: it has no output ApiUrl."), {}
    status = stack["StackStatus"]
    if status in DEPLOYED_STATUSES:
        return Finding("ok", "stack", f"{location.stack} is in {status}."), outputs
    if status == "UPDATE_ROLLBACK_COMPLETE":
        text = f"The last update of {location.stack} was rolled back; it runs as before. Its events say why."
        return Finding("note", "stack", text), outputs
    return Finding("problem", "stack", f"{location.stack} is in {status}. Its events say why."), outputs
