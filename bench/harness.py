"""The running service with its demo model, and one turn on it with the moment of everything it told."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from bench.stats import NS_PER_MS
from fermata_client import HtmlFile, HtmlFileExecutor
from fermata_client.service.client import FermataClient
from fermata_client.service.json_types import Event
from local import seed
from local.cloud import LocalCloud
from local.processes import ROOT

DEMO_PAGE = ROOT / "examples/bakery/index.html"
DEMO_MODEL = "fermata-demo"
TERMINAL_EVENTS = ("done", "error", "cancelled")
READ_TOOLS = ("read_document", "getNodeHtml")
"""Browser tools that leave the page as it is."""
ScriptStep = dict[str, Any]


@dataclass
class RecordedTurn:
    """One turn as its client saw it. Moments are `time.monotonic_ns()`, which all processes here share."""

    conversation_id: str
    started_ns: int
    events: list[tuple[int, Event]] = field(default_factory=list)
    answered_ns: list[int] = field(default_factory=list)
    change_count: int = 0
    """How often its client's page was changed so far."""

    @property
    def bridge_id(self) -> str:
        return str(self.events[0][1]["bridgeId"])

    @property
    def ended_ns(self) -> int:
        return self.events[-1][0]

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.started_ns) / NS_PER_MS / 1000

    def event_times_ns(self, kind: str) -> list[int]:
        return [at for at, event in self.events if event["type"] == kind]


class BenchHarness:
    def __init__(self, cloud: LocalCloud) -> None:
        assert cloud.model is not None
        self.cloud = cloud
        self.client = FermataClient(cloud.url, cloud.token)
        self.model_url = cloud.model.url
        self._model = httpx.Client(base_url=cloud.model.url, trust_env=False, timeout=60)

    def close(self) -> None:
        self.client.close()
        self._model.close()

    @property
    def poll_ms(self) -> int:
        return self.cloud.resources().settings.poll_ms

    @cached_property
    def page_snapshot(self) -> dict[str, Any]:
        return HtmlFileExecutor(HtmlFile(DEMO_PAGE)).snapshot()

    def snapshot_at_revision(self, revision: int = 0) -> dict[str, Any]:
        """What an editor with the demo page open posts along, after so many changes."""
        return self.page_snapshot | {"site": self.page_snapshot["site"] | {"updatedAt": revision}}

    def script_model(self, key: str, steps: Sequence[ScriptStep], *, repeat_last: bool = False) -> str:
        """Tell the model its answers, by round; the prompt to follow them with."""
        told = {"key": key, "by": "round", "steps": list(steps), "repeatLast": repeat_last}
        self._model.post("/demo/script", json=told).raise_for_status()
        return f"Follow [[script:{key}]]"

    def model_requests(self, key: str, *, bodies: bool = False) -> list[dict[str, Any]]:
        """What the model was asked under a script since `forget`, with its moments."""
        found = self._model.get("/demo/requests", params={"key": key, "bodies": int(bodies)})
        return list(found.json()["requests"])

    def forget_model_requests(self, key: str) -> None:
        self._model.delete("/demo/requests", params={"key": key}).raise_for_status()

    def create_conversation(self) -> str:
        return str(self.client.create_conversation("site")["id"])

    def run_turn(
        self, prompt: str, *, conversation: str = "", think_seconds: float = 0, snapshot: dict[str, Any] | None = None
    ) -> RecordedTurn:
        """Run a turn and answer what it asks, `think_seconds` after it asked. It must end with `done`."""
        conversation, snapshot = conversation or self.create_conversation(), snapshot or self.snapshot_at_revision()
        told = RecordedTurn(conversation, time.monotonic_ns())
        with self.client.start_turn("site", prompt, conversation_id=conversation, snapshot=snapshot) as events:
            for event in events:
                told.events.append((time.monotonic_ns(), event))
                if event["type"] == "toolRequest":
                    self._answer(told, event, think_seconds)
                if event["type"] in TERMINAL_EVENTS:
                    break
        if told.events[-1][1]["type"] != "done":
            raise RuntimeError(f"A turn of the bench ended otherwise than with done: {told.events[-1][1]}")
        return told

    def _answer(self, told: RecordedTurn, request: Event, think_seconds: float) -> None:
        time.sleep(think_seconds)
        told.change_count += request["toolName"] not in READ_TOOLS
        snapshot = self.snapshot_at_revision(told.change_count)
        told.answered_ns.append(time.monotonic_ns())
        self.client.post_tool_result(told.bridge_id, request["requestId"], instant_tool_output(request), snapshot)

    def call_model_directly(self, body: dict[str, Any]) -> tuple[float, float]:
        """The same request without us: milliseconds to the first text, and to the last byte."""
        first, started = 0, time.monotonic_ns()
        headers = {"x-api-key": "demo", "anthropic-version": "2023-06-01"}
        with self._model.stream("POST", "/v1/messages", json=body, headers=headers) as response:
            for line in response.iter_lines():
                if not first and '"text_delta"' in line:
                    first = time.monotonic_ns()
        return (first - started) / NS_PER_MS, (time.monotonic_ns() - started) / NS_PER_MS

    def list_executions(self) -> list[str]:
        """The ARNs of all executions so far."""
        pages = self.cloud.get_client("stepfunctions").get_paginator("list_executions")
        found = pages.paginate(stateMachineArn=self.cloud.get_output("TurnMachineArn"))
        return [execution["executionArn"] for page in found for execution in page["executions"]]

    def turn_history(self, told: RecordedTurn) -> list[dict[str, Any]]:
        """The events of the turn's execution."""
        (execution,) = self.cloud.wait_for_executions(told.bridge_id)
        return self.execution_history(execution["executionArn"])

    def execution_history(self, arn: str) -> list[dict[str, Any]]:
        pages = self.cloud.get_client("stepfunctions").get_paginator("get_execution_history")
        return [event for page in pages.paginate(executionArn=arn) for event in page["events"]]

    def stored_items(self, told: RecordedTurn) -> list[dict[str, Any]]:
        """The rows of a turn that was its conversation's first, as they are stored."""
        settings, tenant = self.cloud.resources().settings, seed.TENANT
        turn, conversation = f"t#{tenant}#turn#{told.bridge_id}", f"t#{tenant}#c#{told.conversation_id}"
        places = (
            (settings.bridges_table, turn),
            (settings.usage_table, turn),
            (settings.conversations_table, conversation),
        )
        return [item for table, pk in places for item in self._partition(table, pk)]

    def _partition(self, table: str, pk: str) -> list[dict[str, Any]]:
        pages = self.cloud.get_client("dynamodb").get_paginator("query")
        key = {":pk": {"S": pk}}
        found = pages.paginate(TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=key)
        return [item for page in found for item in page["Items"]]


def instant_tool_output(request: Event) -> dict[str, Any]:
    """What the bench's editor says: it does nothing, at once."""
    return {"ok": True, "data": {"tool": request["toolName"], "html": "<p>done</p>"}}


@contextmanager
def open_harness(directory: Path, **overrides: Any) -> Iterator[BenchHarness]:
    with LocalCloud(directory, **overrides) as cloud:
        stage = BenchHarness(cloud)
        try:
            yield stage
        finally:
            stage.close()
