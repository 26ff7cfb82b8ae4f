"""Creates or updates the stack of template.yaml on the local cloud, without the SAM CLI and in about a second.

The template is taken as it is and changed in memory, because this cloud differs in a few places:

- functions run in the project's own environment, so no layer is built or attached
- saved queries of Logs Insights are left out
- code and state machine are uploaded here, which is what `sam package` would do
- environment variables may be added to every function, for what only a test sets
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
NO_UPDATES_MESSAGE = "No updates are to be performed"
IGNORED_FILES = ("__pycache__", ".DS_Store")


class DeploymentFailedError(RuntimeError):
    """The stack did not come up; the message names the resources and reasons."""


def deploy_stack(
    endpoint: str,
    parameters: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    template_path: Path = template.TEMPLATE_PATH,
    stack_name: str = STACK_NAME,
) -> dict[str, str]:
    """The stack's outputs. `variables` reach every function in addition to the template's own."""
    document = package_template(endpoint, template_path)
    document = add_variables(document, variables or {})
    known = document.get("Parameters", {})
    if unknown := sorted(set(parameters) - set(known)):
        raise DeploymentFailedError(f"{template_path.name} has no parameter {', '.join(unknown)}.")
    request = {
        "StackName": stack_name,
        "TemplateURL": _address(endpoint, document),
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
    return _outcome(endpoint, stack_name)


def stack_exists(endpoint: str, stack_name: str = STACK_NAME) -> bool:
    try:
        return bool(get_client("cloudformation", endpoint).describe_stacks(StackName=stack_name)["Stacks"])
    except ClientError:
        return False


def package_template(endpoint: str, path: Path) -> Json:
    """The template with uploaded code in the place of folders, and without layers."""
    document = remove_saved_queries(remove_layers(template.load_template(path)))
    s3 = get_client("s3", endpoint)
    s3.create_bucket(Bucket=CODE_BUCKET)
    for function in template.resources_of_type(document, "Function").values():
        code = zip_folder(path.parent / function["Properties"]["CodeUri"])
        function["Properties"]["CodeUri"] = _uploaded(s3, code, "zip")
    for machine in template.resources_of_type(document, "StateMachine").values():
        definition = yaml.safe_load((path.parent / machine["Properties"]["DefinitionUri"]).read_text())
        machine["Properties"]["DefinitionUri"] = _uploaded(s3, json.dumps(definition).encode(), "asl.json")
    return document


def remove_layers(document: Json) -> Json:
    document = copy.deepcopy(document)
    for name in template.resources_of_type(document, "LayerVersion"):
        del document["Resources"][name]
    holders = [document.get("Globals", {}).get("Function", {})]
    holders += [function["Properties"] for function in template.resources_of_type(document, "Function").values()]
    for holder in holders:
        holder.pop("Layers", None)
    return document


def remove_saved_queries(document: Json) -> Json:
    """Nobody would run them: there is no Logs Insights here."""
    kept = {name: it for name, it in document["Resources"].items() if it["Type"] != "AWS::Logs::QueryDefinition"}
    return document | {"Resources": kept}


def add_variables(document: Json, variables: Mapping[str, str]) -> Json:
    everywhere = document.setdefault("Globals", {}).setdefault("Function", {})
    everywhere.setdefault("Environment", {}).setdefault("Variables", {}).update(variables)
    return document


def zip_folder(folder: Path) -> bytes:
    """The folder's own files; the same files give the same bytes, so that unchanged code is not deployed anew."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not set(file.parts) & set(IGNORED_FILES):
                entry = zipfile.ZipInfo(str(file.relative_to(folder)))
                entry.external_attr = file.stat().st_mode << 16
                archive.writestr(entry, file.read_bytes())
    return content.getvalue()


def _uploaded(s3: Any, content: bytes, suffix: str) -> Json:
    key = f"{hashlib.sha256(content).hexdigest()[:20]}.{suffix}"
    s3.put_object(Bucket=CODE_BUCKET, Key=key, Body=content)
    return {"Bucket": CODE_BUCKET, "Key": key}


def _address(endpoint: str, document: Json) -> str:
    """Where CloudFormation finds the template: a request itself may hold no more than 51,200 bytes of one."""
    stored = _uploaded(get_client("s3", endpoint), json.dumps(document).encode(), "template.json")
    return f"{endpoint}/{stored['Bucket']}/{stored['Key']}"


def _outcome(endpoint: str, stack: str) -> dict[str, str]:
    cloudformation = get_client("cloudformation", endpoint)
    while True:
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        if not described["StackStatus"].endswith("IN_PROGRESS"):
            break
        time.sleep(0.02)
    if described["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        raise DeploymentFailedError(f"The stack {stack} is {described['StackStatus']}.\n{_reasons(endpoint, stack)}")
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def _reasons(endpoint: str, stack: str) -> str:
    events = []
    with contextlib.suppress(ClientError):
        events = get_client("cloudformation", endpoint).describe_stack_events(StackName=stack)["StackEvents"]
    told = [
        f"- {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in events
        if event.get("ResourceStatusReason")
    ]
    return "\n".join(told) or "CloudFormation gives no reason."
