"""Run turns on the service and its demo model, and record when each event came."""

import time
from collections.abc import Iterator, Mapping, Sequence
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
from local.seed import LocalResources
from local.signed_pages import RunSignature

DEMO_PAGE = ROOT / "examples/bakery/index.html"
DEMO_MODEL = "fermata-demo"
TERMINAL_EVENTS = ("done", "error", "cancelled")
READ_TOOLS = ("read_document", "getNodeHtml")
"""Browser tools that leave the page as it is."""
ScriptStep = dict[str, Any]
"""One answer of the demo model: `text`, `toolCalls`, and its pace."""


@dataclass
class RecordedTurn:
    """A turn as its client saw it. Times are `time.monotonic_ns()`, which all processes of the machine share."""

    conversation_id: str
    started_ns: int
    events: list[tuple[int, Event]] = field(default_factory=list)
    """Each event with the time it came."""
    answered_ns: list[int] = field(default_factory=list)
    """When each tool result was posted."""
    change_count: int = 0
    """Number of changes to the client's page so far."""

    @property
    def bridge_id(self) -> str:
        return str(self.events[0][1]["bridgeId"])

    @property
    def ended_ns(self) -> int:
        return self.events[-1][0]

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.started_ns) / NS_PER_MS / 1000

    def event_times_ns(self, event_type: str) -> list[int]:
        return [time_ns for time_ns, event in self.events if event["type"] == event_type]


