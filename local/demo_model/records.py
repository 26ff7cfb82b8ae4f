"""What the server has seen: every request with the moments that a test or a measurement asks for."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

KEPT = 5000
BODIES_KEPT = 500
"""Long conversations are sent again with every request; only the newest bodies are worth their memory."""


@dataclass
class Record:
    """Moments are `time.monotonic_ns()`, which all processes of a machine share."""

    key: str
    script: str | None
    body: Any
    beta: str | None = None
    status: int = 0
    arrived_ns: int = field(default_factory=time.monotonic_ns)
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    closed_by_peer_ns: int | None = None

    def wire(self, *, bodies: bool) -> dict[str, Any]:
        seen = {
            "script": self.script, "status": self.status, "beta": self.beta, "arrivedNs": self.arrived_ns,
            "firstByteNs": self.first_byte_ns, "lastByteNs": self.last_byte_ns,
            "closedByPeerNs": self.closed_by_peer_ns,
        }  # fmt: skip
        return seen | {"body": self.body} if bodies else seen


class Records:
    def __init__(self) -> None:
        self._records: deque[Record] = deque(maxlen=KEPT)

    def add(self, record: Record) -> Record:
        self._records.append(record)
        if len(self._records) > BODIES_KEPT:
            self._records[-BODIES_KEPT - 1].body = None
        return record

    def of(self, key: str | None) -> list[Record]:
        return [record for record in self._records if key is None or key in (record.key, record.script)]

    def forget(self, key: str | None) -> None:
        kept = [] if key is None else [record for record in self._records if key not in (record.key, record.script)]
        self._records = deque(kept, maxlen=KEPT)
