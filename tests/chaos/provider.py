"""Simulated model providers: scripted answers in their real protocols, and a record of every request they were sent.

What is answered depends on the prompt and the number of the round alone, so a request that is repeated gets the same
answer, as the engine may repeat one after a crash.
"""

import contextlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fermata.drivers.adjustments import LearnedAdjustments
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderResponse
from local.demo_model.request_checks.errors import RequestRejected
from tests.chaos.evidence import ServedRequest
from tests.chaos.fault_rules import FaultPlan
from tests.chaos.provider_responses import HOSTS, PROTOCOLS, Protocol, ScriptedResponse, ToolCall
from tests.chaos.scheduler import Scheduler

MARKER = re.compile(rb"\[turn (\w+) rounds (\d+) seed (\d+)\]")
MODEL_IN_PATH = re.compile(r"/models/([^:]+):")
TASK_MARKER = re.compile(rb"\[task (\w+) rounds (\d+) seed (\d+)\]")
"""Of what a sub-agent is asked. No request of a turn that a user has started has one before its prompt."""
USUAL_TASK_DEPTH = 3
SUB_AGENT_TOOL = "ask_site"
BROWSER_CALLS = (
    ("deleteNode", {"nodeId": "n1"}),
    ("insertHtml", {"parentId": "root", "html": "<p>x</p>"}),
    ("getNodeHtml", {"nodeId": "n1"}),
)
SERVER_CALLS = (("list_documents", {}), ("list_tokens", {}))
STALL_SECONDS = 120.0
SLOW_SECONDS = 150.0
"""On a day without faults some answers take longer than the workflow waits for a heartbeat."""
TOTAL_SECONDS = 480.0
ERROR_STATUSES = {"rate limit": (429, {"retry-after": "2"}), "overloaded": (529, {}), "refused": (400, {})}


def make_prompt(name: str, rounds: int, seed: int) -> str:
    """Return a prompt whose answers take that many rounds."""
    return f"[turn {name} rounds {rounds} seed {seed}] Do it."


