"""Record requests with the times of their responses, for tests and measurements."""

import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

MAX_RECORDS = 5000
MAX_RECORDED_BODIES = 500
"""Older bodies are dropped, because every request repeats its conversation."""


@dataclass
class RequestRecord:
    """A request. Times are `time.monotonic_ns()`, which all processes of a machine share."""

    key: str
    script: str | None
    raw_body: bytes | None = None
    """As it was received: parsed, it takes many times the memory."""
    beta: str | None = None
    request_name: str | None = None
    """`<turn>.<round>.<attempt>`, as the local cloud's functions say (decision 0171)."""
    status: int = 0
    arrived_ns: int = field(default_factory=time.monotonic_ns)
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    closed_by_peer_ns: int | None = None

    def to_json(self, *, bodies: bool) -> dict[str, Any]:
        seen = {
            "script": self.script, "status": self.status, "beta": self.beta, "arrivedNs": self.arrived_ns,
            "firstByteNs": self.first_byte_ns, "lastByteNs": self.last_byte_ns,
            "closedByPeerNs": self.closed_by_peer_ns, "requestName": self.request_name,
        }  # fmt: skip
        return seen | {"body": self.read_body()} if bodies else seen

    def read_body(self) -> Any:
        """Return the body; None for one that was dropped, or that was no JSON."""
        return None if self.raw_body is None else json.loads(self.raw_body)


class RequestRecords:
    def __init__(self) -> None:
        self._records: deque[RequestRecord] = deque(maxlen=MAX_RECORDS)

    def add_record(self, record: RequestRecord) -> RequestRecord:
        self._records.append(record)
        if len(self._records) > MAX_RECORDED_BODIES:
            self._records[-MAX_RECORDED_BODIES - 1].raw_body = None
        return record

    def find_records(self, key: str | None) -> list[RequestRecord]:
        return [record for record in self._records if key is None or key in (record.key, record.script)]

    def delete_records(self, key: str | None) -> None:
        kept = [] if key is None else [record for record in self._records if key not in (record.key, record.script)]
        self._records = deque(kept, maxlen=MAX_RECORDS)
