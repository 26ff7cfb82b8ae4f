"""Time that is ours, not the model's. Every row runs the same requests straight against the model as well."""

import time
from itertools import pairwise

from bench.stage import Stage, Step
from bench.stats import NS, Times
from bench.table import Row
from fermata.aws.dynamo import Put

LOOK = {"toolCalls": [{"name": "list_documents"}]}
"""One of our own tools."""
INSERT = {"name": "insertHtml", "input": {"parentId": "main", "html": "<p>Fresh every morning.</p>"}}
ASK = {"text": "Let me see.", "toolCalls": [INSERT]}
"""One of the browser's tools, which changes the page."""
WORDS = "The quick brown fox jumps over the lazy dog. " * 4
STREAMING = {"firstMs": 20.0, "chunkMs": 10.0, "chunks": 12, "text": WORDS}
AT_ONCE = {"text": "Done."}


def one_write(stage: Stage, times: int) -> Row:
    """What a single request costs on this machine now: a server round takes two, a browser round six."""
    desk, waits = stage.cloud.desk(), []
    for number in range(times + 3):
        put = Put(desk.settings.bridges_table, {"pk": "bench", "sk": f"{number:06d}", "text": WORDS}, absent=True)
        started = time.monotonic_ns()
        desk.tables.write(put)
        waits.append((time.monotonic_ns() - started) / NS)
    times_taken = Times.of(waits[3:])
    result = f"{times_taken.p50:.1f} p50, {times_taken.p95:.1f} p95 ms"
    return Row("scale", "one write to the local DynamoDB, for scale", "", result, None, times_taken.wire())


def first_text(stage: Stage, times: int) -> Row:
    """From the request to the first text at the client, less what a straight call takes."""
    prompt = stage.script("first-text", [{"text": "Hello.", "firstMs": 50.0}])
    stage.forget("first-text")
    turns = []
    for _ in range(times + 3):
        conversation = stage.conversation()
        turns.append(stage.turn(prompt, conversation=conversation))
    ours = [(turn.moments("text")[0] - turn.asked_ns) / NS for turn in turns[3:]]
    body = stage.requests("first-text", bodies=True)[-1]["body"]
    straight = Times.of([stage.straight(body)[0] for _ in range(times + 3)][3:])
    added = Times.of([wait - straight.p50 for wait in ours])
    return _row("first_text", "request to first text, added to a straight call", 40, added, straight=straight.wire())


def server_round(stage: Stage, times: int, far: int) -> list[Row]:
    """From the last byte of one model answer to the next request, when the tool is ours."""
    near, key = [], "server-rounds"
    prompt = stage.script(key, [LOOK, LOOK, AT_ONCE])
    for turn in range(times + 3):
        stage.forget(key)
        stage.turn(prompt)
        if turn >= 3:
            near += _gaps(stage, key)[:1]
    rows = [_row("server_round", "server-tool round, end of answer to next request, round 1", 12, Times.of(near))]
    if far:
        stage.forget(key)
        stage.turn(stage.script(key, [LOOK] * (far + times) + [AT_ONCE]))
        late = _gaps(stage, key)[far - 1 : far - 1 + times]
        rows.append(_row("server_round.far", f"the same, rounds {far} to {far + times - 1}", 12, Times.of(late)))
    return rows


def browser_round(stage: Stage, times: int) -> Row:
    """Both halves of a browser's round: last byte to toolRequest, and answer to the next request."""
    key, asked, gone_on = "browser-rounds", [], []
    prompt = stage.script(key, [ASK, ASK, ASK, AT_ONCE])
    for turn in range(times + 2):
        stage.forget(key)
        told = stage.turn(prompt)
        if turn < 2:
            continue
        seen = stage.requests(key)
        requests, answers = told.moments("toolRequest"), told.answered_ns
        asked += [(at - seen[index]["lastByteNs"]) / NS for index, at in enumerate(requests)]
        gone_on += [(seen[index + 1]["arrivedNs"] - at) / NS for index, at in enumerate(answers)]
    both = Times.of([first + second for first, second in zip(asked, gone_on, strict=True)])
    halves = {"toRequest": Times.of(asked).wire(), "answerToNext": Times.of(gone_on).wire()}
    return _row("browser_round", "browser round, answer to toolRequest + result to next request", 40, both, **halves)


def five_rounds(stage: Stage, times: int) -> Row:
    """A turn of five streaming rounds, less the same five requests made straight."""
    key = "five-rounds"
    steps: list[Step] = [STREAMING | LOOK] * 4 + [STREAMING]
    prompt = stage.script(key, steps)
    turns = []
    for _ in range(times + 2):
        conversation = stage.conversation()
        stage.forget(key)
        turns.append(stage.turn(prompt, conversation=conversation))
    ours = [turn.seconds * 1000 for turn in turns[2:]]
    bodies = [seen["body"] for seen in stage.requests(key, bodies=True)]
    straight = Times.of([sum(stage.straight(body)[1] for body in bodies) for _ in range(times + 2)][2:])
    added = Times.of([whole - straight.p50 for whole in ours])
    return _row("five_rounds", "five streaming rounds, added in total", 150, added, straight=straight.wire())


def _gaps(stage: Stage, key: str) -> list[float]:
    seen = stage.requests(key)
    return [(after["arrivedNs"] - before["lastByteNs"]) / NS for before, after in pairwise(seen)]


def _row(key: str, what: str, target: float, times: Times, **more: object) -> Row:
    result = f"{times.p50:.1f} p50, {times.p95:.1f} p95"
    return Row(key, what, f"≤ {target:g} ms p50", f"{result} ms", times.p50 <= target, {**times.wire(), **more})


def settle(seconds: float = 0.3) -> None:
    """Let what a finished turn left running (its execution's last step) come to its end."""
    time.sleep(seconds)
