"""Recover turns whose workflow execution failed, was stopped, never started, or stalled."""

import json
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.turns.recover.recover_open_turns import recover_open_turns
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.webhooks.outbox import resend_outbox


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Handle the workflow's Catch, EventBridge's event of an ended execution, and the scheduled sweep.

    The event of a sweep may hold `startGraceSeconds`: how long a turn is given to start by itself.
    """
    if event.get("sweep"):
        resend_outbox(get_resources())
        return {"seen": recover_open_turns(get_resources(), event.get("startGraceSeconds"))}
    turn = json.loads(event["detail"]["input"]) if "detail" in event else event
    recover_turn(
        get_resources(),
        turn["tenant"],
        turn["turn"],
        execution_number=turn["n"],
        has_execution_failed=turn.get("cause") == "failed",
    )
    return {"seen": 1}


prepare_function("dynamodb", "s3", "stepfunctions")
