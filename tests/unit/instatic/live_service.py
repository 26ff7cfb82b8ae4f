"""The service in this process: all functions behind one address, on moto, with a workflow that runs by itself."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from moto.core.botocore_stubber import BotocoreStubber

from fermata.aws.clock import Clock
from fermata.aws.resources import Resources
from fermata.turns.round.invocation import Invocation, build_epoch
from fermata.turns.round.run_turn_steps import run_turn_steps
from functions.api import app as api
from functions.credentials import app as credentials
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from tests.unit.turns.stage import FakeWorkflow, RecordingConnection, Stage
from tests.waiting import BACKSTOP_SECONDS

ROUTES = [route for function in (stream_turns, api, tool_result, credentials) for route in function.router.routes]


class AdjustableClock(Clock):
    """A clock that runs, and can be advanced."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def advance(self, seconds: float) -> None:
        self.ahead += seconds


@dataclass
class BackgroundWorkflow(FakeWorkflow):
    """Step Functions without delays: each state runs in the background as soon as it is entered."""

    resources: Resources | None = None
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="state"))
    failures: list[BaseException] = field(default_factory=list)
    _executions: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        super().start_execution(tenant, turn, n, hint=hint)
        self._enter((tenant, turn, n), hint, is_hold=False)

    def resume_execution(
        self, token: str, next_state: str, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        with self._lock:
            was_open = super().resume_execution(token, next_state, seconds=seconds, hint=hint)
        if was_open and next_state != "finish":
            self._enter(self._executions[token], hint, is_hold=next_state == "hold")
        return was_open

    def _enter(self, execution: tuple[str, str, int], hint: dict[str, Any] | None, *, is_hold: bool) -> None:
        tenant, turn, n = execution
        with self._lock:
            self._number += 1
            token = f"token-{self._number}"
            self.open_tokens.add(token)
            self._executions[token] = execution
            entered = f"2026-01-01T00:00:00.{self._number:06d}Z"
        invocation = Invocation(
            tenant, turn, n, token, build_epoch(n, entered, 0), f"owner of {token}", lambda: 900.0, hint, is_hold
        )
        self.pool.submit(self._run, invocation)

    def _run(self, invocation: Invocation) -> None:
        assert self.resources is not None
        connection = None if invocation.is_hold else RecordingConnection()
        try:
            run_turn_steps(self.resources, invocation, connection)
        except BaseException as failure:  # noqa: BLE001 - run_service reports it
            self.failures.append(failure)


def serialize_moto_requests(monkeypatch: Any) -> None:
    """Let moto handle one request at a time, because it is not thread-safe."""
    lock, process = threading.RLock(), BotocoreStubber.process_request

    def locked(self: BotocoreStubber, request: Any) -> Any:
        with lock:
            return process(self, request)

    monkeypatch.setattr(BotocoreStubber, "process_request", locked)


@contextmanager
def run_service(stage: Stage, monkeypatch: Any) -> Iterator[str]:
    """Run the service for a stage, whose turns then run by themselves. Yields its URL."""
    serialize_moto_requests(monkeypatch)
    workflow = BackgroundWorkflow(resources=stage.resources)
    stage.workflow = stage.resources.__dict__["workflow"] = workflow
    monkeypatch.setattr(stream_turns.router, "routes", ROUTES)
    monkeypatch.setattr(stream_turns, "get_resources", lambda: stage.resources)
    config = uvicorn.Config(stream_turns.app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="service", daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(BACKSTOP_SECONDS)
        workflow.pool.shutdown()
    assert workflow.failures == []
