"""Step Functions executions start at once and once, end once, and take their open token with them.

Stock MiniStack waits 150 ms before the first state, refuses to start what already runs under the same name and input,
lets a stopped execution's task answer it into FAILED, and ignores the machine's own TimeoutSeconds.
"""

import json
import math
import time
from typing import Any

from ministack.services import stepfunctions as states

from local.emulator import tokens
from local.emulator.tokens import Json
from local.emulator.upstream import Function, corrects, edits, relies_on

relies_on(
    states,
    _emit_execution_status_event="9c89e45693e3",
    _resolve_state_machine_arn="e054a309ee54",
    _execute_task="53c818d247db",
)

edits(states, "_run_execution", "996dff84e0e0", "    time.sleep(0.15)\n", "")


def running(execution: Json) -> bool:
    return bool(execution["status"] == "RUNNING")


def deadline(execution: Json) -> float:
    """When the machine's TimeoutSeconds end this execution, on the monotonic clock."""
    return float(execution.get("deadline", math.inf))


@corrects(states, "_start_execution", "9923282fc76c")
def start(stock: Function, data: Json) -> Any:
    """The same name and input while it runs is the same execution; otherwise a used name is refused."""
    machine = states._resolve_state_machine_arn(data.get("stateMachineArn", ""))
    if machine and data.get("name"):
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{data['name']}"
        execution = states._executions.get(arn)
        if execution and running(execution) and execution["input"] == data.get("input", "{}"):
            return states.json_response({"executionArn": arn, "startDate": execution["startDate"]})
    if len(data.get("input", "")) > tokens.PAYLOAD_LIMIT:
        return states.error_response_json("InvalidExecutionInput", "The input is larger than 256 KiB", 400)
    return stock(data)


@corrects(states, "_run_execution", "996dff84e0e0")
def run(stock: Function, arn: str) -> None:
    execution = states._executions.get(arn)
    machine = states._state_machines.get(execution["stateMachineArn"]) if execution else None
    limit = json.loads(machine["definition"]).get("TimeoutSeconds") if machine else None
    if limit is not None:
        execution["deadline"] = time.monotonic() + limit
    stock(arn)


@corrects(states, "_stop_execution", "44d2d84ccd5c")
def stop(stock: Function, data: Json) -> Any:
    response = stock(data)
    execution = states._executions.get(data.get("executionArn"))
    if execution and not running(execution):
        tokens.stop_all(execution)
    return response


@corrects(states, "_fail_execution", "e6da895fa0b7")
def fail(stock: Function, execution: Json, error: str, cause: str) -> None:
    """What a task comes to after its execution was stopped or timed out changes nothing any more."""
    if running(execution):
        stock(execution, error, cause)


def time_out(execution: Json) -> None:
    execution["status"] = "TIMED_OUT"
    execution["stopDate"] = states.now_iso()
    states._add_event(execution, "ExecutionTimedOut", {"executionTimedOutEventDetails": {}})
    states._emit_execution_status_event(execution)
