"""Patch Step Functions and Lambda: simulate what a state transition and an invocation take on AWS.

`LATENCIES_FILE` names a JSON file of milliseconds. Its members `states.Transition` and `lambda.Invoke` apply here, and
the other ones to the calls of functions (aws/fault_injection.py). Without it nothing is delayed.
"""

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

from ministack.services import lambda_svc, stepfunctions

from local.emulator.patches.registry import Function, patch_function

LATENCIES_VARIABLE = "LATENCIES_FILE"


@functools.cache
def latency_seconds(name: str) -> float:
    path = os.environ.get(LATENCIES_VARIABLE)
    latency_ms: dict[str, float] = json.loads(Path(path).read_text()) if path else {}
    return latency_ms.get(name, 0.0) / 1000


def sleep_as_on_aws(name: str) -> None:
    """Sleep for the latency of that name. Without one, the thread goes on: even a sleep of no time lets others run."""
    if seconds := latency_seconds(name):
        time.sleep(seconds)


@patch_function(stepfunctions, "_add_event", "b1db143ccd21")
def enter_state(original: Function, execution: Any, event_type: str, *details: Any) -> Any:
    if event_type.endswith("StateEntered"):
        sleep_as_on_aws("states.Transition")
    return original(execution, event_type, *details)


@patch_function(lambda_svc, "_execute_function_warm", "62b9218bef5b")
def invoke_function(original: Function, function: Any, event: Any, request_id: str) -> Any:
    sleep_as_on_aws("lambda.Invoke")
    return original(function, event, request_id)
