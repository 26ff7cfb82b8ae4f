"""Measure how long a chat client waits for all of a long answer, when it resumes the stream of a turn that waits."""

import time
import uuid

import httpx

from bench.harness import BenchHarness
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.domain.events import TextEvent
from fermata.turns.turn import find_turn
from fermata.turns.turn_log import TurnLog, fixed_events, read_last_entry
from local.seed import TENANT

EVENT_COUNT = 1000
"""Each in an entry of its own, which is the slowest to read."""
MAX_RESUME_MS = 100
LOCATE_TOOL = {"name": "locate", "description": "Finds out where the user is.", "parameters": {"type": "object"}}


def measure_resumed_stream(harness: BenchHarness, repetitions: int, event_count: int = EVENT_COUNT) -> ResultRow:
    """Time the whole response to a client of the AI SDK that resumes a turn of many events."""
    prompt = harness.script_model("resumed-stream", [{"toolCalls": [{"name": "locate", "input": {}}]}])
    chat = f"bench-{uuid.uuid4().hex}"
    headers = {"authorization": f"Bearer {harness.cloud.token}"}
    with httpx.Client(base_url=f"{harness.cloud.url}/api/agents", headers=headers, trust_env=False, timeout=60) as http:
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": prompt}]}
        body = {"id": chat, "trigger": "submit-message", "messages": [message], "tools": [LOCATE_TOOL]}
        started = http.post("/site", json=body).raise_for_status()
        _add_events(harness, started.headers["fermata-bridge"], event_count)
        times_ms: list[float] = []
        for _ in range(repetitions + 1):
            started_ns = time.monotonic_ns()
            response = http.get(f"/site/{chat}/stream").raise_for_status()
            times_ms.append((time.monotonic_ns() - started_ns) / NS_PER_MS)
        assert response.text.count('"text-delta"') == event_count
    samples = LatencySamples.from_samples(times_ms[1:])
    return ResultRow(
        "resumed_stream",
        f"stream of a turn of {event_count:,} events, resumed",
        f"≤ {MAX_RESUME_MS} ms p50",
        f"{samples.p50:.0f} p50, {samples.p95:.0f} p95 ms",
        samples.p50 <= MAX_RESUME_MS,
        samples.to_json(),
    )


def _add_events(harness: BenchHarness, bridge_id: str, event_count: int) -> None:
    resources = harness.cloud.resources()
    turn = find_turn(resources, TENANT, bridge_id)
    last_entry = read_last_entry(resources, turn.pk)
    assert last_entry is not None
    log = TurnLog.from_last_entry(resources, turn.partition, last_entry)
    for number in range(event_count):
        log.append(fixed_events(TextEvent(text=f"Sentence number {number} of a long answer. ")))
