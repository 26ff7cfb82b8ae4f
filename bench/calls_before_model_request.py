"""Count the AWS calls in series between a person's or a browser's request and the model's, in warm processes.

The functions run in this process one after the other, on the local cloud and with its demo model. What is counted does
not depend on time or on what is cheap on one machine (bench/serial_call_count.py).
"""

import io
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

from bench.aws_latencies import TYPICAL_LATENCY_MS
from bench.harness import BenchHarness, instant_tool_output
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP
from bench.report import ResultRow
from bench.serial_call_count import RecordingWorkflow, SeriesClock
from fermata.aws.resources import Resources
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.turns.round.invocation import invocation_from_event
from fermata.turns.round.run_turn_steps import run_turn_steps
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import read_entries_from
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.messages import HttpRequest
from fermata.wire.http.routing import Routes
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from local import seed

MAX_PROMPT_CALLS = 5
MAX_ANSWER_CALLS = 4
"""Both include the call that lets the workflow go on: StartExecution, SendTaskSuccess."""
INVOCATION_SECONDS = 900


class CountingConnection(HttpConnection):
    """Notes how many calls in series precede each model request."""

    def __init__(self, clock: SeriesClock) -> None:
        super().__init__()
        self._clock = clock
        self.calls_before_request: list[float] = []

    @contextmanager
    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> Iterator[ProviderResponse]:
        self.calls_before_request.append(self._clock.calls_in_series)
        with super().post(label, url, headers, body, request_name=request_name) as response:
            yield response


class _LambdaContext:
    aws_request_id = "bench"

    def get_remaining_time_in_millis(self) -> int:
        return INVOCATION_SECONDS * 1000


@dataclass(frozen=True)
class _PathWalker:
    """Plays the browser and the workflow for turns that run in this process."""

    harness: BenchHarness
    resources: Resources
    clock: SeriesClock
    workflow: RecordingWorkflow
    connection: CountingConnection

    def count_calls(self, prompt: str) -> tuple[float, float]:
        """Run a turn with one browser round; return the calls in series from prompt to model, and from answer."""
        self.clock.calls_in_series = 0
        bridge_id = self._post(stream_turns.router.routes, "chat/site", self._chat_body(prompt))["bridgeId"]
        prompt_calls = self._run_round(bridge_id)
        request = self._find_tool_request(bridge_id)
        self.clock.calls_in_series = 0
        self._post(tool_result.router.routes, "tool-result", self._answer_body(bridge_id, request))
        return prompt_calls, self._run_round(bridge_id)

    def _chat_body(self, prompt: str) -> dict[str, Any]:
        return {
            "conversationId": self.harness.create_conversation(),
            "content": [{"kind": "text", "text": prompt}],
            "snapshot": self.harness.snapshot_at_revision(),
        }

    def _answer_body(self, bridge_id: str, request: dict[str, Any]) -> dict[str, Any]:
        return {
            "bridgeId": bridge_id,
            "requestId": request["requestId"],
            "result": instant_tool_output(request),
            "snapshot": self.harness.snapshot_at_revision(1),
        }

    def _post(self, routes: Routes, path: str, body: dict[str, Any]) -> Any:
        headers = {
            "authorization": f"Bearer {self.harness.cloud.token}",
            "content-type": "application/json",
            "accept": "application/json",
        }
        request = HttpRequest("bench", "POST", f"/admin/api/ai/{path}", headers, body=json.dumps(body).encode())
        response = handle_request(self.resources, routes, request)
        if response.status >= 300:
            raise RuntimeError(f"{path} was refused: {response.body}")
        return response.body

    def _run_round(self, bridge_id: str) -> float:
        self.clock.calls_in_series = self.workflow.calls_in_series
        event = {
            "tenant": seed.TENANT,
            "turn": bridge_id,
            "n": 1,
            "token": "bench",
            "entered": self.clock.now_iso(),
            "retry": 0,
            "hint": self.workflow.hint,
        }
        request_count = len(self.connection.calls_before_request)
        run_turn_steps(self.resources, invocation_from_event(event, _LambdaContext()), self.connection)
        return self.connection.calls_before_request[request_count]

    def _find_tool_request(self, bridge_id: str) -> dict[str, Any]:
        resources = self.harness.cloud.resources()
        entries = read_entries_from(resources, build_turn_pk(seed.TENANT, bridge_id), 1)
        events = [event.to_wire() for entry in entries for event in entry.events]
        return next(event for event in reversed(events) if event["type"] == "toolRequest")


def measure_calls_in_series(harness: BenchHarness) -> list[ResultRow]:
    """Count the calls of a turn in warm processes: the first turn fills their caches."""
    prompt = harness.script_model("series", [BROWSER_TOOL_STEP, FINAL_STEP])
    prompt_calls, answer_calls = _walk(_make_walker(harness, SeriesClock()), prompt)
    prompt_ms, answer_ms = _walk(_make_walker(harness, SeriesClock(lambda call: TYPICAL_LATENCY_MS[call])), prompt)
    return [
        _row("series.prompt", "AWS calls in series, prompt to the model's request", prompt_calls, MAX_PROMPT_CALLS),
        _row("series.answer", "AWS calls in series, answer to the model's request", answer_calls, MAX_ANSWER_CALLS),
        _latency_row("series.prompt.aws", "their typical latencies on AWS, prompt to the model's request", prompt_ms),
        _latency_row("series.answer.aws", "their typical latencies on AWS, answer to the model's request", answer_ms),
    ]


def _walk(walker: _PathWalker, prompt: str) -> tuple[float, float]:
    with _without_output(), closing(walker.connection):
        walker.count_calls(prompt)
        return walker.count_calls(prompt)


def _make_walker(harness: BenchHarness, clock: SeriesClock) -> _PathWalker:
    local = harness.cloud.resources()
    settings = local.settings.model_copy(update={"provider_urls": json.dumps({"anthropic": harness.model_url})})
    resources = replace(local, settings=settings, clock=clock)
    for store in (resources.tables, resources.blobs, resources.vault):
        clock.attach(store._client)
    workflow = RecordingWorkflow(clock)
    resources.__dict__["workflow"] = workflow
    return _PathWalker(harness, resources, clock, workflow, CountingConnection(clock))


@contextmanager
def _without_output() -> Iterator[None]:
    """Suppress what the functions log and the metrics they emit."""
    logger = logging.getLogger("fermata")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with redirect_stdout(io.StringIO()):
        yield
    logger.setLevel(level)


def _row(key: str, title: str, count: float, maximum: int) -> ResultRow:
    return ResultRow(key, title, f"≤ {maximum}", f"{count:g}", count <= maximum)


def _latency_row(key: str, title: str, milliseconds: float) -> ResultRow:
    return ResultRow(key, title, "", f"{milliseconds:g} ms", None)
