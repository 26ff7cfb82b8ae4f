"""Measure the time that the service adds to the model's.

Each measurement also makes the same requests directly, without the service, where the model's time is part of it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.harness import BenchHarness, ScriptStep
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.aws.dynamodb_items_and_writes import Put

SERVER_TOOL_STEP: ScriptStep = {"toolCalls": [{"name": "list_documents"}]}
"""A call of a tool that the service runs."""
INSERT_CALL = {"name": "insertHtml", "input": {"parentId": "main", "html": "<p>Fresh every morning.</p>"}}
BROWSER_TOOL_STEP: ScriptStep = {"text": "Let me see.", "toolCalls": [INSERT_CALL]}
"""A call of a browser tool that changes the page."""
SAMPLE_TEXT = "The quick brown fox jumps over the lazy dog. " * 4
STREAMING_STEP: ScriptStep = {"firstMs": 20.0, "chunkMs": 10.0, "chunks": 12, "text": SAMPLE_TEXT}
FINAL_STEP: ScriptStep = {"text": "Done."}

WARM_UP_REQUESTS = 3
WARM_UP_TURNS = 2
MAX_SERVER_ROUND_MS = 12
MAX_LATE_ROUND_RATIO = 1.1


@dataclass(frozen=True)
class LatencyConditions:
    """The clocks and call latencies of the cloud that is measured, and the targets under them."""

    key_suffix: str
    title_suffix: str
    max_first_text_ms: float | None = None
    max_browser_round_ms: float | None = None
    max_five_rounds_ms: float | None = None


LOCAL_CONDITIONS = LatencyConditions("", "", max_first_text_ms=24, max_browser_round_ms=20, max_five_rounds_ms=60)
TEMPLATE_CONDITIONS = LatencyConditions(
    ".template", ", clocks of template.yaml", max_first_text_ms=60, max_browser_round_ms=60
)
AWS_CONDITIONS = LatencyConditions(".aws", ", AWS simulated")
AWS_TEMPLATE_CONDITIONS = LatencyConditions(".aws.template", ", AWS simulated, clocks of template.yaml")


def measure_latencies(harness: BenchHarness, conditions: LatencyConditions, repetitions: int) -> Iterator[ResultRow]:
    """Time what a person waits for: the first text, a browser round, and five streaming rounds."""
    yield measure_first_text(harness, conditions, repetitions)
    yield measure_browser_round(harness, conditions, max(1, repetitions // 3))
    yield measure_five_rounds(harness, conditions, max(1, repetitions // 4))


def measure_single_write(harness: BenchHarness, repetitions: int) -> ResultRow:
    """Time one write to DynamoDB on this machine. A server round takes two, a browser round six."""
    resources = harness.cloud.resources()
    write_ms: list[float] = []
    for number in range(repetitions + WARM_UP_REQUESTS):
        item = {"pk": "bench", "sk": f"{number:06d}", "text": SAMPLE_TEXT}
        put = Put(resources.settings.bridges_table, item, if_absent=True)
        started_ns = time.monotonic_ns()
        resources.tables.write_items(put)
        write_ms.append((time.monotonic_ns() - started_ns) / NS_PER_MS)
    samples = LatencySamples.from_samples(write_ms[WARM_UP_REQUESTS:])
    result = f"{samples.p50:.1f} p50, {samples.p95:.1f} p95 ms"
    return ResultRow("scale", "one write to the local DynamoDB, for scale", "", result, None, samples.to_json())


def measure_first_text(harness: BenchHarness, conditions: LatencyConditions, repetitions: int) -> ResultRow:
    """Time from the request to the first text at the client, less that of a direct call."""
    key = "first-text"
    prompt = harness.script_model(key, [{"text": "Hello.", "firstMs": 50.0}])
    harness.forget_model_requests(key)
    turns = []
    for _ in range(repetitions + WARM_UP_REQUESTS):
        conversation_id = harness.create_conversation()
        turns.append(harness.run_turn(prompt, conversation_id=conversation_id))
    turn_ms = [(turn.event_times_ns("text")[0] - turn.started_ns) / NS_PER_MS for turn in turns[WARM_UP_REQUESTS:]]
    body = harness.model_requests(key, bodies=True)[-1]["body"]
    direct_ms = [harness.call_model_directly(body)[0] for _ in range(repetitions + WARM_UP_REQUESTS)]
    direct = LatencySamples.from_samples(direct_ms[WARM_UP_REQUESTS:])
    added = LatencySamples.from_samples(ms - direct.p50 for ms in turn_ms)
    title = "request to first text, added to a straight call" + conditions.title_suffix
    row_key = "first_text" + conditions.key_suffix
    return _latency_row(row_key, title, conditions.max_first_text_ms, added, {"straight": direct.to_json()})


def measure_server_round(harness: BenchHarness, repetitions: int, late_round: int) -> list[ResultRow]:
    """Time from the last byte of one model answer to the next model request, for a tool that the service runs.

    Args:
        late_round: the first of as many later rounds to measure as well; 0 for none.
    """
    key = "server-rounds"
    prompt = harness.script_model(key, [SERVER_TOOL_STEP, SERVER_TOOL_STEP, FINAL_STEP])
    first_ms: list[float] = []
    for number in range(repetitions + WARM_UP_REQUESTS):
        harness.forget_model_requests(key)
        harness.run_turn(prompt)
        if number >= WARM_UP_REQUESTS:
            first_ms.append(_round_gaps_ms(harness, key)[0])
    title = "server-tool round, end of answer to next request, round 1"
    samples = LatencySamples.from_samples(first_ms)
    rows = [_latency_row("server_round", title, MAX_SERVER_ROUND_MS, samples)]
    if late_round:
        harness.forget_model_requests(key)
        last_round = late_round + repetitions - 1
        harness.run_turn(harness.script_model(key, [SERVER_TOOL_STEP] * (last_round + 1) + [FINAL_STEP]))
        late_ms = _round_gaps_ms(harness, key)[late_round - 1 : last_round]
        rows.append(_compare_late_rounds(samples, LatencySamples.from_samples(late_ms), late_round, last_round))
    return rows


def _compare_late_rounds(first: LatencySamples, late: LatencySamples, late_round: int, last_round: int) -> ResultRow:
    ratio = late.p50 / first.p50
    return ResultRow(
        "server_round.far",
        f"the same, rounds {late_round} to {last_round}, to round 1",
        f"≤ {MAX_LATE_ROUND_RATIO:g} × p50",
        f"{ratio:.2f} × ({late.p50:.1f} p50, {late.p95:.1f} p95 ms)",
        ratio <= MAX_LATE_ROUND_RATIO,
        late.to_json() | {"ratio": round(ratio, 2)},
    )


def measure_browser_round(harness: BenchHarness, conditions: LatencyConditions, repetitions: int) -> ResultRow:
    """Time both halves of a browser round: last byte to toolRequest, and posted result to the next model request."""
    key = "browser-rounds"
    prompt = harness.script_model(key, [BROWSER_TOOL_STEP] * 3 + [FINAL_STEP])
    to_request_ms: list[float] = []
    to_next_ms: list[float] = []
    for number in range(repetitions + WARM_UP_TURNS):
        harness.forget_model_requests(key)
        turn = harness.run_turn(prompt)
        if number < WARM_UP_TURNS:
            continue
        model_requests = harness.model_requests(key)
        for index, requested_ns in enumerate(turn.event_times_ns("toolRequest")):
            to_request_ms.append((requested_ns - model_requests[index]["lastByteNs"]) / NS_PER_MS)
        for index, answered_ns in enumerate(turn.answered_ns):
            to_next_ms.append((model_requests[index + 1]["arrivedNs"] - answered_ns) / NS_PER_MS)
    round_ms = [first + second for first, second in zip(to_request_ms, to_next_ms, strict=True)]
    halves = {
        "toRequest": LatencySamples.from_samples(to_request_ms).to_json(),
        "answerToNext": LatencySamples.from_samples(to_next_ms).to_json(),
    }
    title = "browser round, answer to toolRequest + result to next request" + conditions.title_suffix
    samples = LatencySamples.from_samples(round_ms)
    return _latency_row(
        "browser_round" + conditions.key_suffix, title, conditions.max_browser_round_ms, samples, halves
    )


def measure_five_rounds(harness: BenchHarness, conditions: LatencyConditions, repetitions: int) -> ResultRow:
    """Time a turn of five streaming rounds, less that of the same five requests made directly."""
    key = "five-rounds"
    prompt = harness.script_model(key, [STREAMING_STEP | SERVER_TOOL_STEP] * 4 + [STREAMING_STEP])
    turns = []
    for _ in range(repetitions + WARM_UP_TURNS):
        conversation_id = harness.create_conversation()
        harness.forget_model_requests(key)
        turns.append(harness.run_turn(prompt, conversation_id=conversation_id))
    bodies = [request["body"] for request in harness.model_requests(key, bodies=True)]
    direct_ms = [
        sum(harness.call_model_directly(body)[1] for body in bodies) for _ in range(repetitions + WARM_UP_TURNS)
    ]
    direct = LatencySamples.from_samples(direct_ms[WARM_UP_TURNS:])
    added = LatencySamples.from_samples(turn.seconds * 1000 - direct.p50 for turn in turns[WARM_UP_TURNS:])
    title = "five streaming rounds, added in total" + conditions.title_suffix
    row_key = "five_rounds" + conditions.key_suffix
    return _latency_row(row_key, title, conditions.max_five_rounds_ms, added, {"straight": direct.to_json()})


def _round_gaps_ms(harness: BenchHarness, key: str) -> list[float]:
    """Return the times from the last byte of each model answer to the next request."""
    requests = harness.model_requests(key)
    return [(after["arrivedNs"] - before["lastByteNs"]) / NS_PER_MS for before, after in pairwise(requests)]


def _latency_row(
    key: str, title: str, max_ms: float | None, samples: LatencySamples, further_numbers: dict[str, Any] | None = None
) -> ResultRow:
    result = f"{samples.p50:.1f} p50, {samples.p95:.1f} p95 ms"
    numbers = {**samples.to_json(), **(further_numbers or {})}
    if max_ms is None:
        return ResultRow(key, title, "", result, None, numbers)
    return ResultRow(key, title, f"≤ {max_ms:g} ms p50", result, samples.p50 <= max_ms, numbers)


def wait_until_settled(seconds: float = 0.3) -> None:
    """Wait for the last steps of a finished turn's workflow execution."""
    time.sleep(seconds)
