"""Time that is ours, not the model's. Every row runs the same requests straight against the model as well."""

import time
from itertools import pairwise

from bench.harness import BenchHarness, ScriptStep
from bench.report import ResultRow
from bench.stats import NS_PER_MS, LatencySamples
from fermata.aws.dynamodb import Put

SERVER_TOOL_STEP = {"toolCalls": [{"name": "list_documents"}]}
"""One of our own tools."""
INSERT_CALL = {"name": "insertHtml", "input": {"parentId": "main", "html": "<p>Fresh every morning.</p>"}}
BROWSER_TOOL_STEP = {"text": "Let me see.", "toolCalls": [INSERT_CALL]}
"""One of the browser's tools, which changes the page."""
SAMPLE_TEXT = "The quick brown fox jumps over the lazy dog. " * 4
STREAMING_STEP = {"firstMs": 20.0, "chunkMs": 10.0, "chunks": 12, "text": SAMPLE_TEXT}
FINAL_STEP = {"text": "Done."}


def measure_single_write(stage: BenchHarness, times: int) -> ResultRow:
    """What a single request costs on this machine now: a server round takes two, a browser round six."""
    resources, waits = stage.cloud.resources(), []
    for number in range(times + 3):
        put = Put(
            resources.settings.bridges_table,
            {"pk": "bench", "sk": f"{number:06d}", "text": SAMPLE_TEXT},
            if_absent=True,
        )
        started = time.monotonic_ns()
        resources.tables.write_items(put)
        waits.append((time.monotonic_ns() - started) / NS_PER_MS)
    times_taken = LatencySamples.from_samples(waits[3:])
    result = f"{times_taken.p50:.1f} p50, {times_taken.p95:.1f} p95 ms"
    return ResultRow("scale", "one write to the local DynamoDB, for scale", "", result, None, times_taken.to_json())


def measure_first_text(stage: BenchHarness, times: int) -> ResultRow:
    """From the request to the first text at the client, less what a straight call takes."""
    prompt = stage.script_model("first-text", [{"text": "Hello.", "firstMs": 50.0}])
    stage.forget_model_requests("first-text")
    turns = []
    for _ in range(times + 3):
        conversation = stage.create_conversation()
        turns.append(stage.run_turn(prompt, conversation=conversation))
    ours = [(turn.event_times_ns("text")[0] - turn.started_ns) / NS_PER_MS for turn in turns[3:]]
    body = stage.model_requests("first-text", bodies=True)[-1]["body"]
    straight = LatencySamples.from_samples([stage.call_model_directly(body)[0] for _ in range(times + 3)][3:])
    added = LatencySamples.from_samples([wait - straight.p50 for wait in ours])
    return _row("first_text", "request to first text, added to a straight call", 40, added, straight=straight.to_json())


def measure_server_round(stage: BenchHarness, times: int, far: int) -> list[ResultRow]:
    """From the last byte of one model answer to the next request, when the tool is ours."""
    near, key = [], "server-rounds"
    prompt = stage.script_model(key, [SERVER_TOOL_STEP, SERVER_TOOL_STEP, FINAL_STEP])
    for turn in range(times + 3):
        stage.forget_model_requests(key)
        stage.run_turn(prompt)
        if turn >= 3:
            near += _gaps(stage, key)[:1]
    rows = [
        _row(
            "server_round",
            "server-tool round, end of answer to next request, round 1",
            12,
            LatencySamples.from_samples(near),
        )
    ]
    if far:
        stage.forget_model_requests(key)
        stage.run_turn(stage.script_model(key, [SERVER_TOOL_STEP] * (far + times) + [FINAL_STEP]))
        late = _gaps(stage, key)[far - 1 : far - 1 + times]
        rows.append(
            _row(
                "server_round.far",
                f"the same, rounds {far} to {far + times - 1}",
                12,
                LatencySamples.from_samples(late),
            )
        )
    return rows


def measure_browser_round(stage: BenchHarness, times: int) -> ResultRow:
    """Both halves of a browser's round: last byte to toolRequest, and answer to the next request."""
    key, asked, gone_on = "browser-rounds", [], []
    prompt = stage.script_model(key, [BROWSER_TOOL_STEP, BROWSER_TOOL_STEP, BROWSER_TOOL_STEP, FINAL_STEP])
    for turn in range(times + 2):
        stage.forget_model_requests(key)
        told = stage.run_turn(prompt)
        if turn < 2:
            continue
        seen = stage.model_requests(key)
        requests, answers = told.event_times_ns("toolRequest"), told.answered_ns
        asked += [(at - seen[index]["lastByteNs"]) / NS_PER_MS for index, at in enumerate(requests)]
        gone_on += [(seen[index + 1]["arrivedNs"] - at) / NS_PER_MS for index, at in enumerate(answers)]
    both = LatencySamples.from_samples([first + second for first, second in zip(asked, gone_on, strict=True)])
    halves = {
        "toRequest": LatencySamples.from_samples(asked).to_json(),
        "answerToNext": LatencySamples.from_samples(gone_on).to_json(),
    }
    return _row("browser_round", "browser round, answer to toolRequest + result to next request", 40, both, **halves)


def measure_five_rounds(stage: BenchHarness, times: int) -> ResultRow:
    """A turn of five streaming rounds, less the same five requests made straight."""
    key = "five-rounds"
    steps: list[ScriptStep] = [STREAMING_STEP | SERVER_TOOL_STEP] * 4 + [STREAMING_STEP]
    prompt = stage.script_model(key, steps)
    turns = []
    for _ in range(times + 2):
        conversation = stage.create_conversation()
        stage.forget_model_requests(key)
        turns.append(stage.run_turn(prompt, conversation=conversation))
    ours = [turn.seconds * 1000 for turn in turns[2:]]
    bodies = [seen["body"] for seen in stage.model_requests(key, bodies=True)]
    straight = LatencySamples.from_samples(
        [sum(stage.call_model_directly(body)[1] for body in bodies) for _ in range(times + 2)][2:]
    )
    added = LatencySamples.from_samples([whole - straight.p50 for whole in ours])
    return _row("five_rounds", "five streaming rounds, added in total", 150, added, straight=straight.to_json())


def _gaps(stage: BenchHarness, key: str) -> list[float]:
    seen = stage.model_requests(key)
    return [(after["arrivedNs"] - before["lastByteNs"]) / NS_PER_MS for before, after in pairwise(seen)]


def _row(key: str, what: str, target: float, times: LatencySamples, **more: object) -> ResultRow:
    result = f"{times.p50:.1f} p50, {times.p95:.1f} p95"
    return ResultRow(
        key, what, f"≤ {target:g} ms p50", f"{result} ms", times.p50 <= target, {**times.to_json(), **more}
    )


def wait_until_settled(seconds: float = 0.3) -> None:
    """Let what a finished turn left running (its execution's last step) come to its end."""
    time.sleep(seconds)
