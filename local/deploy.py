"""Create or update the stack of template.yaml on the local cloud, without the SAM CLI and in about a second.

The template is changed in memory where the local cloud differs:

- layers are removed, because functions run in the project's own environment
- saved queries of Logs Insights are removed
- new versions of functions get all traffic at once, because the emulator has no CodeDeploy
- code and state machine are uploaded, as `sam package` does
- environment variables that only a test sets are added to every function
"""

import contextlib
import copy
import hashlib
import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import ClientError

from local import template
from local.aws_clients import get_client
from local.template import Json

STACK_NAME = "fermata"
CODE_BUCKET = "fermata-local-code"
EMULATED_PARAMETERS = {"Stage": "local", "SearchVectors": "dynamodb"}
"""What the stack needs in the emulator, which has no bucket of vectors."""
NO_UPDATES_MESSAGE = "No updates are to be performed"
IGNORED_FILES = ("__pycache__", ".DS_Store")


class DeploymentFailedError(RuntimeError):
    """The stack could not be deployed. The message names resources and reasons."""


def deploy_stack(
    endpoint: str,
    parameters: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    template_path: Path = template.TEMPLATE_PATH,
    stack_name: str = STACK_NAME,
) -> dict[str, str]:
    """Deploy the stack and return its outputs.

    Args:
        variables: environment variables added to every function.

    Raises:
        DeploymentFailedError
    """
    document = package_template(endpoint, template_path)
    document = add_variables(document, variables or {})
    if unknown := sorted(set(parameters) - set(document.get("Parameters", {}))):
        raise DeploymentFailedError(f"{template_path.name} has no parameter {', '.join(unknown)}.")
    request = {
        "StackName": stack_name,
        "TemplateURL": _upload_template(endpoint, document),
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    cloudformation = get_client("cloudformation", endpoint)
    change = cloudformation.update_stack if stack_exists(endpoint, stack_name) else cloudformation.create_stack
    try:
        change(**request)
    except ClientError as error:
        reason = error.response["Error"]["Message"]
        if NO_UPDATES_MESSAGE not in reason:
            raise DeploymentFailedError(f"CloudFormation refuses the stack {stack_name}: {reason}") from error
    return _wait_for_stack(endpoint, stack_name)


def stack_exists(endpoint: str, stack_name: str = STACK_NAME) -> bool:
    try:
        return bool(get_client("cloudformation", endpoint).describe_stacks(StackName=stack_name)["Stacks"])
    except ClientError:
        return False


def package_template(endpoint: str, path: Path) -> Json:
    """Upload code and state machine, and refer to them in the template."""
    document = remove_rollouts(remove_unknown_monitoring(remove_layers(template.load_template(path))))
    s3 = get_client("s3", endpoint)
    s3.create_bucket(Bucket=CODE_BUCKET)
    for function in template.resources_of_type(document, "Function").values():
        code = zip_folder(path.parent / function["Properties"]["CodeUri"])
        function["Properties"]["CodeUri"] = _upload(s3, code, "zip")
    for machine in template.resources_of_type(document, "StateMachine").values():
        definition = yaml.safe_load((path.parent / machine["Properties"]["DefinitionUri"]).read_text())
        machine["Properties"]["DefinitionUri"] = _upload(s3, json.dumps(definition).encode(), "asl.json")
    return document


def remove_layers(document: Json) -> Json:
    document = copy.deepcopy(document)
    for name in template.resources_of_type(document, "LayerVersion"):
        del document["Resources"][name]
    function_properties = [document.get("Globals", {}).get("Function", {})]
    function_properties += [one["Properties"] for one in template.resources_of_type(document, "Function").values()]
    for properties in function_properties:
        properties.pop("Layers", None)
    return document


def remove_unknown_monitoring(document: Json) -> Json:
    """Remove the saved queries of Logs Insights and alarms with expressions, which the emulator does not have."""
    resources: Json = document["Resources"]
    kept = {
        name: one
        for name, one in resources.items()
        if one["Type"] != "AWS::Logs::QueryDefinition" and "Metrics" not in one.get("Properties", {})
    }
    return document | {"Resources": kept}


def remove_rollouts(document: Json) -> Json:
    """Remove gradual deployments, which CodeDeploy carries out. Versions and aliases stay."""
    document = copy.deepcopy(document)
    document.get("Globals", {}).get("Function", {}).pop("DeploymentPreference", None)
    return document


def add_variables(document: Json, variables: Mapping[str, str]) -> Json:
    function_globals = document.setdefault("Globals", {}).setdefault("Function", {})
    function_globals.setdefault("Environment", {}).setdefault("Variables", {}).update(variables)
    return document


def zip_folder(folder: Path) -> bytes:
    """Zip the files of a folder. The same files give the same bytes, so unchanged code is not deployed again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not set(file.parts) & set(IGNORED_FILES):
                entry = zipfile.ZipInfo(str(file.relative_to(folder)))
                entry.external_attr = file.stat().st_mode << 16
                archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def _upload(s3: Any, content: bytes, suffix: str) -> Json:
    key = f"{hashlib.sha256(content).hexdigest()[:20]}.{suffix}"
    s3.put_object(Bucket=CODE_BUCKET, Key=key, Body=content)
    return {"Bucket": CODE_BUCKET, "Key": key}


def _upload_template(endpoint: str, document: Json) -> str:
    """Upload the template and return its URL. A request itself may hold only 51,200 bytes of a template."""
    stored = _upload(get_client("s3", endpoint), json.dumps(document).encode(), "template.json")
    return f"{endpoint}/{stored['Bucket']}/{stored['Key']}"


def _wait_for_stack(endpoint: str, stack: str) -> dict[str, str]:
    cloudformation = get_client("cloudformation", endpoint)
    while True:
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        status = described["StackStatus"]
        if not status.endswith("IN_PROGRESS"):
            break
        time.sleep(0.02)
    if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        reasons = _read_failure_reasons(endpoint, stack)
        raise DeploymentFailedError(f"The stack {stack} is {status}.\n{reasons}")
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def _read_failure_reasons(endpoint: str, stack: str) -> str:
    events = []
    with contextlib.suppress(ClientError):
        events = get_client("cloudformation", endpoint).describe_stack_events(StackName=stack)["StackEvents"]
    reasons = [
        f"- {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in events
        if event.get("ResourceStatusReason")
    ]
    return "\n".join(reasons) or "CloudFormation gives no reason."
