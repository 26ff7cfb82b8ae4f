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
from local.clients import client
from local.template import Json

STACK = "fermata"
CODE_BUCKET = "fermata-local-code"
NOTHING_TO_DO = "No updates are to be performed"
LEFT_OUT = ("__pycache__", ".DS_Store")


class DeploymentFailedError(RuntimeError):
    """The stack did not come up; the message names the resources and reasons."""


def deploy(
    endpoint: str,
    parameters: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    path: Path = template.TEMPLATE,
    stack: str = STACK,
) -> dict[str, str]:
    """The stack's outputs. `variables` reach every function in addition to the template's own."""
    document = packaged(endpoint, path)
    document = with_variables(document, variables or {})
    known = document.get("Parameters", {})
    if unknown := sorted(set(parameters) - set(known)):
        raise DeploymentFailedError(f"{path.name} has no parameter {', '.join(unknown)}.")
    request = {
        "StackName": stack,
        "TemplateURL": _address(endpoint, document),
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    cloudformation = client("cloudformation", endpoint)
    change = cloudformation.update_stack if exists(endpoint, stack) else cloudformation.create_stack
    try:
        change(**request)
    except ClientError as error:
        reason = error.response["Error"]["Message"]
        if NOTHING_TO_DO not in reason:
            raise DeploymentFailedError(f"CloudFormation refuses the stack {stack}: {reason}") from error
    return _outcome(endpoint, stack)


def exists(endpoint: str, stack: str = STACK) -> bool:
    try:
        return bool(client("cloudformation", endpoint).describe_stacks(StackName=stack)["Stacks"])
    except ClientError:
        return False


def packaged(endpoint: str, path: Path) -> Json:
    """The template with uploaded code in the place of folders, and without layers."""
    document = without_queries(without_layers(template.load(path)))
    s3 = client("s3", endpoint)
    s3.create_bucket(Bucket=CODE_BUCKET)
    for function in template.resources(document, "Function").values():
        code = zipped(path.parent / function["Properties"]["CodeUri"])
        function["Properties"]["CodeUri"] = _uploaded(s3, code, "zip")
    for machine in template.resources(document, "StateMachine").values():
        definition = yaml.safe_load((path.parent / machine["Properties"]["DefinitionUri"]).read_text())
        machine["Properties"]["DefinitionUri"] = _uploaded(s3, json.dumps(definition).encode(), "asl.json")
    return document


def without_layers(document: Json) -> Json:
    document = copy.deepcopy(document)
    for name in template.resources(document, "LayerVersion"):
        del document["Resources"][name]
    holders = [document.get("Globals", {}).get("Function", {})]
    holders += [function["Properties"] for function in template.resources(document, "Function").values()]
    for holder in holders:
        holder.pop("Layers", None)
    return document


def without_queries(document: Json) -> Json:
    """Nobody would run them: there is no Logs Insights here."""
    kept = {name: it for name, it in document["Resources"].items() if it["Type"] != "AWS::Logs::QueryDefinition"}
    return document | {"Resources": kept}


def with_variables(document: Json, variables: Mapping[str, str]) -> Json:
    everywhere = document.setdefault("Globals", {}).setdefault("Function", {})
    everywhere.setdefault("Environment", {}).setdefault("Variables", {}).update(variables)
    return document


def zipped(folder: Path) -> bytes:
    """The folder's own files; the same files give the same bytes, so that unchanged code is not deployed anew."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not set(file.parts) & set(LEFT_OUT):
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
    stored = _uploaded(client("s3", endpoint), json.dumps(document).encode(), "template.json")
    return f"{endpoint}/{stored['Bucket']}/{stored['Key']}"


def _outcome(endpoint: str, stack: str) -> dict[str, str]:
    cloudformation = client("cloudformation", endpoint)
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
        events = client("cloudformation", endpoint).describe_stack_events(StackName=stack)["StackEvents"]
    told = [
        f"- {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in events
        if event.get("ResourceStatusReason")
    ]
    return "\n".join(told) or "CloudFormation gives no reason."
