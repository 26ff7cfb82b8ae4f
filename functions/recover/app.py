"""Sees to turns whose execution failed, was stopped, never started or fell silent."""

import json
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources
from fermata.turns.recover.recover_turn import recover_silent_turns, recover_turn


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Three callers: the machine's Catch, EventBridge telling how an execution ended, and the sweep."""
    if event.get("sweep"):
        return {"seen": recover_silent_turns(get_resources())}
    told = json.loads(event["detail"]["input"]) if "detail" in event else event
    has_failed = told.get("cause") == "failed"
    recover_turn(get_resources(), told["tenant"], told["turn"], n=told["n"], has_failed=has_failed)
    return {"seen": 1}
