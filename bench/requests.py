"""What was asked of AWS while something ran, counted by the emulator itself (local/emulator/recording.py)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.units import Key, Meter, item_size

RECORDS = "/_fermata/requests"
ROLLUP = "#rollup"
"""In the keys of what the audit is read from, and in no other."""
TEXT = ('"type":"text"', '"type":"reasoning"')


@dataclass(frozen=True)
class Request:
    """`kind`: append (streamed text), poll (a reader's look), watch (a worker's look), audit (the ledger counted,
    behind the turn's back) or step (all else).
    """

    service: str
    operation: str
    at_ns: int
    kind: str
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Request":
        request, response = record.get("request", {}), record.get("response", {})
        kind = _kind(record["operation"], request) if record["service"] == "dynamodb" else "step"
        return cls(record["service"], record["operation"], record["atNs"], kind, request, response)


def _kind(operation: str, request: dict[str, Any]) -> str:
    """Log items begin with `e#`; whoever asks for nothing else waits for the next one."""
    if ROLLUP in json.dumps(request):
        return "audit"
    if operation == "BatchGetItem":
        keys = [key["sk"]["S"] for asked in request["RequestItems"].values() for key in asked["Keys"]]
        return "poll" if all(key.startswith("e#") for key in keys) else "step"
    if operation == "GetItem" and request["Key"]["sk"]["S"].startswith("e#"):
        return "watch"
    item = request.get("Item", {}) if operation == "PutItem" else {}
    told = item.get("data", {}).get("S", "")
    if item.get("sk", {}).get("S", "").startswith("e#") and told.count('"type"') == sum(map(told.count, TEXT)):
        return "append"
    return "step"


@dataclass
class Requests:
    """In the order in which they were answered."""

    all: list[Request] = field(default_factory=list)

    def of(self, *kinds: str) -> "Requests":
        return Requests([request for request in self.all if request.kind in kinds])

    def between(self, start_ns: int, end_ns: int) -> "Requests":
        return Requests([request for request in self.all if start_ns <= request.at_ns < end_ns])

    def by_name(self, service: str = "") -> dict[str, int]:
        names = [request.name for request in self.all if not service or request.service == service]
        return dict(sorted(Counter(names).items()))

    def count(self, service: str) -> int:
        return sum(request.service == service for request in self.all)

    def metered(self, stored: Callable[[Key], int]) -> Meter:
        meter = Meter(stored)
        for request in self.all:
            if request.service == "dynamodb":
                meter.add(request.operation, request.request, request.response)
        return meter


@contextmanager
def recording(endpoint: str) -> Iterator[Requests]:
    """Everything asked inside `with`; filled when it ends."""
    url, requests = endpoint + RECORDS, Requests()
    httpx.post(url, trust_env=False).raise_for_status()
    try:
        yield requests
        records: Sequence[dict[str, Any]] = httpx.get(url, trust_env=False, timeout=30).json()
        requests.all = [Request.of(record) for record in records]
    finally:
        httpx.delete(url, trust_env=False, timeout=30)


def sizes_now(dynamodb: Any) -> Callable[[Key], int]:
    """The size of a stored item, asked of the table once for each key."""
    known: dict[Key, int] = {}

    def size(key: Key) -> int:
        if key not in known:
            table, pk, sk = key
            found = dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
            known[key] = item_size(found.get("Item", {}))
        return known[key]

    return size
