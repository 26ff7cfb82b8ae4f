"""The seam where tests act before and after every AWS call: lost responses, conflicts, deaths, delays.

A rule is a JSON file in the folder named by FERMATA_FAULTS, obeyed on the local stage only:

    {"call": "dynamodb.PutItem", "contains": "bridge-1", "when": "after", "do": "exit", "skip": 2}

`contains` is looked for in the request's path and body. `do` is one of `exit` (the process dies), `lost` (the
call happened, its answer did not arrive), `delay:<seconds>`, `until:<file>` (waits until that file exists),
`error:<Code>`, or for a transaction `error:TransactionCanceledException:<reason of its first write>`. `skip` lets that
many matching calls of one process pass. A rule fires once in all processes together: whoever removes its file carries
it out.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError

MAX_FAULT_WAIT_SECONDS = 60.0


class FaultInjector:
    """Watches every call of the clients it is attached to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.match_counts: Counter[str] = Counter()

    def attach(self, client: Any) -> None:
        events = client.meta.events
        events.register("before-call", self.before_call)
        events.register("after-call", self.after_call)

    def before_call(self, model: Any, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["fermata_call"] = (f"{model.service_model.service_name}.{model.name}", _text(params))
        self.apply_rules("before", *context["fermata_call"])

    def after_call(self, context: dict[str, Any], **_: Any) -> None:
        if "fermata_call" in context:
            self.apply_rules("after", *context["fermata_call"])

    def apply_rules(self, when: str, call: str, params: str) -> None:
        for path in sorted(self.folder.glob("*.json")):
            rule = _read(path)
            if rule and _applies(rule, when, call, params) and self._is_due(path, rule) and _claim(path):
                inject_fault(str(rule["do"]), call)

    def _is_due(self, path: Path, rule: dict[str, Any]) -> bool:
        self.match_counts[path.name] += 1
        return self.match_counts[path.name] > int(rule.get("skip", 0))


def inject_fault(action: str, call: str) -> None:
    kind, _, value = action.partition(":")
    if kind == "exit":
        os._exit(1)
    if kind == "delay":
        time.sleep(float(value))
    elif kind == "until":
        _wait_for(Path(value))
    elif kind == "lost":
        raise ConnectionClosedError(endpoint_url=call)
    elif kind == "error":
        raise _error(value, call)
    else:
        raise ValueError(f"A fault rule cannot do {action!r}; see aws/fault_injection.py for what it can.")


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + MAX_FAULT_WAIT_SECONDS
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _error(value: str, call: str) -> ClientError:
    code, _, reason = value.partition(":")
    response: Any = {"Error": {"Code": code, "Message": "injected"}}
    if reason:
        response["CancellationReasons"] = [{"Code": reason}]
    return ClientError(response, call)


def _text(params: dict[str, Any]) -> str:
    body = params.get("body", b"")
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    return f"{params.get('url_path', '')} {text}"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        rule: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return rule


def _applies(rule: dict[str, Any], when: str, call: str, params: str) -> bool:
    return rule["when"] == when and rule["call"] == call and str(rule.get("contains", "")) in params


def _claim(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
