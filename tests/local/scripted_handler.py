"""Handle events that say what to do, step by step, and note each step in a table. Deployed by `emulator_lab.py`."""

import builtins
import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import boto3

Event = dict[str, Any]


@functools.cache
def get_client(service: str) -> Any:
    make: Any = boto3.client
    return make(service)


def write_note(event: Event, what: str) -> None:
    item = {
        "pk": {"S": event["lab"]},
        "sk": {"S": f"{time.time_ns()}"},
        "what": {"S": what},
        "pid": {"N": f"{os.getpid()}"},
        "event": {"S": json.dumps(event)},
    }
    get_client("dynamodb").put_item(TableName="lab-notes", Item=item)


def run_step(event: Event, verb: str, *words: Any) -> None:
    match verb:
        case "note":
            write_note(event, words[0])
        case "success":
            get_client("stepfunctions").send_task_success(taskToken=event["token"], output=json.dumps(words[0]))
        case "failure":
            get_client("stepfunctions").send_task_failure(taskToken=event["token"], error=words[0], cause="asked for")
        case "heartbeat":
            get_client("stepfunctions").send_task_heartbeat(taskToken=event["token"])
        case "sleep":
            time.sleep(words[0])
        case "until":
            while not Path(words[0]).exists():
                time.sleep(0.01)
        case "print":
            print(words[0])
        case "raise":
            raise getattr(builtins, words[0])("asked for")
        case "exit":
            os._exit(1)


def handler(event: Event, context: Any) -> Any:
    if event.get("source") == "aws.states":
        write_note({"lab": event["detail"]["name"]}, f"eventbridge {event['detail']['status']}")
    elif event.get("source") == "aws.events":
        write_note({"lab": "schedule"}, "schedule")
    elif "script" in event:
        run_script(event)
    else:
        return describe_runtime(context)
    return None


def run_script(event: Event) -> None:
    write_note(event, "start")
    for verb in event["script"].get(f"{event.get('visit', 0)}.{event.get('retry', 0)}", []):
        run_step(event, *verb)
    write_note(event, "return")


def describe_runtime(context: Any) -> Event:
    return {
        "environment": dict(os.environ),
        "executable": sys.executable,
        "path": sys.path,
        "pid": os.getpid(),
        "parent": os.getppid(),
        "context": {
            "id": context.aws_request_id,
            "arn": context.invoked_function_arn,
            "name": context.function_name,
            "left": context.get_remaining_time_in_millis(),
        },
    }
