"""What was asked of AWS while something ran, counted by the emulator itself (local/emulator/request_recorder.py)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.dynamodb_units import CapacityMeter, ItemKey, item_bytes

RECORDS_PATH = "/_fermata/requests"
ROLLUP_KEY_PART = "#rollup"
"""In the keys of what the audit is read from, and in no other."""
TEXT_EVENT_MARKS = ('"type":"text"', '"type":"reasoning"')


@dataclass(frozen=True)
class AwsCall:
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
    def from_record(cls, record: dict[str, Any]) -> "AwsCall":
        request, response = record.get("request", {}), record.get("response", {})
        kind = _kind(record["operation"], request) if record["service"] == "dynamodb" else "step"
        return cls(record["service"], record["operation"], record["atNs"], kind, request, response)


def _kind(operation: str, request: dict[str, Any]) -> str:
    """Log items begin with `e#`; whoever asks for nothing else waits for the next one."""
    if ROLLUP_KEY_PART in json.dumps(request):
        return "audit"
    if operation == "BatchGetItem":
        keys = [key["sk"]["S"] for asked in request["RequestItems"].values() for key in asked["Keys"]]
        return "poll" if all(key.startswith("e#") for key in keys) else "step"
    if operation == "GetItem" and request["Key"]["sk"]["S"].startswith("e#"):
        return "watch"
    item = request.get("Item", {}) if operation == "PutItem" else {}
    told = item.get("data", {}).get("S", "")
    if item.get("sk", {}).get("S", "").startswith("e#") and told.count('"type"') == sum(
        map(told.count, TEXT_EVENT_MARKS)
    ):
        return "append"
    return "step"


@dataclass
class AwsCalls:
    """In the order in which they were answered."""

    calls: list[AwsCall] = field(default_factory=list)

    def of_kind(self, *kinds: str) -> "AwsCalls":
        return AwsCalls([request for request in self.calls if request.kind in kinds])

    def between(self, start_ns: int, end_ns: int) -> "AwsCalls":
        return AwsCalls([request for request in self.calls if start_ns <= request.at_ns < end_ns])

    def count_by_name(self, service: str = "") -> dict[str, int]:
        names = [request.name for request in self.calls if not service or request.service == service]
        return dict(sorted(Counter(names).items()))

    def count_for_service(self, service: str) -> int:
        return sum(request.service == service for request in self.calls)

    def meter_units(self, stored: Callable[[ItemKey], int]) -> CapacityMeter:
        meter = CapacityMeter(stored)
        for request in self.calls:
            if request.service == "dynamodb":
                meter.add_request(request.operation, request.request, request.response)
        return meter


@contextmanager
def record_aws_calls(endpoint: str) -> Iterator[AwsCalls]:
    """Everything asked inside `with`; filled when it ends."""
    url, requests = endpoint + RECORDS_PATH, AwsCalls()
    httpx.post(url, trust_env=False).raise_for_status()
    try:
        yield requests
        records: Sequence[dict[str, Any]] = httpx.get(url, trust_env=False, timeout=30).json()
        requests.calls = [AwsCall.from_record(record) for record in records]
    finally:
        httpx.delete(url, trust_env=False, timeout=30)


def stored_item_sizes(dynamodb: Any) -> Callable[[ItemKey], int]:
    """The size of a stored item, asked of the table once for each key."""
    known: dict[ItemKey, int] = {}

    def size(key: ItemKey) -> int:
        if key not in known:
            table, pk, sk = key
            found = dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
            known[key] = item_bytes(found.get("Item", {}))
        return known[key]

    return size
