"""Check what must hold for everything a cloud has run: its executions carry only ids, and its logs hold no secret."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from local.cloud import LocalCloud
from tests.e2e import canaries, turn_checks
from tests.e2e.deployment_parameters import function_folders

MAX_STATE_CHARACTERS = 2000
TASK_TOKEN = re.compile(r"AQC[A-Za-z0-9_-]{40}")
"""A token of a task. An id of 21 random characters may hold its first three: one in fourteen thousand does."""


def check_executions(cloud: LocalCloud) -> None:
    """Check the inputs and outputs of all states of all executions: they are small, and hold no content."""
    for arn in list_execution_arns(cloud):
        history = turn_checks.get_history(cloud, arn)
        assert max((len(text) for event in history for text in iter_carried_texts(event)), default=0) < (
            MAX_STATE_CHARACTERS
        ), arn
        text = json.dumps(history, default=str)
        assert [canary for canary in canaries.ALL_CANARIES if canary in text] == [], arn


def check_logs(cloud: LocalCloud) -> None:
    """Check that no log line holds a prompt, a result, a page, a key or a token."""
    lines = {folder: cloud.read_log_lines(folder) for folder in function_folders()}
    lines["emulator"] = (cloud.directory / "emulator.log").read_text(errors="replace").splitlines()
    secrets = [*canaries.ALL_CANARIES, cloud.token.rpartition(".")[2]]
    secrets += [(cloud.directory / name).read_text() for name in ("secret", "host_secret")]
    leaks = [(name, line) for name, found in lines.items() for line in found if has_secret(line, secrets)]
    assert leaks == []


def has_secret(line: str, secrets: Iterable[str]) -> bool:
    """Return whether a line holds one of the secrets, or a token of a task."""
    return any(secret in line for secret in secrets) or TASK_TOKEN.search(line) is not None


def list_execution_arns(cloud: LocalCloud) -> Iterator[str]:
    pages = cloud.get_client("stepfunctions").get_paginator("list_executions")
    for page in pages.paginate(stateMachineArn=cloud.get_output("TurnMachineArn")):
        yield from (execution["executionArn"] for execution in page["executions"])


def iter_carried_texts(event: dict[str, Any]) -> Iterator[str]:
    """Iterate over the inputs and outputs in one event of a history."""
    for details in event.values():
        if isinstance(details, dict):
            yield from (str(details[name]) for name in ("input", "output") if name in details)