class BenchHarness:
    """The running service, a client of it, and the demo model behind it."""

    def __init__(self, cloud: LocalCloud) -> None:
        assert cloud.model is not None
        self.cloud = cloud
        self.client = FermataClient(cloud.url, cloud.token)
        self.model_url = cloud.model.url
        self._model = httpx.Client(base_url=cloud.model.url, auth=RunSignature(), trust_env=False, timeout=60)

    def close(self) -> None:
        self.client.close()
        self._model.close()

    @property
    def poll_ms(self) -> int:
        return self.cloud.resources().settings.poll_ms

    @cached_property
    def resources(self) -> LocalResources:
        """The clients of the functions, made once: making them takes longer than to read a log."""
        return self.cloud.resources()

    @cached_property
    def page_snapshot(self) -> dict[str, Any]:
        return HtmlFileExecutor(HtmlFile(DEMO_PAGE)).snapshot()

    def snapshot_at_revision(self, revision: int = 0) -> dict[str, Any]:
        """Return the snapshot that an editor with the demo page posts after this many changes."""
        return self.page_snapshot | {"site": self.page_snapshot["site"] | {"updatedAt": revision}}

    def script_model(self, key: str, steps: Sequence[ScriptStep], *, repeat_last: bool = False) -> str:
        """Set the demo model's answers by round, and return the prompt that follows the script."""
        script = {"key": key, "by": "round", "steps": list(steps), "repeatLast": repeat_last}
        self._model.post("/demo/script", json=script).raise_for_status()
        return f"Follow [[script:{key}]]"

    def model_requests(self, key: str, *, bodies: bool = False) -> list[dict[str, Any]]:
        """Return the model requests under a script since `forget_model_requests`, with their times."""
        response = self._model.get("/demo/requests", params={"key": key, "bodies": int(bodies)})
        return list(response.json()["requests"])

    def forget_model_requests(self, key: str) -> None:
        self._model.delete("/demo/requests", params={"key": key}).raise_for_status()

    def create_conversation(self) -> str:
        return str(self.client.create_conversation("site")["id"])

    def run_turn(
        self,
        prompt: str,
        *,
        conversation_id: str = "",
        think_seconds: float = 0,
        snapshot: dict[str, Any] | None = None,
    ) -> RecordedTurn:
        """Run a turn, and answer each tool request after `think_seconds`.

        Raises:
            RuntimeError: it did not end with `done`.
        """
        conversation = conversation_id or self.create_conversation()
        first_snapshot = snapshot or self.snapshot_at_revision()
        turn = RecordedTurn(conversation, time.monotonic_ns())
        with self.client.start_turn("site", prompt, conversation_id=conversation, snapshot=first_snapshot) as events:
            for event in events:
                turn.events.append((time.monotonic_ns(), event))
                if event["type"] == "toolRequest":
                    self._answer_request(turn, event, think_seconds)
                if event["type"] in TERMINAL_EVENTS:
                    break
        _, last_event = turn.events[-1]
        if last_event["type"] != "done":
            raise RuntimeError(f"A turn of the bench ended otherwise than with done: {last_event}")
        return turn

    def _answer_request(self, turn: RecordedTurn, request: Event, think_seconds: float) -> None:
        time.sleep(think_seconds)
        turn.change_count += request["toolName"] not in READ_TOOLS
        snapshot = self.snapshot_at_revision(turn.change_count)
        turn.answered_ns.append(time.monotonic_ns())
        self.client.post_tool_result(turn.bridge_id, request["requestId"], instant_tool_output(request), snapshot)

    def call_model_directly(self, body: dict[str, Any]) -> tuple[float, float]:
        """Make a request without the service, and return milliseconds to the first text and to the last byte."""
        started_ns = time.monotonic_ns()
        first_text_ns = 0
        headers = {"x-api-key": "demo", "anthropic-version": "2023-06-01"}
        with self._model.stream("POST", "/v1/messages", json=body, headers=headers) as response:
            for line in response.iter_lines():
                if not first_text_ns and '"text_delta"' in line:
                    first_text_ns = time.monotonic_ns()
        return (first_text_ns - started_ns) / NS_PER_MS, (time.monotonic_ns() - started_ns) / NS_PER_MS

    def list_executions(self) -> list[str]:
        """Return the ARNs of all workflow executions so far."""
        paginator = self.cloud.get_client("stepfunctions").get_paginator("list_executions")
        pages = paginator.paginate(stateMachineArn=self.cloud.get_output("TurnMachineArn"))
        return [execution["executionArn"] for page in pages for execution in page["executions"]]

    def turn_history(self, turn: RecordedTurn) -> list[dict[str, Any]]:
        """Return the events of the turn's only workflow execution, once it has ended."""
        (execution,) = self.cloud.wait_for_executions(turn.bridge_id)
        return self.execution_history(execution["executionArn"])

    def execution_history(self, arn: str) -> list[dict[str, Any]]:
        paginator = self.cloud.get_client("stepfunctions").get_paginator("get_execution_history")
        return [event for page in paginator.paginate(executionArn=arn) for event in page["events"]]

    def stored_items(self, turn: RecordedTurn) -> list[dict[str, Any]]:
        """Return the items that the first turn of a conversation has stored."""
        settings, tenant = self.cloud.resources().settings, seed.TENANT
        turn_pk, conversation_pk = f"t#{tenant}#turn#{turn.bridge_id}", f"t#{tenant}#c#{turn.conversation_id}"
        partitions = (
            (settings.bridges_table, turn_pk),
            (settings.usage_table, turn_pk),
            (settings.conversations_table, conversation_pk),
        )
        return [item for table, pk in partitions for item in self._read_partition(table, pk)]

    def _read_partition(self, table: str, pk: str) -> list[dict[str, Any]]:
        paginator = self.cloud.get_client("dynamodb").get_paginator("query")
        values = {":pk": {"S": pk}}
        pages = paginator.paginate(TableName=table, KeyConditionExpression="pk = :pk", ExpressionAttributeValues=values)
        return [item for page in pages for item in page["Items"]]


def instant_tool_output(request: Event) -> dict[str, Any]:
    """Succeed at once and do nothing, as the tool executor of a measured turn."""
    return {"ok": True, "data": {"tool": request["toolName"], "html": "<p>done</p>"}}


@contextmanager
def open_harness(
    directory: Path,
    *,
    minute_seconds: float,
    latencies: Path | None = None,
    function_limits: Mapping[str, float] | None = None,
    parameters: Mapping[str, object] | None = None,
) -> Iterator[BenchHarness]:
    """Start a local cloud in `directory`. The other arguments are those of `LocalCloud`."""
    with LocalCloud(
        directory,
        minute_seconds=minute_seconds,
        latencies=latencies,
        function_limits=function_limits,
        parameters=parameters,
    ) as cloud:
        harness = BenchHarness(cloud)
        try:
            yield harness
        finally:
            harness.close()
