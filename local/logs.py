"""Print the functions' log lines of the running service, oldest first, one JSON object a line: `python -m local.logs`.

The lines are those that CloudWatch Logs would hold. The streaming function runs in the front door, so its lines are in
the front door's log.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import EndpointConnectionError

from fermata_client.service.connection_files import read_connection_file
from local.aws_clients import make_client, make_session
from local.lock_or_delete_state import STATE_DIRECTORY
from local.request_signature import RunCredentials

NOT_RUNNING_MESSAGE = "No service runs in this folder. Start it with `make run`, then ask again."


def main(state_directory: Path = STATE_DIRECTORY, text: str = "") -> None:
    """Print the lines that contain `text`: a turn's id, a request id, `ERROR`."""
    connection_file = state_directory / "local.json"
    if not connection_file.exists():
        sys.exit(NOT_RUNNING_MESSAGE)
    connection = read_connection_file(connection_file)
    try:
        session = make_session(RunCredentials(connection["accessKeyId"], connection["secretAccessKey"]))
        for line in read_log_lines(make_client(session, "logs", connection["endpoint"]), state_directory):
            if text in line:
                print(line)
    except EndpointConnectionError:
        sys.exit(NOT_RUNNING_MESSAGE)
    except BrokenPipeError:  # `| head` has read enough; the interpreter must not flush the rest at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_log_lines(logs_client: Any, state_directory: Path) -> Iterator[str]:
    """Read the lines of all functions in the order of their timestamps."""
    dated_lines = [*_read_function_lines(logs_client), *_read_front_door_lines(state_directory)]
    yield from (line for _, line in sorted(dated_lines, key=lambda dated: dated[0]))


def _read_function_lines(logs_client: Any) -> Iterator[tuple[str, str]]:
    log_groups = logs_client.get_paginator("describe_log_groups")
    log_events = logs_client.get_paginator("filter_log_events")
    for group_page in log_groups.paginate(logGroupNamePrefix="/aws/lambda/"):
        for group in group_page["logGroups"]:
            for page in log_events.paginate(logGroupName=group["logGroupName"]):
                yield from _with_timestamps(event["message"] for event in page["events"])


def _read_front_door_lines(state_directory: Path) -> Iterator[tuple[str, str]]:
    file = state_directory / "front_door.log"
    yield from _with_timestamps(file.read_text(errors="replace").splitlines() if file.exists() else ())


def _with_timestamps(messages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pair each JSON line with its timestamp. Lines of the runtime (`START`, `REPORT`) have none and are left out."""
    for message in messages:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            yield str(json.loads(message)["timestamp"]), message.strip()


if __name__ == "__main__":
    main(text=" ".join(sys.argv[1:]))
