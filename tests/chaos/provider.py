"""A simulated model provider: scripted answers, streamed piece by piece, and a record of every request it served.

It takes the place of a driver. What it answers depends on the request alone, so a request that is repeated gets the
same answer, as the engine may repeat one after a crash.
"""

import contextlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, TextDelta, TokenUsage
from tests.chaos.scheduler import Scheduler

MARKER = re.compile(r"\[turn (\w+) rounds (\d+) seed (\d+)\]")
BROWSER_CALLS = (("deleteNode", {"nodeId": "n1"}), ("getNodeHtml", {"nodeId": "n1"}), ("moveNode", {"nodeId": "n1"}))
SERVER_CALLS = (("list_documents", {}), ("list_tokens", {}))
PROVIDER_FAULTS = ("overloaded", "breaks off", "stalls", "refuses")


def make_prompt(name: str, rounds: int, seed: int) -> str:
    """Return a prompt whose answers take that many rounds."""
    return f"[turn {name} rounds {rounds} seed {seed}] Do it."


@dataclass
class ServedRequest:
    """One request that arrived at the provider."""

    turn: str
    round: int
    is_final: bool
    """Whether a whole response was produced, rather than an error."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass
class SimulatedProvider:
    scheduler: Scheduler
    fault_rate: float = 0.0
    served: list[ServedRequest] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """What a strict provider would have refused about a request; must stay empty."""
    faults_injected: dict[str, int] = field(default_factory=dict)
    name: str = "anthropic"

    def stream(self, request: ModelRequest, connection: Any, endpoint: Any) -> Iterator[TextDelta | ModelResponse]:
        self._check(request)
        name, rounds, seed, number = self._locate(request)
        served = ServedRequest(name, number, is_final=False)
        self.served.append(served)
        self._wait(connection, 0.2)
        fault = self._draw_fault()
        if fault in ("overloaded", "refuses"):
            raise ProviderError(f"provider_{fault}", f"The provider {fault}.", retryable=fault == "overloaded")
        draw = random.Random(f"{seed}/{number}")
        words = [f"{name}-{number}-{index} " for index in range(draw.randint(1, 6))]
        served.prompt_tokens, served.completion_tokens = 100 + number, len(words)
        for index, word in enumerate(words):
            self._wait(connection, draw.uniform(0.01, 0.6))
            if fault == "stalls" and index == len(words) // 2:
                self._wait(connection, 121.0)
                raise ProviderError("provider_stalled", "The provider sent nothing for 120 s.", retryable=True)
            yield TextDelta(text=word)
            if fault == "breaks off":
                raise ProviderError("provider_unreachable", "The connection was lost.", retryable=True)
        served.is_final = True
        yield self._finish(draw, request, words, number, rounds, served)

    def _finish(
        self,
        draw: random.Random,
        request: ModelRequest,
        words: list[str],
        number: int,
        rounds: int,
        served: ServedRequest,
    ) -> ModelResponse:
        tokens = TokenUsage(prompt=served.prompt_tokens, completion=served.completion_tokens)
        text = TextBlock(text="".join(words))
        if number >= rounds or not request.call_tools:
            return ModelResponse(blocks=(text,), stop=FinishReason.END, tokens=tokens)
        calls = tuple(
            ToolCallBlock(tool_call_id=f"call_{served.turn}_{number}_{index}", tool_name=name, input=given)
            for index, (name, given) in enumerate(draw.choices(BROWSER_CALLS + SERVER_CALLS, k=draw.randint(1, 3)))
        )
        return ModelResponse(blocks=(text, *calls), stop=FinishReason.TOOL_CALLS, tokens=tokens)

    def _wait(self, connection: Any, seconds: float) -> None:
        self.scheduler.wait("provider chunk", lambda: connection.is_aborted, seconds)
        if connection.is_aborted:
            raise ProviderError("provider_closed", "The request was stopped.", retryable=False)

    def _draw_fault(self) -> str | None:
        if self.scheduler.random.random() >= self.fault_rate:
            return None
        fault = self.scheduler.random.choice(PROVIDER_FAULTS)
        self.faults_injected[fault] = self.faults_injected.get(fault, 0) + 1
        return fault

    @staticmethod
    def _locate(request: ModelRequest) -> tuple[str, int, int, int]:
        """Return turn, its rounds, its seed, and the number of the round that is asked for."""
        number = 1
        for message in reversed(request.messages):
            texts = [block.text for block in message.content if isinstance(block, TextBlock)]
            match = MARKER.search(" ".join(texts)) if message.role == "user" else None
            if match:
                return match[1], int(match[2]), int(match[3]), number
            number += message.role == "assistant"
        raise AssertionError("the request has no prompt of the simulation")

    def _check(self, request: ModelRequest) -> None:
        """What every provider refuses: a call without its result, a result without its call, an empty history."""
        open_calls: list[str] = []
        for message in request.messages:
            if message.role == "user" and open_calls:
                self.refusals.append(f"calls without results: {open_calls}")
                open_calls = []
            if message.role == "tool" and message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
            elif message.role == "tool":
                self.refusals.append(f"result without a call: {message.tool_call_id}")
            open_calls += [block.tool_call_id for block in message.content if isinstance(block, ToolCallBlock)]
            if not message.content:
                self.refusals.append(f"empty message of {message.role}")
        if open_calls or not request.messages or request.messages[0].role != "user":
            self.refusals.append(f"history begins or ends wrongly: {open_calls}")
        if request.messages[-1].role == "assistant":
            self.refusals.append("history ends with an answer")


class SimulatedConnection:
    """The part of a ProviderConnection that the engine uses, on simulated time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.is_aborted = False
        self._depth = 0

    @contextlib.contextmanager
    def call_scope(self) -> Iterator[None]:
        if not self._depth:
            self.is_aborted = False
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def sleep(self, seconds: float) -> None:
        self._scheduler.wait("retry delay", lambda: self.is_aborted, seconds)
        if self.is_aborted:
            raise ProviderError("provider_closed", "The request was stopped.", retryable=False)

    def remaining_seconds(self) -> float:
        return 480.0

    def abort(self) -> bool:
        if self._depth:
            self.is_aborted = True
        return bool(self._depth)
