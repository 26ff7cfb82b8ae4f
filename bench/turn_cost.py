"""The infrastructure cost of one turn, from what was counted. The model's own price is not part of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench import aws_prices

GIB = 1024**3
MIB_PER_GIB = 1024
MONTH_DAYS = 30
LIFETIME_DAYS = 37
"""A turn's log, row and pauses expire then; its messages and ledger rows stay, of which one such time is charged."""

ANSWER_SECONDS = 0.06
"""Assumed length of one tool-result call on Lambda."""
AUDIT_SECONDS = 0.1
"""Assumed length of one call that counts new ledger rows."""
ROUND_OVERHEAD_SECONDS = 0.3
"""Assumed time of a round's function besides the provider's stream."""
HOP_SECONDS = 0.2
"""Assumed time of one step of the workflow."""
LOG_FRAME_BYTES = 1000
"""What Lambda itself writes to the log about one invocation."""


@dataclass(frozen=True)
class TurnShape:
    """A turn as it is assumed: how much of what."""

    rounds: int = 4
    tools: int = 6
    tool_phases: int = 3
    text_seconds: float = 40.0
    first_byte_seconds: float = 1.5
    phase_seconds: float = 4.0

    @property
    def round_seconds(self) -> float:
        """How long the round's function runs in all rounds together; it does not run while a browser works."""
        return self.text_seconds + self.rounds * (self.first_byte_seconds + ROUND_OVERHEAD_SECONDS)

    @property
    def hop_seconds(self) -> float:
        return HOP_SECONDS * (self.rounds + 2 * self.tool_phases)

    @property
    def wall_seconds(self) -> float:
        return self.round_seconds + self.tool_phases * self.phase_seconds + self.hop_seconds


@dataclass(frozen=True)
class TurnCounts:
    """What one such turn came to."""

    transitions: int
    write_units: float
    read_units: float
    s3_puts: int
    s3_gets: int
    api_requests: int
    sent_bytes: int
    log_bytes: int
    stored_bytes: int
    audit_calls: int = 0


@dataclass(frozen=True)
class FunctionMemory:
    """MB of the functions that a turn keeps busy, as template.yaml has them."""

    round: int
    stream: int
    tool_result: int
    rollup: int

    @classmethod
    def from_template(cls, template: Mapping[str, Any]) -> "FunctionMemory":
        default = template["Globals"]["Function"]["MemorySize"]
        functions = template["Resources"]

        def megabytes(name: str) -> int:
            return int(functions[name]["Properties"].get("MemorySize", default))

        return cls(
            megabytes("RoundFunction"),
            megabytes("StreamFunction"),
            megabytes("ToolResultFunction"),
            megabytes("RollupFunction"),
        )


def cost_per_1000_turns(counted: TurnCounts, shape: TurnShape, memory: FunctionMemory) -> dict[str, Decimal]:
    """USD per 1,000 turns by component."""
    parts = {
        "Step Functions": counted.transitions * aws_prices.TRANSITION,
        "Lambda round": _lambda(memory.round, shape.round_seconds, shape.rounds),
        "Lambda stream": _lambda(memory.stream, shape.wall_seconds, 1),
        "Lambda tool_result": _lambda(memory.tool_result, shape.tools * ANSWER_SECONDS, shape.tools),
        "Lambda rollup": _lambda(memory.rollup, counted.audit_calls * AUDIT_SECONDS, counted.audit_calls),
        "DynamoDB writes": Decimal(counted.write_units) * aws_prices.WRITE_UNIT,
        "DynamoDB reads": Decimal(counted.read_units) * aws_prices.READ_UNIT,
        "DynamoDB storage": _gigabytes(counted.stored_bytes) * aws_prices.TABLE_GB_MONTH * LIFETIME_DAYS / MONTH_DAYS,
        "S3": counted.s3_puts * aws_prices.S3_PUT + counted.s3_gets * aws_prices.S3_GET,
        "API Gateway": counted.api_requests * aws_prices.REST_REQUEST,
        "egress": _gigabytes(counted.sent_bytes) * aws_prices.EGRESS_GB,
        "logs": _gigabytes(counted.log_bytes) * aws_prices.LOG_GB,
        "traces": counted.api_requests * aws_prices.TRACE * aws_prices.TRACED_SHARE,
    }
    return {name: part * 1000 for name, part in parts.items()}


def _lambda(megabytes: int, seconds: float, invocations: int) -> Decimal:
    return (
        Decimal(megabytes) / MIB_PER_GIB * Decimal(str(seconds)) * aws_prices.GB_SECOND
        + invocations * aws_prices.INVOCATION
    )


def _gigabytes(size: int) -> Decimal:
    return Decimal(size) / GIB
