"""Compute the infrastructure cost of a turn from its counts. The model's price is not part of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bench import aws_prices

GIB = 1024**3
MIB_PER_GIB = 1024
MONTH_DAYS = 30
LIFETIME_DAYS = 37
"""A turn's log, row and pauses expire then. Messages and ledger rows stay, and are charged for the same time."""

TOOL_RESULT_SECONDS = 0.06
"""Assumed duration of one tool-result request on Lambda."""
ROLLUP_SECONDS = 0.1
"""Assumed duration of one invocation that counts ledger rows."""
ROUND_OVERHEAD_SECONDS = 0.3
"""Assumed time of the round function besides the provider's stream."""
WORKFLOW_STEP_SECONDS = 0.2
"""Assumed time of one step of the workflow."""
INVOCATION_LOG_BYTES = 1000
"""Size of the log lines that Lambda itself writes for one invocation."""


@dataclass(frozen=True)
class TurnShape:
    """The assumed amounts and times of a turn."""

    rounds: int = 4
    tools: int = 6
    tool_phases: int = 3
    """Rounds that the browser works for."""
    text_seconds: float = 40.0
    first_byte_seconds: float = 1.5
    phase_seconds: float = 4.0
    """Time of a browser for one of these rounds."""

    @property
    def round_seconds(self) -> float:
        """Time of the round function in all rounds together. It does not run while a browser works."""
        return self.text_seconds + self.rounds * (self.first_byte_seconds + ROUND_OVERHEAD_SECONDS)

    @property
    def workflow_step_seconds(self) -> float:
        return WORKFLOW_STEP_SECONDS * (self.rounds + 2 * self.tool_phases)

    @property
    def wall_seconds(self) -> float:
        return self.round_seconds + self.tool_phases * self.phase_seconds + self.workflow_step_seconds


@dataclass(frozen=True)
class TurnCounts:
    """The measured amounts of a turn."""

    transitions: int
    write_units: float
    read_units: float
    s3_puts: int
    s3_gets: int
    api_requests: int
    sent_bytes: int
    log_bytes: int
    stored_bytes: int
    rollup_invocations: int = 0


@dataclass(frozen=True)
class FunctionMemory:
    """Memory in MB of the functions that a turn uses, as in template.yaml."""

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
            round=megabytes("RoundFunction"),
            stream=megabytes("StreamFunction"),
            tool_result=megabytes("ToolResultFunction"),
            rollup=megabytes("RollupFunction"),
        )


def cost_per_1000_turns(counts: TurnCounts, shape: TurnShape, memory: FunctionMemory) -> dict[str, Decimal]:
    """Return USD per 1,000 turns by component."""
    rollup_seconds = counts.rollup_invocations * ROLLUP_SECONDS
    component_costs = {
        "Step Functions": counts.transitions * aws_prices.STEP_FUNCTIONS_TRANSITION,
        "Lambda round": _lambda_cost(memory.round, shape.round_seconds, shape.rounds),
        "Lambda stream": _lambda_cost(memory.stream, shape.wall_seconds, 1),
        "Lambda tool_result": _lambda_cost(memory.tool_result, shape.tools * TOOL_RESULT_SECONDS, shape.tools),
        "Lambda rollup": _lambda_cost(memory.rollup, rollup_seconds, counts.rollup_invocations),
        "DynamoDB writes": Decimal(counts.write_units) * aws_prices.DYNAMODB_WRITE_UNIT,
        "DynamoDB reads": Decimal(counts.read_units) * aws_prices.DYNAMODB_READ_UNIT,
        "DynamoDB storage": _gibibytes(counts.stored_bytes) * aws_prices.DYNAMODB_GB_MONTH * LIFETIME_DAYS / MONTH_DAYS,
        "S3": counts.s3_puts * aws_prices.S3_PUT + counts.s3_gets * aws_prices.S3_GET,
        "API Gateway": counts.api_requests * aws_prices.REST_API_REQUEST,
        "egress": _gibibytes(counts.sent_bytes) * aws_prices.EGRESS_GB,
        "logs": _gibibytes(counts.log_bytes) * aws_prices.LOG_GB,
        "traces": counts.api_requests * aws_prices.XRAY_TRACE * aws_prices.XRAY_SAMPLED_SHARE,
    }
    return {name: cost * 1000 for name, cost in component_costs.items()}


def _lambda_cost(megabytes: int, seconds: float, invocations: int) -> Decimal:
    return (
        Decimal(megabytes) / MIB_PER_GIB * Decimal(str(seconds)) * aws_prices.LAMBDA_GB_SECOND
        + invocations * aws_prices.LAMBDA_INVOCATION
    )


def _gibibytes(size: int) -> Decimal:
    return Decimal(size) / GIB
