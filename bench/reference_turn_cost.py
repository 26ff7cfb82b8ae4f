"""Measure DynamoDB units and cost of the reference turn: four rounds, six browser tools, forty seconds of text.

It runs at real speed with the settings of template.yaml, and no request is left out. What only AWS knows is assumed in
`turn_cost.py`: the time of a function on Lambda, and of a workflow step.
"""

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from bench.aws_calls import AwsCalls, record_aws_calls, stored_item_sizes
from bench.dynamodb_units import CapacityMeter, item_bytes
from bench.harness import BenchHarness, RecordedTurn, ScriptStep
from bench.latency import wait_until_settled
from bench.report import ResultRow
from bench.transitions_and_state_size import count_transitions
from bench.turn_cost import (
    INVOCATION_LOG_BYTES,
    ROUND_OVERHEAD_SECONDS,
    FunctionMemory,
    TurnCounts,
    TurnShape,
    cost_per_1000_turns,
)
from local import template

SAMPLE_SENTENCE = "A round of streamed text, as a person would read it. "
CHARS_PER_SECOND = 240
"""About the speed of a large model."""
CHUNKS_PER_SECOND = 40
LEDGER_COUNTING_SECONDS = 2.5
"""Time until the ledger rows of the last round are counted."""
ITEM_OVERHEAD_BYTES = 100
"""Bytes that DynamoDB bills for every stored item besides its own."""
MAX_COST_USD = Decimal("0.90")
LOGGED_FUNCTIONS = ("round", "tool_result", "stream_turns")
SECTION_HTML = "<section><h2>Fresh every morning</h2><p>Bread, cake and coffee.</p></section>"
TOOL_CALLS_BY_ROUND: tuple[tuple[ScriptStep, ...], ...] = (
    ({"name": "read_document"}, {"name": "getNodeHtml", "input": {"nodeId": "hero"}}),
    (
        {"name": "insertHtml", "input": {"parentId": "main", "html": SECTION_HTML}},
        {"name": "applyCss", "input": {"css": ".fresh { padding: 2rem; color: #442211; }"}},
    ),
    (
        {"name": "replaceNodeHtml", "input": {"nodeId": "hero", "html": SECTION_HTML}},
        {"name": "deleteNode", "input": {"nodeId": "old"}},
    ),
    (),
)
"""The first two calls only read."""


def script_steps(shape: TurnShape) -> list[ScriptStep]:
    seconds = shape.text_seconds / shape.rounds
    text = (SAMPLE_SENTENCE * 100)[: int(CHARS_PER_SECOND * seconds)]
    step = {
        "firstMs": shape.first_byte_seconds * 1000,
        "chunkMs": 1000 / CHUNKS_PER_SECOND,
        "text": text,
        "chunks": int(CHUNKS_PER_SECOND * seconds),
    }
    return [step | {"toolCalls": list(calls)} for calls in TOOL_CALLS_BY_ROUND]


def measure_reference_turn(harness: BenchHarness, shape: TurnShape) -> list[ResultRow]:
    prompt = harness.script_model("reference", script_steps(shape))
    think_seconds = shape.phase_seconds * shape.tool_phases / shape.tools
    conversation_id = harness.create_conversation()
    log_bytes_before = _count_log_bytes(harness)
    with record_aws_calls(harness.cloud.endpoint) as calls:
        turn = harness.run_turn(prompt, conversation_id=conversation_id, think_seconds=think_seconds)
        wait_until_settled(LEDGER_COUNTING_SECONDS)
    log_bytes = _count_log_bytes(harness) - log_bytes_before
    units = _measure_units(harness, shape, calls)
    counts = _count_turn(harness, shape, turn, calls, units, log_bytes)
    component_costs = cost_per_1000_turns(counts, shape, FunctionMemory.from_template(template.load_template()))
    total = sum(component_costs.values(), Decimal(0))
    result = f"{counts.write_units:g} WRU, {counts.read_units:g} RRU"
    numbers = _numbers_by_kind(calls, units) | {
        "transitions": counts.transitions,
        "bytes": {"stored": counts.stored_bytes, "logged": counts.log_bytes, "sent": counts.sent_bytes},
    }
    rounded_costs = {name: round(float(cost), 4) for name, cost in component_costs.items()}
    is_met = total <= MAX_COST_USD
    rows = [
        ResultRow("units", "DynamoDB units of the reference turn", "", result, None, numbers),
        ResultRow(
            "cost", "cost of 1,000 reference turns", f"≤ ${MAX_COST_USD}", f"${total:.3f}", is_met, rounded_costs
        ),
    ]
    return rows if shape == TurnShape() else [without_target(row) for row in rows]


