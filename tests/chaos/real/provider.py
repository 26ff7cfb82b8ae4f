"""A model provider on a socket whose answers follow from the prompt and the seed, and which records what it served.

It speaks the protocols of the demo model and refuses what a strict provider refuses.
"""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import uvicorn

from local.demo_model.request_records import RequestRecord
from local.demo_model.response_stream import ResponsePace
from local.demo_model.scripted_answers import ScriptedError, ScriptedToolCall, ScriptStep
from local.demo_model.server import DemoModelServer
from local.listening_sockets import open_listener
from tests.chaos.evidence import ServedRequest
from tests.chaos.provider import BROWSER_CALLS, MARKER, SERVER_CALLS

FAULT_STEPS = {
    "overloaded": {"status": 529},
    "refuses": {"status": 400},
    "breaks off": {"after": 12, "cut": True},
    "fails in mid-text": {"after": 12, "error": ScriptedError()},
    "stalls": {"after": 12, "stall": 3600.0},
}


@dataclass(frozen=True)
class TurnScript:
    """What the provider answers to one request of one turn."""

    key: str
    name: str
    rounds: int
    seed: int


@dataclass
class SeededScripts:
    """Answers of all turns, by what their prompts say. The n-th request of a round may be disturbed."""

    fault_rate: float = 0.0
    served: dict[str, ServedRequest] = field(default_factory=dict)
    """Requests by the key of their script, which their record has."""
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Injected faults, by turn and kind."""
    _attempts: Counter[tuple[str, int]] = field(default_factory=Counter)

    def find_script(self, _api_key: str, prompt: str) -> TurnScript | None:
        """Find the script of the last prompt. One that was cancelled before its answer stands before it."""
        found = MARKER.findall(prompt.encode())
        if not found:
            return None
        name, rounds, seed = found[-1]
        return TurnScript(f"{name.decode()}/{len(self.served)}", name.decode(), int(rounds), int(seed))

    def take_step(self, script: TurnScript, answered_rounds: int) -> ScriptStep:
        number = answered_rounds + 1
        step = make_step(script, number)
        words = step.text.split()
        request = ServedRequest("", "anthropic", True, 100 + number, len(words), words)
        self._attempts[script.name, number] += 1
        draw = random.Random(f"{script.seed}/{script.name}/{number}/{self._attempts[script.name, number]}")
        if draw.random() < self.fault_rate:
            fault = draw.choice(tuple(FAULT_STEPS))
            self.faults[script.name, fault] += 1
            request.is_final = False
            step = step.model_copy(update=FAULT_STEPS[fault])
        self.served[script.key] = request
        return step


@dataclass
class AllRecords:
    """The records of the demo model, of which none is dropped."""

    records: list[RequestRecord] = field(default_factory=list)

    def add_record(self, record: RequestRecord) -> RequestRecord:
        self.records.append(record)
        return record


def make_step(script: TurnScript, number: int) -> ScriptStep:
    """Make the undisturbed answer of a round: words that occur once in the turn, then tool calls or the end."""
    draw = random.Random(f"{script.seed}/{script.name}/{number}")
    words = [f"{script.name}-{number}-{index}" for index in range(draw.randint(2, 8))]
    usage = {"input_tokens": 100 + number, "output_tokens": len(words)}
    calls: list[ScriptedToolCall] = []
    if number < script.rounds:
        chosen = draw.choices(BROWSER_CALLS + SERVER_CALLS, k=draw.randint(1, 3))
        calls = [ScriptedToolCall(name=name, input=dict(given)) for name, given in chosen]
    return ScriptStep(text=" ".join(words), tool_calls=tuple(calls), usage=usage, chunk_ms=draw.choice((1, 20, 150)))


@dataclass(frozen=True)
class RealProvider:
    url: str
    scripts: SeededScripts
    records: AllRecords

    def list_served(self, tenant: str) -> list[ServedRequest]:
        """List the requests of a tenant's turns, with the names that came with them."""
        found = []
        for record in self.records.records:
            if record.script is not None and record.script.startswith(tenant):
                request = self.scripts.served[record.script]
                request.name = record.request_name or ""
                found.append(request)
        return found

    def list_refused(self) -> list[str]:
        """List the requests that no provider would accept."""
        refused = [one for one in self.records.records if one.script is None and 400 <= one.status < 500]
        return [f"{record.request_name}: {record.status} {record.body}"[:400] for record in refused]

    def count_faults(self, tenants: tuple[str, ...]) -> Counter[tuple[str, str]]:
        counts = Counter[tuple[str, str]]()
        for (turn, kind), count in self.scripts.faults.items():
            if turn.startswith(tenants):
                counts[kind, "provider"] += count
        return counts


@contextlib.contextmanager
def run_provider() -> Iterator[RealProvider]:
    """Serve in a thread of this process."""
    demo = DemoModelServer(ResponsePace())
    scripts, records = SeededScripts(), AllRecords()
    demo.scripts, demo.records = scripts, records  # type: ignore[assignment]
    listener = open_listener(0)
    server = uvicorn.Server(uvicorn.Config(demo.make_app(), log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield RealProvider(f"http://127.0.0.1:{listener.getsockname()[1]}", scripts, records)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
