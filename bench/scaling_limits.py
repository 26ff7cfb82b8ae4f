"""Compute what AWS limits first as turns become more.

The amounts of a turn are those of the last `make bench`. Quotas are in `aws_quotas.py`, prices in `aws_prices.py`.
"""

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench import aws_prices
from bench.aws_quotas import NEW_ACCOUNT_CONCURRENCY, QUOTAS, Quota
from bench.report import DEFAULT_OUTPUT
from bench.turn_cost import MIB_PER_GIB, ROLLUP_SECONDS, TOOL_RESULT_SECONDS, FunctionMemory, TurnShape

LEVELS = (10, 100, 1000, 10_000, 1_000_000)
CELL_TURNS = 20_000
"""Concurrent turns of a full cell."""
ROLLUP_INVOCATIONS = 4
"""One for each round of the reference turn at most."""
OPEN_MARK_WRITES = 2
"""A turn enters the index of open turns, and leaves it."""
SECONDS_PER_HOUR = 3600
INSTANCES = 3
"""Instances of a capacity provider, one in each of three zones. Assumed."""
PROCESSORS_PER_INSTANCE = 4
"""Of the instance type with the price M7G_XLARGE_HOUR. A process of the stream function has one."""
STREAMS_PER_ENVIRONMENT = 64
"""Requests that Lambda gives to one process at most: the default of `StreamsPerEnvironment`."""
READERS_PER_INSTANCE = 150
"""Streams that one instance of four processors serves at once. Assumed: a call through botocore takes about 0.75 ms of
a processor (docs/numbers.md), ten times a second, so that these take more than one of the four, in two processes."""


@dataclass(frozen=True)
class TurnRates:
    """What one reference turn takes of each quota: in use at once, or in all while it lasts."""

    seconds: float
    cost_per_1000: Decimal
    concurrency: float
    starts: float
    transitions: float
    answers: float
    heartbeats: float
    read_units: float
    write_units: float
    api_requests: float
    uploads: float
    executions: float = 1
    open_marks: float = OPEN_MARK_WRITES

    def compute_demand(self, quota: Quota, turn_count: float) -> float:
        """Return how much of a quota so many concurrent turns use."""
        amount = float(getattr(self, quota.key)) * turn_count
        return amount / self.seconds if quota.is_rate else amount

    def compute_limit(self, quota: Quota, value: float) -> int:
        """Return how many concurrent turns a quota of this value allows."""
        return int(value / self.compute_demand(quota, 1))

    def compute_cost_per_hour(self, turn_count: int) -> Decimal:
        return turn_count * self.cost_per_1000 / 1000 * SECONDS_PER_HOUR / Decimal(str(self.seconds))


def read_turn_rates(results: Path = DEFAULT_OUTPUT, shape: TurnShape | None = None) -> TurnRates:
    """Read the amounts of the reference turn from the results of `make bench`."""
    turn = shape or TurnShape()
    rows = {row["key"]: row for row in json.loads(results.read_text())["rows"]}
    units, requests = rows["units"]["numbers"], rows["units"]["numbers"]["rest"]["requests"]
    return TurnRates(
        seconds=turn.wall_seconds,
        cost_per_1000=sum((Decimal(str(cost)) for cost in rows["cost"]["numbers"].values()), Decimal(0)),
        concurrency=_compute_concurrency(turn),
        starts=requests["states:StartExecution"],
        transitions=units["transitions"],
        answers=requests["states:SendTaskSuccess"],
        heartbeats=requests["states:SendTaskHeartbeat"],
        read_units=_read_units(rows["units"], "RRU"),
        write_units=_read_units(rows["units"], "WRU"),
        api_requests=1 + turn.tools,
        uploads=requests["s3:PUT"],
    )


def _compute_concurrency(turn: TurnShape) -> float:
    """Return how many functions run for a turn on average: its stream always, the others for a part of the time."""
    short_seconds = turn.tools * TOOL_RESULT_SECONDS + ROLLUP_INVOCATIONS * ROLLUP_SECONDS
    return 1 + (turn.round_seconds + short_seconds) / turn.wall_seconds


def _read_units(row: dict[str, Any], unit: str) -> float:
    """Read a sum from a result such as `281 WRU, 421.5 RRU`."""
    match = re.search(rf"([\d.]+) {unit}", row["result"])
    if match is None:
        raise ValueError(f"The results of the bench have no {unit} of the reference turn: {row['result']!r}")
    return float(match[1])


@dataclass(frozen=True)
class ReaderPrices:
    """USD an hour for open streams: as functions, and on instances that readers share."""

    function: Decimal
    instances: Decimal

    @property
    def break_even(self) -> int:
        """Open streams on average from which instances cost less."""
        return math.ceil(self.instances / self.function)

    @property
    def share(self) -> Decimal:
        """The price of a stream on well-used instances, to that of a function."""
        return self.instances / (INSTANCES * READERS_PER_INSTANCE) / self.function


def compute_reader_prices(memory: FunctionMemory) -> ReaderPrices:
    gigabytes = Decimal(memory.stream) / MIB_PER_GIB
    return ReaderPrices(
        function=gigabytes * SECONDS_PER_HOUR * aws_prices.LAMBDA_GB_SECOND,
        instances=INSTANCES * aws_prices.M7G_XLARGE_HOUR * (1 + aws_prices.MANAGED_INSTANCE_FEE),
    )


def list_exceeded(rates: TurnRates, turn_count: float) -> list[tuple[Quota, float]]:
    """List the quotas that so many turns exceed, with how many times, the first to break first."""
    factors = [(quota, rates.compute_demand(quota, turn_count) / quota.value) for quota in QUOTAS]
    return sorted(((quota, factor) for quota, factor in factors if factor > 1), key=lambda pair: -pair[1])


def find_new_account_limit(rates: TurnRates) -> int:
    return int(NEW_ACCOUNT_CONCURRENCY / rates.concurrency)
