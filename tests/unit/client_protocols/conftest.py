"""A service whose workflow runs at once, asked by chat clients over HTTP."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import pytest

from fermata.aws.clock import Clock
from fermata.aws.resources import Resources
from fermata.credentials import scope_defaults
from fermata.turns.turn import load_turn
from fermata.wire.http import dispatch
from fermata.wire.http.messages import HttpRequest, Response
from functions.stream_turns import app as stream_turns
from local.seed import WIDE_LIMITS
from tests.tenant_tokens import ALL_CAPABILITIES, TokenSigner, make_tenant
from tests.unit.functions.conftest import deployed
from tests.unit.openapi import documented_responses
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA, FakeWorkflow, Stage

__all__ = ["clock", "deployed", "resources", "shared_resources"]
Json = dict[str, Any]


class ImmediateWorkflow(FakeWorkflow):
    """Runs a turn, from its start or from an answer, before the call that lets it run returns."""

    stage: Stage

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: Any = None) -> None:
        super().start_execution(tenant, turn, n, hint=hint)
        self.stage._turn = load_turn(self.stage.resources, tenant, turn)
        self.stage._waiting_token = ""
        self.stage.run_workflow()

    def resume_execution(self, token: str, next_state: str, *, seconds: int = 0, hint: Any = None) -> bool:
        is_used = super().resume_execution(token, next_state, seconds=seconds, hint=hint)
        if is_used and token == self.stage._waiting_token and next_state == "round":
            self.stage.run_workflow()
        return is_used


@pytest.fixture
def stage(resources: Resources, deployed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    settings = resources.settings.model_copy(update={"poll_ms": 2, "idle_poll_ms": 4, "reader_seconds": 20})
    live = Resources(settings, Clock())
    for name in ("tables", "blobs", "vault"):
        live.__dict__[name] = getattr(resources, name)
    made = Stage(live, monkeypatch)
    workflow = ImmediateWorkflow()
    workflow.stage = made
    made.workflow = live.__dict__["workflow"] = workflow
    for module in ("fermata.wire.http.dispatch", "functions.stream_turns.app"):
        monkeypatch.setattr(f"{module}.get_resources", lambda: live)
    scope_defaults.set_default(live, made.caller, "site", made.credential.id, "model-1")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def check_documented_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that every response in these tests is one that the OpenAPI document has."""
    dress = dispatch.add_response_headers

    def checked(request: HttpRequest, answer: Response, **how: Any) -> Response:
        documented_responses.check_documented(request, answer)
        return dress(request, answer, **how)

    monkeypatch.setattr(dispatch, "add_response_headers", checked)


class RequestSender(Protocol):
    """Sends requests, as `httpx.Client.request` does."""

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response: ...


@dataclass
class Requester:
    """Sends requests to the function that streams."""

    signer: TokenSigner
    capabilities: tuple[str, ...] = (*ALL_CAPABILITIES, *sorted(ADA.capabilities))

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        headers = self.signer.bearer_headers(capabilities=self.capabilities) | parts.pop("headers", {})

        async def respond() -> httpx.Response:
            transport = httpx.ASGITransport(stream_turns.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
                return await http.request(method, path, headers=headers, **parts)

        return asyncio.run(respond())


@pytest.fixture
def requester(stage: Stage) -> Requester:
    return Requester(make_tenant(stage.resources, limits=WIDE_LIMITS))


def parse_chunks(response: httpx.Response) -> list[Json]:
    """Parse a response of server-sent events, whose last one may be [DONE]."""
    assert response.status_code == 200, response.text
    frames = [frame for frame in response.text.split("\n\n") if frame and not frame.startswith(":")]
    assert all(frame.startswith("data: ") and "\n" not in frame for frame in frames)
    texts = [frame.removeprefix("data: ") for frame in frames]
    return [json.loads(text) for text in texts if text != "[DONE]"]


@dataclass
class SdkChat:
    """A chat as the AI SDK keeps it: messages, whose parts follow from the chunks."""

    requester: Requester
    url: str = "/api/agent/home/site"
    id: str = "chat-1"
    messages: list[Json] = field(default_factory=list)
    chunks: list[Json] = field(default_factory=list)
    """Of the last response."""

    def say(self, text: str, message_id: str = "", **members: Any) -> httpx.Response:
        message = {"id": message_id or f"u{len(self.messages)}", "role": "user"}
        self.messages.append(message | {"parts": [{"type": "text", "text": text}]})
        return self.post(**members)

    def post(self, **members: Any) -> httpx.Response:
        headers = members.pop("headers", {})
        body = {"id": self.id, "messages": self.messages, "trigger": "submit-message"} | members
        response = self.requester.send("POST", self.url, json=body, headers=headers)
        if response.status_code == 200 and "event-stream" in response.headers["content-type"]:
            self.chunks = parse_chunks(response)
            self._apply()
        return response

    @property
    def answer(self) -> Json:
        return self.messages[-1]

    def part(self, call_id: str) -> Json:
        return next(part for part in self.answer["parts"] if part.get("toolCallId") == call_id)

    def text(self) -> str:
        return "".join(part["text"] for part in self.answer["parts"] if part["type"] == "text")

    def types(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]

    def _apply(self) -> None:
        if self.messages[-1]["role"] != "assistant":
            self.messages.append({"id": "", "role": "assistant", "parts": []})
        for chunk in self.chunks:
            self._apply_chunk(chunk)

    def _apply_chunk(self, chunk: Json) -> None:
        parts = self.answer["parts"]
        match chunk["type"]:
            case "start":
                self.answer["id"] = chunk["messageId"]
            case "start-step":
                parts.append({"type": "step-start"})
            case "text-start":
                parts.append({"type": "text", "text": ""})
            case "text-delta":
                parts[-1]["text"] += chunk["delta"]
            case "tool-input-available":
                known = [part for part in parts if part.get("toolCallId") == chunk["toolCallId"]]
                made = {"type": f"tool-{chunk['toolName']}", "toolCallId": chunk["toolCallId"]}
                part = known[0] if known else made
                part |= {"state": "input-available", "input": chunk["input"]}
                parts += [] if known else [part]
            case "tool-approval-request":
                self.part(chunk["toolCallId"]).update(state="approval-requested", approval={"id": chunk["approvalId"]})
            case "tool-output-available":
                self.part(chunk["toolCallId"]).update(state="output-available", output=chunk["output"])
            case "tool-output-error" | "tool-output-denied":
                self.part(chunk["toolCallId"]).update(state=chunk["type"].removeprefix("tool-"))

    def output(self, call_id: str, output: Any) -> None:
        self.part(call_id).update(state="output-available", output=output)

    def decide(self, call_id: str, *, approved: bool, **others: Any) -> None:
        part = self.part(call_id)
        approval = {"id": part["approval"]["id"], "approved": approved} | others
        part.update(state="approval-responded", approval=approval)


@pytest.fixture
def chat(requester: Requester) -> SdkChat:
    return SdkChat(requester)
