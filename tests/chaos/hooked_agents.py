"""Users who ask an agent of their workspace at points of whose turns endpoints are called, and the server of those."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fermata.agents.definitions.compile_definitions import compile_definitions
from fermata.agents.definitions.definition_problems import SourceDocument
from fermata.agents.definitions.definition_store import replace_agents
from fermata.aws.resources import Resources
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.remote_tools import call_http_endpoint
from tests.chaos.browser import Browser
from tests.chaos.evidence import ClientTurn
from tests.chaos.provider import make_prompt
from tests.chaos.remote_tool_server import ToolConnection
from tests.chaos.users import User
from tests.chaos.webhook_receivers import WebhookReceivers

if TYPE_CHECKING:
    from tests.chaos.user_actions import UserActions
    from tests.chaos.world import World

SERVER = "https://hooks.example"
BEGINNING, NOTING, FINISHING = "begin", "note", ("title", "save")
"""Endpoints at the start of a turn, after each call, and, in this order, at its end."""
LOOKING_TOOL = "look"
AGENTS = f"""
agents:
  - id: hooked
    type: ClaudeAgent
    connectionId: claude
    properties: {{model: model-1, instructions: You help.}}
    tools: [{{endpointId: {LOOKING_TOOL}, name: {LOOKING_TOOL}}}]
    hooks: {{onStart: [{BEGINNING}], onToolCallFinish: [{NOTING}], onFinish: [{", ".join(FINISHING)}]}}
endpoints:
  - {{id: {LOOKING_TOOL}, url: "{SERVER}/{LOOKING_TOOL}", description: Looks., payloadSchema: {{type: object}}}}
  - {{id: {BEGINNING}, url: "{SERVER}/{BEGINNING}"}}
  - {{id: {NOTING}, url: "{SERVER}/{NOTING}"}}
  - {{id: {FINISHING[0]}, url: "{SERVER}/{FINISHING[0]}"}}
  - {{id: {FINISHING[1]}, url: "{SERVER}/{FINISHING[1]}", idempotent: true, maxAttempts: 2}}
connections:
  - {{id: claude, type: Anthropic, properties: {{credential: anthropic}}}}
"""
SCOPE = "agent:hooked"
PART = "data-seen"
TURNS = 3
CANCEL_RATE = 0.3
SLOW_RATE = 0.15
SLOW_SECONDS = (3.0, 25.0)
"""Shorter than a caller waits."""
TIMEOUT_SECONDS = 30.0
LOST, REFUSALS = ("unreachable",), ("rate limit", "overloaded", "refused", "error after text")


@dataclass
class EndpointRequest:
    """One request that the server got.

    Attributes:
        key: Its Idempotency-Key.
        payload: What it was told.
        token: What the server has answered; empty if it has refused.
        is_afterwards: Whether the function that delivers webhooks has sent it, and not the one that runs the turn.
        is_heard: Whether the answer has arrived.
    """

    endpoint: str
    key: str
    payload: Mapping[str, Any]
    is_afterwards: bool
    token: str = ""
    is_heard: bool = False


class HookedAgents(WebhookReceivers):
    """One who prompts and may cancel, and the server that is called at points of the turns.

    The queue is that of webhooks. There are no webhooks.
    """

    scope = SCOPE

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.requests: list[EndpointRequest] = []
        world.cloud.is_left_alone = lambda _request: False

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        def open_connection(**_: Any) -> "contextlib.AbstractContextManager[EndpointConnection]":
            return contextlib.nullcontext(EndpointConnection(self))

        patch.setattr(call_http_endpoint, "open_guarded_connection", open_connection)

    def set_up(self, resources: Resources, credential: str, model: str) -> None:
        compiled = compile_definitions([SourceDocument("agents.yaml", yaml.safe_load(AGENTS))])
        assert not compiled.errors, compiled.errors
        replace_agents(resources, User("ada").caller, dict(compiled.definitions))

    def start(self, actions: "UserActions") -> None:
        super().start(actions)
        self._actions = actions
        self._begin(self._work)

    def _work(self) -> None:
        scheduler, actions = self.world.scheduler, self._actions
        created = actions._ask("api", "POST", "conversations", {"scope": SCOPE})
        if not created.is_success:
            return
        self.conversation = created.body["conversation"]["id"]
        for number in range(TURNS):
            name, rounds = f"h{number}", scheduler.random.randint(1, 3)
            calls = [(LOOKING_TOOL, {"sku": f"{index}"}) for index in range(scheduler.random.randint(1, 2))]
            self.world.cloud.provider.planned_calls[name] = calls
            content = [{"kind": "text", "text": make_prompt(name, rounds, self.world.seed)}]
            body = {"conversationId": self.conversation, "content": content}
            turn = ClientTurn(name, "prompt", self.conversation, dialect=self.world.dialect)
            browser = Browser(self.world.cloud, self.world.page, User("ada"), turn, body, f"chat/{SCOPE}")
            actions.browsers.append(browser)
            if scheduler.random.random() < CANCEL_RATE:
                self._begin(partial(browser.cancel, scheduler.random.uniform(0.0, 15.0)))
            browser.run()

    # the server

    def answer(self, url: str, headers: Mapping[str, str], body: bytes | None) -> ProviderResponse:
        """Answer a request, or refuse it, or let the connection break before or after it is carried out."""
        scheduler, draw = self.world.scheduler, self.world.scheduler.random
        endpoint = url.rpartition("/")[2]
        told = json.loads(body or b"{}").get("payload") or {}
        is_afterwards = scheduler.current.process.name.startswith("deliver")
        request = EndpointRequest(endpoint, headers["idempotency-key"], told, is_afterwards)
        self.requests.append(request)
        is_slow = draw.random() < SLOW_RATE
        scheduler.switch("endpoint", draw.uniform(*SLOW_SECONDS) if is_slow else draw.uniform(0.0, 1.0))
        fault = self.world.faults.draw("provider.endpoint", scheduler.current.process.name)
        if fault in LOST:
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        if fault in REFUSALS:
            return ProviderResponse(503, {}, iter([b"later"]))
        request.token = f"{endpoint} {len(self.requests)}"
        if fault == "silence":
            scheduler.switch("endpoint", TIMEOUT_SECONDS)
            raise Failure.STALLED.to_error("No whole answer in time.")
        scheduler.switch("endpoint", 0.1)
        if fault is not None:
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        request.is_heard = True
        part = {"type": PART, "data": request.token}
        return ProviderResponse(200, {}, iter([json.dumps({"dataParts": [part]}).encode()]))


class EndpointConnection(ToolConnection):
    """A connection to the endpoints, on simulated time."""

    def __init__(self, agents: HookedAgents) -> None:
        self._agents, self._is_aborted = agents, False

    @contextlib.contextmanager
    def request(
        self, label: str, _method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Iterator[ProviderResponse]:
        self.sleep(0.05)
        response = self._agents.answer(url, headers, body)
        self.sleep(0.0)
        yield response

    def sleep(self, seconds: float) -> None:
        self._agents.world.scheduler.wait("endpoint", lambda: self._is_aborted, seconds)
        if self._is_aborted:
            raise Failure.ABORTED.to_error("The request was stopped.")
