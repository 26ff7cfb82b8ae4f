"""Sees to turns whose execution failed, was stopped, never started or fell silent."""

import json
from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.turns.recovering import recover, sweep


@signals.traced
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Three callers: the machine's Catch, EventBridge telling how an execution ended, and the sweep."""
    if event.get("sweep"):
        return {"seen": sweep(open_desk())}
    told = json.loads(event["detail"]["input"]) if "detail" in event else event
    has_failed = told.get("cause") == "failed"
    recover(open_desk(), told["tenant"], told["turn"], n=told["n"], has_failed=has_failed)
    return {"seen": 1}
