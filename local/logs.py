"""`python -m local.logs`: what the functions of the running service have logged, oldest first, one JSON object a line.

The lines are those CloudWatch would hold; the streaming function runs in the front door, and so do its lines.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import EndpointConnectionError

from local.aws_clients import get_client
from local.state import STATE_DIRECTORY

NOT_RUNNING_MESSAGE = "No service runs in this folder. Start it with `make run`, then ask again."


def main(state: Path = STATE_DIRECTORY, wanted: str = "") -> None:
    """Only lines that contain `wanted`: a turn's id, a request id, `ERROR`."""
    connection = state / "local.json"
    if not connection.exists():
        sys.exit(NOT_RUNNING_MESSAGE)
    endpoint = json.loads(connection.read_text())["endpoint"]
    try:
        for line in read_log_lines(get_client("logs", endpoint), state):
            if wanted in line:
                print(line)
    except EndpointConnectionError:
        sys.exit(NOT_RUNNING_MESSAGE)
    except BrokenPipeError:  # `| head` has seen enough; the interpreter must not try to flush what is left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_log_lines(logs: Any, state: Path) -> Iterator[str]:
    told = [*_functions(logs), *_front_door(state)]
    yield from (line for _, line in sorted(told, key=lambda one: one[0]))


def _functions(logs: Any) -> Iterator[tuple[str, str]]:
    for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix="/aws/lambda/"):
        for group in page["logGroups"]:
            events = logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
            yield from _dated(event["message"] for part in events for event in part["events"])


def _front_door(state: Path) -> Iterator[tuple[str, str]]:
    file = state / "front_door.log"
    yield from _dated(file.read_text(errors="replace").splitlines() if file.exists() else ())


def _dated(told: Any) -> Iterator[tuple[str, str]]:
    """Our own lines only, by the moment they name; a runtime's `START` and `REPORT` name none."""
    for message in told:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            yield str(json.loads(message)["timestamp"]), message.strip()


if __name__ == "__main__":
    main(wanted=" ".join(sys.argv[1:]))