def _add_tasks(
    draw: random.Random, calls: list[tuple[str, dict[str, Any]]], turn: str, number: int, seed: int, depth: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return calls with some that ask sub-agents, and without any of the editor for a sub-agent itself.

    Where agents ask each other more than usually often in a row, each asks one at a time.
    """
    mixed = [*calls, *draw.choices(SERVER_CALLS, k=0 if calls else 1)]
    is_deep = depth > USUAL_TASK_DEPTH
    for index in range(draw.randint(1, 1 if is_deep else 3) if turn.count("x") < depth else 0):
        task = f"[task {turn}x{number}{index} rounds {2 if is_deep else draw.randint(1, 2)} seed {seed}] Do it."
        mixed.insert(draw.randint(0, len(mixed)), (SUB_AGENT_TOOL, {"task": task}))
    return mixed


@dataclass
class SimulatedProvider:
    """All providers of a simulation."""

    scheduler: Scheduler
    faults: FaultPlan
    served: list[ServedRequest] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """What a strict provider would have refused about a request; must stay empty."""
    has_sub_agents: bool = False
    """Whether the models ask other agents."""
    task_depth: int = USUAL_TASK_DEPTH
    """How often agents ask each other in a row."""
    planned_calls: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """What the first response to some prompts calls, by what the prompts say they are."""
    slow_rate: float = 0.0
    """How often a response takes minutes, on a day without faults."""
    tenant_tools: tuple[str, ...] = ()
    """Tools of the tenant, which are called as often as all others together, each time for another product."""

    def respond(
        self, connection: "SimulatedConnection", url: str, headers: Mapping[str, str], body: bytes, name: str
    ) -> ProviderResponse:
        provider = HOSTS[urlsplit(url).hostname or ""]
        protocol = PROTOCOLS[provider]
        named = MODEL_IN_PATH.search(url)
        model, sent_at = named[1] if named else json.loads(body).get("model", ""), self.scheduler.now
        served = ServedRequest(name, provider, model=model, body=body.decode(), sent_at=sent_at)
        self.served.append(served)
        fault = self.faults.draw(f"provider.{provider}", "round")
        connection.wait(0.2)
        if fault == "unreachable":
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        if fault in ERROR_STATUSES:
            status, error_headers = ERROR_STATUSES[fault]
            return ProviderResponse(status, error_headers, iter([json.dumps({"error": {"message": fault}}).encode()]))
        self._check(protocol, headers, body, name)
        response = self._script(body, name)
        served.prompt_tokens, served.completion_tokens = response.prompt_tokens, response.completion_tokens
        served.words = list(response.words)
        return ProviderResponse(200, {}, self._stream(connection, protocol, response, served, fault))

    def _check(self, protocol: Protocol, headers: Mapping[str, str], body: bytes, name: str) -> None:
        try:
            protocol.check(headers, json.loads(body))
        except RequestRejected as rejection:
            self.refusals.append(f"{name}: {rejection.message}")

    def _script(self, body: bytes, name: str) -> ScriptedResponse:
        """Script the response to the newest prompt in a request."""
        prompts = MARKER.findall(body)
        turn, rounds, seed = prompts[-1] if prompts else TASK_MARKER.findall(body)[0]
        number = int(name.split(".")[1])
        draw = random.Random(f"{turn.decode()}/{int(seed)}/{number}")
        words = [f"{turn.decode()}-{number}-{index} " for index in range(draw.randint(1, 6))]
        calls: list[ToolCall] = []
        if number < int(rounds):
            tenant_calls = tuple((tool, {"sku": ""}) for tool in self.tenant_tools)
            weights = (3, 3, 1, 1, 1, *(9 for _ in tenant_calls))
            chosen = draw.choices(BROWSER_CALLS + SERVER_CALLS + tenant_calls, weights, k=draw.randint(1, 3))
            chosen = [
                (tool, {"sku": f"{number}-{index}"} if "sku" in given else given)
                for index, (tool, given) in enumerate(chosen)
            ]
            chosen = self.planned_calls.get(turn.decode(), chosen)
            if self.has_sub_agents:
                chosen = _add_tasks(draw, chosen if prompts else [], turn.decode(), number, int(seed), self.task_depth)
            calls = [
                (f"call_{turn.decode()}_{number}_{index}", tool, given) for index, (tool, given) in enumerate(chosen)
            ]
        return ScriptedResponse(words, calls, 100 + number, len(words))

    def _stream(
        self,
        connection: "SimulatedConnection",
        protocol: Protocol,
        response: ScriptedResponse,
        served: ServedRequest,
        fault: str | None,
    ) -> Iterator[bytes]:
        chunks = protocol.encode(response)
        delays = random.Random(f"{served.name}")
        pace = SLOW_SECONDS / len(chunks) / 0.3 if not self.faults.budget and delays.random() < self.slow_rate else 1.0
        for index, chunk in enumerate(chunks):
            is_middle = index == (len(chunks) - 1) // 2
            connection.wait(pace * delays.uniform(0.01, 0.6))
            if is_middle and fault == "silence":
                connection.wait(STALL_SECONDS)
                raise Failure.STALLED.to_error("It sent nothing for 120 s.")
            if (is_middle and fault == "cut") or (index == len(chunks) - 1 and fault == "cut at the end"):
                raise Failure.UNREACHABLE.to_error("The connection was lost.")
            if is_middle and index and fault == "error after text":
                yield protocol.encode_error("Something went wrong.")
                return
            if index == len(chunks) - 1:
                served.is_final = True
            yield chunk


class SimulatedConnection:
    """A `ProviderConnection` to the simulated providers, on simulated time."""

    def __init__(self, scheduler: Scheduler, provider: SimulatedProvider) -> None:
        self.learned_adjustments = LearnedAdjustments()
        self._scheduler, self._provider = scheduler, provider
        self._is_aborted = False
        self._depth = 0
        self._deadline = 0.0

    @contextlib.contextmanager
    def call_scope(self) -> Iterator[None]:
        if not self._depth:
            self._is_aborted = False
            self._deadline = self._scheduler.now + TOTAL_SECONDS
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextlib.contextmanager
    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> Iterator[ProviderResponse]:
        with self.call_scope():
            self.wait(0.0)
            yield self._provider.respond(self, url, headers, body, request_name)

    @contextlib.contextmanager
    def get(self, label: str, url: str, headers: Mapping[str, str]) -> Iterator[ProviderResponse]:
        raise NotImplementedError("No model list is asked for in a simulation.")

    def run_before_wait(self, action: Callable[[], object]) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        """Wait for something of the provider. Raises ProviderError when the call was aborted, or takes too long."""
        self._scheduler.wait("provider chunk", lambda: self._is_aborted, min(seconds, self.remaining_seconds()))
        if self._is_aborted:
            raise Failure.ABORTED.to_error("The request was stopped.")
        if self.remaining_seconds() <= 0:
            raise Failure.STALLED.to_error("No whole answer in time.")

    def sleep(self, seconds: float) -> None:
        with self.call_scope():
            self._scheduler.wait("retry delay", lambda: self._is_aborted, seconds)
            if self._is_aborted:
                raise Failure.ABORTED.to_error("The request was stopped.")

    def remaining_seconds(self) -> float:
        return self._deadline - self._scheduler.now if self._depth else TOTAL_SECONDS

    def abort(self) -> bool:
        if self._depth:
            self._is_aborted = True
        return bool(self._depth)

    def drain_response(self, response: ProviderResponse) -> None:
        for _ in response.chunks:
            pass
