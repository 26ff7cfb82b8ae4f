"""Plan from a seed which calls of a tenant are disturbed, and how.

A fault is planned for the n-th call of an operation, so that a seed repeats it however fast the machine is. The numbers
of reads depend on how often readers look, so most faults are planned at writes.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

READ_CALLS = ("dynamodb.GetItem", "dynamodb.BatchGetItem", "dynamodb.Query", "s3.GetObject", "kms.Decrypt")
WRITE_CALLS = ("dynamodb.TransactWriteItems", "dynamodb.PutItem", "dynamodb.UpdateItem", "s3.PutObject")
WORKFLOW_CALLS = ("stepfunctions.StartExecution", "stepfunctions.SendTaskSuccess", "stepfunctions.SendTaskHeartbeat")
MAX_NUMBERS = {
    "dynamodb.TransactWriteItems": 24,
    "dynamodb.PutItem": 30,
    "dynamodb.UpdateItem": 4,
    "s3.PutObject": 6,
    "stepfunctions.StartExecution": 4,
    "stepfunctions.SendTaskSuccess": 10,
    "dynamodb.GetItem": 40,
    "dynamodb.Query": 60,
}
"""About how many calls of an operation the turns of a tenant make. A fault planned behind the last one never occurs."""
DEFAULT_MAX_NUMBER = 4

CALL_FAULTS = (
    "throttle",
    "error before it ran",
    "error though it ran",
    "request lost",
    "response lost",
    "delay",
    "late response",
)
WRITE_FAULTS = ("late copy", "late request")
TRANSACTION_FAULTS = ("conflict",)
PROCESS_FAULTS = ("kill before", "kill after", "freeze before", "freeze after")
EXECUTION_FAULTS = ("execution stopped",)
CLOUD_FAULTS = ("emulator killed",)
ALL_FAULTS = CALL_FAULTS + WRITE_FAULTS + TRANSACTION_FAULTS + PROCESS_FAULTS + EXECUTION_FAULTS + CLOUD_FAULTS
SECONDS = {
    "delay": (0.2, 4.0),
    "late response": (11.0, 13.0),
    "late copy": (0.5, 15.0),
    "late request": (0.5, 15.0),
    "freeze before": (1.0, 12.0),
    "freeze after": (1.0, 12.0),
}
"""How long a fault lasts. SDK clients give a response up after 10 s."""
OUTAGE_RATE = 0.25
STOP_RATE = 0.1
MAX_FAULTS_OF_A_CALL = 3


@dataclass(frozen=True)
class PlannedFault:
    kind: str
    call: str
    number: int
    """It disturbs the call of that number, counted from 1."""
    seconds: float = 0.0
    repetitions: int = 1
    """How many calls in a row are disturbed. Four use up the attempts of the SDK."""


@dataclass
class FaultPlan:
    """The faults of one tenant, and how many of them occurred."""

    planned: list[PlannedFault]
    is_active: bool = False
    occurred: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (kind, call) was injected."""
    _calls: Counter[str] = field(default_factory=Counter)

    def take_fault(self, call: str) -> PlannedFault | None:
        """Count a call, and return the fault that is planned for it."""
        if not self.is_active:
            return None
        self._calls[call] += 1
        number = self._calls[call]
        for fault in self.planned:
            if fault.call == call and fault.number <= number < fault.number + fault.repetitions:
                self.occurred[fault.kind, call] += 1
                return fault
        return None


def plan_faults(seed: int, tenant_number: int, count: int) -> FaultPlan:
    """Plan `count` faults for one tenant of a seed. Some seeds have an outage of everything, too."""
    draw = random.Random(f"{seed}/{tenant_number}")
    planned = [draw_fault(draw) for _ in range(count)]
    if draw.random() < STOP_RATE:
        planned.append(PlannedFault("execution stopped", "dynamodb.PutItem", draw.randint(1, 20)))
    if tenant_number == 0 and draw.random() < OUTAGE_RATE:
        planned.append(PlannedFault("emulator killed", "dynamodb.TransactWriteItems", draw.randint(1, 12)))
    return FaultPlan(planned)


def draw_fault(draw: random.Random) -> PlannedFault:
    calls = draw.choices((WRITE_CALLS, WORKFLOW_CALLS, READ_CALLS), weights=(6, 2, 2))[0]
    call = draw.choice(calls)
    kinds = list(CALL_FAULTS + PROCESS_FAULTS)
    if call in WRITE_CALLS + WORKFLOW_CALLS:
        kinds += 2 * WRITE_FAULTS
    if call == "dynamodb.TransactWriteItems":
        kinds += 2 * TRANSACTION_FAULTS
    kind = draw.choice(kinds)
    seconds = draw.uniform(*SECONDS[kind]) if kind in SECONDS else 0.0
    is_repeatable = kind in ("throttle", "error before it ran", "error though it ran", "response lost")
    repetitions = draw.choice((1, 1, 2, 4)) if is_repeatable else 1
    return PlannedFault(kind, call, draw.randint(1, MAX_NUMBERS.get(call, DEFAULT_MAX_NUMBER)), seconds, repetitions)
