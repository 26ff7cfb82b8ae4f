"""The reference turn: four rounds, six browser tools, forty seconds of text, at the settings that are shipped.

It runs at real speed and is counted whole. What the local cloud cannot know is assumed, as `cost.py` says: how long a
function takes on Lambda, and a step of the workflow.
"""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

from bench.aws_calls import AwsCalls, record_aws_calls, stored_item_sizes
from bench.dynamodb_units import item_bytes
from bench.execution_history import count_transitions
from bench.harness import BenchHarness, RecordedTurn, ScriptStep
from bench.latency import wait_until_settled
from bench.report import ResultRow
from bench.turn_cost import (
    LOG_FRAME_BYTES,
    ROUND_OVERHEAD_SECONDS,
    FunctionMemory,
    TurnCounts,
    TurnShape,
    cost_per_1000_turns,
)
from local import template

SAMPLE_SENTENCE = "A round of streamed text, as a person would read it. "
CHARS_PER_SECOND, PIECES_PER_SECOND = 240, 40
"""About as fast as a large model writes."""
LEDGER_COUNTING_SECONDS = 2.5
"""Until the ledger rows of the last round are counted, too."""
ITEM_OVERHEAD_BYTES = 100
"""Bytes that are billed for every stored item besides its own."""
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
"""By round; the first two only read."""


def script_steps(shape: TurnShape) -> list[ScriptStep]:
    seconds = shape.text_seconds / shape.rounds
    text = (SAMPLE_SENTENCE * 100)[: int(CHARS_PER_SECOND * seconds)]
    pace = {"firstMs": shape.first_byte_seconds * 1000, "chunkMs": 1000 / PIECES_PER_SECOND}
    spoken = pace | {"text": text, "chunks": int(PIECES_PER_SECOND * seconds)}
    return [spoken | {"toolCalls": list(calls)} for calls in TOOL_CALLS_BY_ROUND]


def measure_reference_turn(stage: BenchHarness, shape: TurnShape) -> list[ResultRow]:
    prompt, think = (
        stage.script_model("reference", script_steps(shape)),
        shape.phase_seconds * shape.tool_phases / shape.tools,
    )
    before, conversation = _log_bytes(stage), stage.create_conversation()
    with record_aws_calls(stage.cloud.endpoint) as requests:
        told = stage.run_turn(prompt, conversation=conversation, think_seconds=think)
        wait_until_settled(LEDGER_COUNTING_SECONDS)
    counted, numbers = _counted(stage, shape, told, requests, _log_bytes(stage) - before)
    parts = cost_per_1000_turns(counted, shape, FunctionMemory.from_template(template.load_template()))
    total = sum(parts.values(), Decimal(0))
    units = f"{counted.write_units:g} WRU, {counted.read_units:g} RRU"
    shown = {name: round(float(part), 4) for name, part in parts.items()}
    rows = [
        ResultRow("units", "DynamoDB units of the reference turn", "", units, None, numbers),
        ResultRow("cost", "cost of 1,000 reference turns", "≤ $1.00", f"${total:.3f}", total <= 1, shown),
    ]
    return rows if shape == TurnShape() else [without_target(row) for row in rows]


def without_target(row: ResultRow) -> ResultRow:
    """Counted from a turn that is not the reference turn, so nothing is compared."""
    return replace(row, title=f"{row.title}, shortened", target="", is_met=None)


def _counted(
    stage: BenchHarness, shape: TurnShape, told: RecordedTurn, requests: AwsCalls, log_bytes: int
) -> tuple[TurnCounts, dict[str, Any]]:
    sizes = stored_item_sizes(stage.cloud.get_client("dynamodb"))
    whole = requests.meter_units(sizes)
    appends, looks = requests.of_kind("append").meter_units(sizes), requests.of_kind("poll", "watch").meter_units(sizes)
    audit = requests.of_kind("audit").meter_units(sizes)
    idle = (shape.hop_seconds + shape.rounds * ROUND_OVERHEAD_SECONDS) * 1000 / stage.poll_ms
    counted = TurnCounts(
        transitions=count_transitions(stage.turn_history(told)),
        write_units=whole.write_units,
        read_units=whole.read_units + idle,
        s3_puts=requests.count_by_name("s3").get("s3:PUT", 0),
        s3_gets=requests.count_by_name("s3").get("s3:GET", 0),
        api_requests=1 + len(told.answered_ns),
        sent_bytes=sum(len(json.dumps(event, separators=(",", ":"))) + 1 for _, event in told.events),
        log_bytes=log_bytes + LOG_FRAME_BYTES * (1 + shape.rounds + shape.tools),
        stored_bytes=_stored_bytes(stage, told),
        audit_calls=_transactions(requests.of_kind("audit")),
    )
    numbers = {
        "appends": {"requests": len(requests.of_kind("append").calls), "WRU": appends.write_units},
        "looks": {
            "requests": len(requests.of_kind("poll", "watch").calls),
            "RRU": looks.read_units,
            "assumedMore": round(idle),
        },
        "audit": {
            "requests": requests.of_kind("audit").count_by_name(),
            "WRU": audit.write_units,
            "RRU": audit.read_units,
        },
        "rest": {
            "requests": requests.of_kind("step").count_by_name(),
            "WRU": whole.write_units - appends.write_units - audit.write_units,
        },
        "transitions": counted.transitions,
        "bytes": {"stored": counted.stored_bytes, "logged": counted.log_bytes, "sent": counted.sent_bytes},
    }
    return counted, numbers


def _transactions(requests: AwsCalls) -> int:
    return requests.count_by_name().get("dynamodb:TransactWriteItems", 0)


def _stored_bytes(stage: BenchHarness, told: RecordedTurn) -> int:
    """All that the turn left in the tables."""
    return sum(item_bytes(item) + ITEM_OVERHEAD_BYTES for item in stage.stored_items(told))


def _log_bytes(stage: BenchHarness) -> int:
    functions = ("round", "tool_result", "stream")
    return sum(len(line.encode()) + 1 for function in functions for line in stage.cloud.read_log_lines(function))
