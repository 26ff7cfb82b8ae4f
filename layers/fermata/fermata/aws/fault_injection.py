"""Inject faults before and after AWS calls: lost responses, errors, crashes and delays, for tests.

A rule is a JSON file in the folder named by FERMATA_FAULTS. Rules apply on the local stage only:

    {"call": "dynamodb.PutItem", "contains": "bridge-1", "when": "after", "do": "exit", "skip": 2}

`contains` is searched for in the request's path and body. `do` is one of

    exit                    the process exits
    lost                    the call took place, but its response did not arrive
    delay:<seconds>         the call waits
    until:<file>            the call waits until the file exists
    error:<Code>            the call fails with this error code
    error:TransactionCanceledException:<reason code of the first write>

`skip` is the number of matching calls of one process that pass unharmed. A rule fires once in all processes together:
the process that deletes the rule's file applies it.

The file `latencies` in the same folder makes calls take at least so many milliseconds, for benchmarks. A process reads
it once. Half of the time passes before the call takes place, and the rest before its response arrives:

    {"dynamodb.PutItem": 5, "s3.PutObject": 30}
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError

LATENCIES_FILE = "latencies"
MAX_FAULT_WAIT_SECONDS = 60.0


class FaultInjector:
    """Applies rules to every call of the boto3 clients it is attached to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.match_counts: Counter[str] = Counter()
        self.latency_seconds = _read_latency_seconds(folder / LATENCIES_FILE)

    def attach(self, client: Any) -> None:
        events = client.meta.events
        events.register("before-call", self.before_call)
        events.register("after-call", self.after_call)

    def before_call(self, model: Any, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        call = f"{model.service_model.service_name}.{model.name}"
        started_at = time.monotonic()
        latency_seconds = self.latency_seconds.get(call, 0.0)
        context["fermata_call"] = (call, _request_text(params))
        context["fermata_response_at"] = started_at + latency_seconds
        self.apply_rules("before", *context["fermata_call"])
        _sleep_until(started_at + latency_seconds / 2)

    def after_call(self, context: dict[str, Any], **_: Any) -> None:
        if "fermata_call" in context:
            self.apply_rules("after", *context["fermata_call"])
            _sleep_until(context["fermata_response_at"])

    def apply_rules(self, when: str, call: str, request_text: str) -> None:
        for path in sorted(self.folder.glob("*.json")):
            rule = _read_rule(path)
            if rule and _matches(rule, when, call, request_text) and self._is_due(path, rule) and _claim_rule(path):
                inject_fault(str(rule["do"]), call)

    def _is_due(self, path: Path, rule: dict[str, Any]) -> bool:
        self.match_counts[path.name] += 1
        return self.match_counts[path.name] > int(rule.get("skip", 0))


def inject_fault(action: str, call: str) -> None:
    """Carry out the `do` of a rule."""
    kind, _, value = action.partition(":")
    if kind == "exit":
        os._exit(1)
    if kind == "delay":
        time.sleep(float(value))
    elif kind == "until":
        _wait_for_file(Path(value))
    elif kind == "lost":
        raise ConnectionClosedError(endpoint_url=call)
    elif kind == "error":
        raise _make_client_error(value, call)
    else:
        raise ValueError(f"A fault rule cannot do {action!r}; see aws/fault_injection.py for what it can.")


def _sleep_until(instant: float) -> None:
    seconds = instant - time.monotonic()
    if seconds > 0:
        time.sleep(seconds)


def _wait_for_file(file: Path) -> None:
    deadline = time.monotonic() + MAX_FAULT_WAIT_SECONDS
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _make_client_error(value: str, call: str) -> ClientError:
    code, _, reason = value.partition(":")
    response: Any = {"Error": {"Code": code, "Message": "injected"}}
    if reason:
        response["CancellationReasons"] = [{"Code": reason}]
    return ClientError(response, call)


def _request_text(params: dict[str, Any]) -> str:
    body = params.get("body", b"")
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    return f"{params.get('url_path', '')} {text}"


def _read_latency_seconds(path: Path) -> dict[str, float]:
    if not path.exists():
        return {}
    latency_ms: dict[str, float] = json.loads(path.read_text())
    return {call: milliseconds / 1000 for call, milliseconds in latency_ms.items()}


def _read_rule(path: Path) -> dict[str, Any] | None:
    """Return None if another process has claimed the rule."""
    try:
        rule: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return rule


def _matches(rule: dict[str, Any], when: str, call: str, request_text: str) -> bool:
    return rule["when"] == when and rule["call"] == call and str(rule.get("contains", "")) in request_text


def _claim_rule(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