def without_target(row: ResultRow) -> ResultRow:
    """Return the row of a turn that is not the reference turn, which is compared with no target."""
    return replace(row, title=f"{row.title}, shortened", target="", is_met=None)


@dataclass(frozen=True)
class _MeasuredUnits:
    """DynamoDB units of a turn, by kind of call."""

    total: CapacityMeter
    appends: CapacityMeter
    looks: CapacityMeter
    audit: CapacityMeter
    assumed_looks: float
    """Read units of readers' looks during workflow steps that are shorter here than on AWS."""


def _measure_units(harness: BenchHarness, shape: TurnShape, calls: AwsCalls) -> _MeasuredUnits:
    sizes = stored_item_sizes(harness.cloud.get_client("dynamodb"))
    idle_seconds = shape.workflow_step_seconds + shape.rounds * ROUND_OVERHEAD_SECONDS
    return _MeasuredUnits(
        total=calls.meter_units(sizes),
        appends=calls.of_kind("append").meter_units(sizes),
        looks=calls.of_kind("poll", "watch").meter_units(sizes),
        audit=calls.of_kind("audit").meter_units(sizes),
        assumed_looks=idle_seconds * 1000 / harness.poll_ms,
    )


def _count_turn(
    harness: BenchHarness,
    shape: TurnShape,
    turn: RecordedTurn,
    calls: AwsCalls,
    units: _MeasuredUnits,
    log_bytes: int,
) -> TurnCounts:
    s3_calls = calls.count_by_name("s3")
    return TurnCounts(
        transitions=count_transitions(harness.turn_history(turn)),
        write_units=units.total.write_units,
        read_units=units.total.read_units + units.assumed_looks,
        s3_puts=s3_calls.get("s3:PUT", 0),
        s3_gets=s3_calls.get("s3:GET", 0),
        api_requests=1 + len(turn.answered_ns),
        sent_bytes=sum(len(json.dumps(event, separators=(",", ":"))) + 1 for _, event in turn.events),
        log_bytes=log_bytes + INVOCATION_LOG_BYTES * (1 + shape.rounds + shape.tools),
        stored_bytes=sum(item_bytes(item) + ITEM_OVERHEAD_BYTES for item in harness.stored_items(turn)),
        rollup_invocations=calls.of_kind("audit").count_by_name().get("dynamodb:TransactWriteItems", 0),
    )


def _numbers_by_kind(calls: AwsCalls, units: _MeasuredUnits) -> dict[str, Any]:
    return {
        "appends": {"requests": len(calls.of_kind("append").calls), "WRU": units.appends.write_units},
        "looks": {
            "requests": len(calls.of_kind("poll", "watch").calls),
            "RRU": units.looks.read_units,
            "assumedMore": round(units.assumed_looks),
        },
        "audit": {
            "requests": calls.of_kind("audit").count_by_name(),
            "WRU": units.audit.write_units,
            "RRU": units.audit.read_units,
        },
        "rest": {
            "requests": calls.of_kind("step").count_by_name(),
            "WRU": units.total.write_units - units.appends.write_units - units.audit.write_units,
        },
    }


def _count_log_bytes(harness: BenchHarness) -> int:
    lines = (line for function in LOGGED_FUNCTIONS for line in harness.cloud.read_log_lines(function))
    return sum(len(line.encode()) + 1 for line in lines)
