"""Define what can go wrong, where, and how often, as rules; and a plan that draws from them by the seed."""

import random
from collections import Counter
from dataclasses import dataclass, field

FREEZES_SECONDS = ((1.0, 30.0), (92.0, 150.0))
"""Short ones, and those that are longer than the workflow's heartbeat time-out."""
LATE_COPY_SECONDS = (1.0, 300.0)
STALE_INDEX_SECONDS = (0.1, 4.0)
"""Shorter than a rebuild of rollups waits for its index."""
DYNAMODB_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")


@dataclass(frozen=True)
class FaultRule:
    """One kind of fault at some points.

    Attributes:
        kind: What happens.
        points: The points at which it can happen: a call (`dynamodb.PutItem`), a group of them (`dynamodb`, `aws`,
            `write`), or a point in the program (`provider`, `point`, `invoke`, `stream`).
        weight: How often, compared with the other rules that fit the same point.
    """

    kind: str
    points: tuple[str, ...]
    weight: float = 1.0


RULES: tuple[FaultRule, ...] = (
    # at an AWS call
    FaultRule("kill before", ("aws",)),
    FaultRule("kill after", ("aws",)),
    FaultRule("freeze before", ("aws",)),
    FaultRule("freeze after", ("aws",)),
    FaultRule("request lost", ("aws",)),
    FaultRule("response lost", ("aws",)),
    FaultRule("response late", ("aws",)),
    FaultRule("throttle", ("aws",)),
    FaultRule("error though it ran", ("write",)),
    FaultRule("late copy", ("write",), 1.5),
    FaultRule("lands late", ("write", "stepfunctions"), 1.5),
    FaultRule("stale index", ("index",)),
    FaultRule("conflict", ("dynamodb.TransactWriteItems",), 1.5),
    # at a lock, a sleep, an event, a timer, a chunk of the provider
    FaultRule("kill", ("point",)),
    FaultRule("freeze", ("point",), 2.0),
    # at a provider request
    FaultRule("rate limit", ("provider",)),
    FaultRule("overloaded", ("provider",)),
    FaultRule("unreachable", ("provider",)),
    FaultRule("refused", ("provider",), 0.5),
    FaultRule("silence", ("provider",), 0.5),
    FaultRule("cut", ("provider",), 1.5),
    FaultRule("error after text", ("provider",)),
    FaultRule("cut at the end", ("provider",)),
    # where the platform invokes a function, and where it delivers the ledger's stream
    FaultRule("invocation throttled", ("invoke",)),
    FaultRule("invoked twice", ("invoke",), 2.0),
    FaultRule("invocation late", ("invoke",)),
    FaultRule("batch twice", ("stream",), 2.0),
    FaultRule("batch interrupted", ("stream",)),
    FaultRule("event lost", ("event",)),
)
TORN_BATCH = FaultRule("torn batch", ("batch",))
"""A batch of reads is no snapshot: its rows may be of different moments. Simulations choose this rule themselves."""
WEBHOOK_RULES = (
    FaultRule("delivered twice", ("queue",)),
    FaultRule("late copy", ("sqs",)),
    FaultRule("lands late", ("sqs",)),
)
"""What a queue does besides. Simulations with webhooks choose these rules themselves."""
POINT_RATES = {
    "sqs": 8.0,
    "aws": 1.0,
    "point": 0.1,
    "provider": 4.0,
    "invoke": 3.0,
    "stream": 3.0,
    "event": 5.0,
    "index": 5.0,
    "batch": 5.0,
    "queue": 5.0,
}
"""How likely a fault is at a point, in multiples of the plan's rate. Points inside the program are many."""


def groups_of(point: str) -> tuple[str, ...]:
    """Return the names by which rules may mean a point: a call has its service, and `aws`, and maybe `write`."""
    service, _, operation = point.partition(".")
    if not operation:
        return (point,)
    if service in POINT_RATES:
        return (point, service)
    is_write = operation in DYNAMODB_WRITES or operation == "PutObject"
    return (point, service, "aws", *(("write",) if is_write else ()))


@dataclass
class FaultPlan:
    """Draws at most `budget` faults. `rate` is how likely an AWS call is disturbed.

    With a `focus`, only processes of the function of that name are disturbed.
    """

    random: random.Random
    rate: float
    budget: int
    rules: tuple[FaultRule, ...] = RULES
    focus: str = ""
    is_active: bool = False
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (kind, point) was injected."""
    _fitting: dict[str, tuple[float, tuple[FaultRule, ...]]] = field(default_factory=dict)

    @property
    def injected(self) -> int:
        return self.counts.total()

    def draw(self, point: str, process: str) -> str | None:
        """Return the fault at this point of a process, or None."""
        if not self.is_active or self.rate == 0 or self.injected >= self.budget:
            return None
        if not process.startswith(self.focus):
            return None
        rate, rules = self._find_rules(point)
        if not rules or self.random.random() >= rate:
            return None
        (rule,) = self.random.choices(rules, [rule.weight for rule in rules])
        self.counts[rule.kind, point] += 1
        return rule.kind

    def _find_rules(self, point: str) -> tuple[float, tuple[FaultRule, ...]]:
        if point not in self._fitting:
            groups = groups_of(point)
            rules = tuple(rule for rule in self.rules if set(rule.points) & set(groups))
            multiple = next(POINT_RATES[name] for name in groups if name in POINT_RATES)
            self._fitting[point] = (self.rate * multiple, rules)
        return self._fitting[point]
