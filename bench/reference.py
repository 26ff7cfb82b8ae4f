"""The reference turn: four rounds, six browser tools, forty seconds of text, at the settings that are shipped.

It runs at real speed and is counted whole. What the local cloud cannot know is assumed, as `cost.py` says: how long a
function takes on Lambda, and a step of the workflow.
"""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

from bench.cost import LOG_FRAME_BYTES, ROUND_OVERHEAD_SECONDS, Counted, Memory, Shape, cost
from bench.requests import Requests, recording, sizes_now
from bench.stage import Stage, Step, Told
from bench.table import Row
from bench.units import item_size
from bench.waits import settle
from bench.workflow import transitions
from local import template

SENTENCE = "A round of streamed text, as a person would read it. "
CHARS_PER_SECOND, PIECES_PER_SECOND = 240, 40
"""About as fast as a large model writes."""
AUDITED_SECONDS = 2.5
"""Until the ledger rows of the last round are counted, too."""
ITEM_OVERHEAD = 100
"""Bytes that are billed for every stored item besides its own."""
HTML = "<section><h2>Fresh every morning</h2><p>Bread, cake and coffee.</p></section>"
CALLS: tuple[tuple[Step, ...], ...] = (
    ({"name": "read_document"}, {"name": "getNodeHtml", "input": {"nodeId": "hero"}}),
    (
        {"name": "insertHtml", "input": {"parentId": "main", "html": HTML}},
        {"name": "applyCss", "input": {"css": ".fresh { padding: 2rem; color: #442211; }"}},
    ),
    (
        {"name": "replaceNodeHtml", "input": {"nodeId": "hero", "html": HTML}},
        {"name": "deleteNode", "input": {"nodeId": "old"}},
    ),
    (),
)
"""By round; the first two only read."""


def steps(shape: Shape) -> list[Step]:
    seconds = shape.text_seconds / shape.rounds
    text = (SENTENCE * 100)[: int(CHARS_PER_SECOND * seconds)]
    pace = {"firstMs": shape.first_byte_seconds * 1000, "chunkMs": 1000 / PIECES_PER_SECOND}
    spoken = pace | {"text": text, "chunks": int(PIECES_PER_SECOND * seconds)}
    return [spoken | {"toolCalls": list(calls)} for calls in CALLS]


def reference_turn(stage: Stage, shape: Shape) -> list[Row]:
    prompt, think = stage.script("reference", steps(shape)), shape.phase_seconds * shape.tool_phases / shape.tools
    before, conversation = _log_bytes(stage), stage.conversation()
    with recording(stage.cloud.endpoint) as requests:
        told = stage.turn(prompt, conversation=conversation, think_seconds=think)
        settle(AUDITED_SECONDS)
    counted, numbers = _counted(stage, shape, told, requests, _log_bytes(stage) - before)
    parts = cost(counted, shape, Memory.of(template.load()))
    total = sum(parts.values(), Decimal(0))
    units = f"{counted.write_units:g} WRU, {counted.read_units:g} RRU"
    shown = {name: round(float(part), 4) for name, part in parts.items()}
    rows = [
        Row("units", "DynamoDB units of the reference turn", "", units, None, numbers),
        Row("cost", "cost of 1,000 reference turns", "≤ $1.00", f"${total:.3f}", total <= 1, shown),
    ]
    return rows if shape == Shape() else [shortened(row) for row in rows]


def shortened(row: Row) -> Row:
    """Counted from a turn that is not the reference turn, so nothing is compared."""
    return replace(row, what=f"{row.what}, shortened", target="", met=None)


def _counted(
    stage: Stage, shape: Shape, told: Told, requests: Requests, log_bytes: int
) -> tuple[Counted, dict[str, Any]]:
    sizes = sizes_now(stage.cloud.client("dynamodb"))
    whole = requests.metered(sizes)
    appends, looks = requests.of("append").metered(sizes), requests.of("poll", "watch").metered(sizes)
    audit = requests.of("audit").metered(sizes)
    idle = (shape.hop_seconds + shape.rounds * ROUND_OVERHEAD_SECONDS) * 1000 / stage.poll_ms
    counted = Counted(
        transitions=transitions(stage.history(told)),
        write_units=whole.write,
        read_units=whole.read + idle,
        s3_puts=requests.by_name("s3").get("s3:PUT", 0),
        s3_gets=requests.by_name("s3").get("s3:GET", 0),
        api_requests=1 + len(told.answered_ns),
        sent_bytes=sum(len(json.dumps(event, separators=(",", ":"))) + 1 for _, event in told.events),
        log_bytes=log_bytes + LOG_FRAME_BYTES * (1 + shape.rounds + shape.tools),
        stored_bytes=_stored_bytes(stage, told),
        audit_calls=_transactions(requests.of("audit")),
    )
    numbers = {
        "appends": {"requests": len(requests.of("append").all), "WRU": appends.write},
        "looks": {"requests": len(requests.of("poll", "watch").all), "RRU": looks.read, "assumedMore": round(idle)},
        "audit": {"requests": requests.of("audit").by_name(), "WRU": audit.write, "RRU": audit.read},
        "rest": {"requests": requests.of("step").by_name(), "WRU": whole.write - appends.write - audit.write},
        "transitions": counted.transitions,
        "bytes": {"stored": counted.stored_bytes, "logged": counted.log_bytes, "sent": counted.sent_bytes},
    }
    return counted, numbers


def _transactions(requests: Requests) -> int:
    return requests.by_name().get("dynamodb:TransactWriteItems", 0)


def _stored_bytes(stage: Stage, told: Told) -> int:
    """All that the turn left in the tables."""
    return sum(item_size(item) + ITEM_OVERHEAD for item in stage.items_of(told))


def _log_bytes(stage: Stage) -> int:
    functions = ("round", "tool_result", "stream")
    return sum(len(line.encode()) + 1 for function in functions for line in stage.cloud.log_lines(function))
