"""Draw faults of AWS calls and processes from the seed: their kinds and rates, and counts of those that occurred."""

import random
from collections import Counter
from dataclasses import dataclass, field

CALL_FAULTS = (
    "kill before",
    "kill after",
    "freeze before",
    "freeze after",
    "request lost",
    "response lost",
    "late copy",
    "throttle",
    "conflict",
    "error though it ran",
)
"""Faults at an AWS call. `late copy`: the call is made, and a copy of it lands again up to minutes later."""
FREEZE_SECONDS = (1.0, 150.0)
LATE_COPY_SECONDS = (1.0, 300.0)
TRANSACTIONS = ("TransactWriteItems",)
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem", "PutObject")


@dataclass
class FaultPlan:
    """Draws at most `budget` faults, each call with the probability `rate`."""

    random: random.Random
    rate: float
    budget: int
    kinds: tuple[str, ...] = CALL_FAULTS
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (kind, call) was injected."""

    @property
    def injected(self) -> int:
        return sum(self.counts.values())

    def draw(self, call: str) -> str | None:
        """Return the fault of this call, or None."""
        if self.injected >= self.budget or self.random.random() >= self.rate:
            return None
        operation = call.partition(".")[2]
        kind = self.random.choice(self.kinds)
        if kind == "conflict" and operation not in TRANSACTIONS:
            return None
        if kind in ("late copy", "error though it ran") and operation not in WRITES:
            return None
        self.counts[kind, call] += 1
        return kind
