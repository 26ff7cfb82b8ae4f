"""Record the AWS calls that the service makes, as the emulator saw them (local/emulator/request_recorder.py)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from bench.dynamodb_units import CapacityMeter, ItemKey, item_bytes
from local.signed_pages import RunSignature

RECORDS_PATH = "/_fermata/requests"
RECORDS_TIMEOUT_SECONDS = 30
ROLLUP_KEY_PART = "#rollup"
"""Only keys of rollups contain it."""
LOG_ENTRY_KEY_PREFIX = "e#"
TEXT_EVENT_MARKS = ('"type":"text"', '"type":"reasoning"')

CallKind = Literal["append", "poll", "watch", "audit", "step"]
"""append: streamed text · poll: a reader looks for new entries · watch: the worker looks for a cancellation ·
audit: the ledger is counted, independently of the turn · step: everything else.
"""


@dataclass(frozen=True)
class AwsCall:
    service: str
    operation: str
    at_ns: int
    """When it was answered."""
    kind: CallKind
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "AwsCall":
        request, response = record.get("request", {}), record.get("response", {})
        kind = _classify_request(record["operation"], request) if record["service"] == "dynamodb" else "step"
        return cls(record["service"], record["operation"], record["atNs"], kind, request, response)


def _classify_request(operation: str, request: dict[str, Any]) -> CallKind:
    """Classify a DynamoDB request. Readers and the watch read entries of a turn log by key, and nothing else."""
    if ROLLUP_KEY_PART in json.dumps(request):
        return "audit"
    if operation == "BatchGetItem":
        keys = [key["sk"]["S"] for table_request in request["RequestItems"].values() for key in table_request["Keys"]]
        return "poll" if all(key.startswith(LOG_ENTRY_KEY_PREFIX) for key in keys) else "step"
    if operation == "GetItem" and request["Key"]["sk"]["S"].startswith(LOG_ENTRY_KEY_PREFIX):
        return "watch"
    if operation == "PutItem" and _is_text_entry(request.get("Item", {})):
        return "append"
    return "step"


def _is_text_entry(item: dict[str, Any]) -> bool:
    """Return whether an item is a log entry whose events are all text or reasoning."""
    sort_key: str = item.get("sk", {}).get("S", "")
    is_entry = sort_key.startswith(LOG_ENTRY_KEY_PREFIX)
    data: str = item.get("data", {}).get("S", "")
    return is_entry and data.count('"type"') == sum(map(data.count, TEXT_EVENT_MARKS))


@dataclass
class AwsCalls:
    calls: list[AwsCall] = field(default_factory=list)
    """In the order in which they were answered."""

    def of_kind(self, *kinds: CallKind) -> "AwsCalls":
        return AwsCalls([call for call in self.calls if call.kind in kinds])

    def between(self, start_ns: int, end_ns: int) -> "AwsCalls":
        return AwsCalls([call for call in self.calls if start_ns <= call.at_ns < end_ns])

    def count_by_name(self, service: str = "") -> dict[str, int]:
        names = [call.name for call in self.calls if not service or call.service == service]
        return dict(sorted(Counter(names).items()))

    def count_for_service(self, service: str) -> int:
        return sum(call.service == service for call in self.calls)

    def meter_units(self, stored_size: Callable[[ItemKey], int]) -> CapacityMeter:
        """Add up the DynamoDB units of the calls; `stored_size` returns the present size of an item."""
        meter = CapacityMeter(stored_size)
        for call in self.calls:
            if call.service == "dynamodb":
                meter.add_request(call.operation, call.request, call.response)
        return meter


@contextmanager
def record_aws_calls(endpoint: str) -> Iterator[AwsCalls]:
    """Record the calls made within the `with` block. The yielded object has them after the block."""
    url, recorded, signature = endpoint + RECORDS_PATH, AwsCalls(), RunSignature()
    httpx.post(url, auth=signature, trust_env=False).raise_for_status()
    try:
        yield recorded
        response = httpx.get(url, auth=signature, trust_env=False, timeout=RECORDS_TIMEOUT_SECONDS)
        records: Sequence[dict[str, Any]] = response.json()
        recorded.calls = [AwsCall.from_record(record) for record in records]
    finally:
        httpx.delete(url, auth=signature, trust_env=False, timeout=RECORDS_TIMEOUT_SECONDS)


def stored_item_sizes(dynamodb: Any) -> Callable[[ItemKey], int]:
    """Return a function that reads the size of a stored item, once for each key."""
    size_by_key: dict[ItemKey, int] = {}

    def stored_size(key: ItemKey) -> int:
        if key not in size_by_key:
            table, pk, sk = key
            response = dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
            size_by_key[key] = item_bytes(response.get("Item", {}))
        return size_by_key[key]

    return stored_size
