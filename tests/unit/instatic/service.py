"""The service in this process: every door behind one address, on moto, with a workflow that goes on by itself."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from moto.core.botocore_stubber import BotocoreStubber

from fermata.aws.clock import Clock
from fermata.aws.desk import Desk
from fermata.turns import advancing
from fermata.turns.work import Wake, epoch
from functions.api import app as api
from functions.stream import app as stream
from functions.tool_result import app as tool_result
from tests.unit.turns.stage import HandLine, HandWorkflow, Stage

ROUTES = (*stream.ROUTES, *api.ROUTES, *tool_result.ROUTES)


class LeapClock(Clock):
    """Goes on as clocks do, and can be put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def go_on(self, seconds: float) -> None:
        self.ahead += seconds


@dataclass
class LiveWorkflow(HandWorkflow):
    """Step Functions without a wait: each state runs in the background as soon as somebody goes on to it."""

    desk: Desk | None = None
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, thread_name_prefix="state"))
    failures: list[BaseException] = field(default_factory=list)
    _places: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, tenant: str, turn: str, n: int) -> None:
        super().start(tenant, turn, n)
        self._enter((tenant, turn, n), None, holds=False)

    def go_on(self, token: str, goal: str, *, seconds: int = 0, hint: dict[str, Any] | None = None) -> bool:
        with self._lock:
            was_open = super().go_on(token, goal, seconds=seconds, hint=hint)
        if was_open and goal != "finish":
            self._enter(self._places[token], hint, holds=goal == "hold")
        return was_open

    def _enter(self, place: tuple[str, str, int], hint: dict[str, Any] | None, *, holds: bool) -> None:
        tenant, turn, n = place
        with self._lock:
            self._number += 1
            token = f"token-{self._number}"
            self.open.add(token)
            self._places[token] = place
            entered = f"2026-01-01T00:00:00.{self._number:06d}Z"
        wake = Wake(tenant, turn, n, token, epoch(n, entered, 0), f"owner of {token}", lambda: 900.0, hint, holds)
        self.pool.submit(self._run, wake)

    def _run(self, wake: Wake) -> None:
        assert self.desk is not None
        line = None if wake.holds else HandLine()
        try:
            advancing.advance(self.desk, wake, line)
        except BaseException as failure:  # noqa: BLE001 - kept for the test to see: nobody else would
            self.failures.append(failure)


def one_at_a_time(monkeypatch: Any) -> None:
    """Moto is not made for threads: its requests wait for each other."""
    lock, process = threading.RLock(), BotocoreStubber.process_request

    def locked(self: BotocoreStubber, request: Any) -> Any:
        with lock:
            return process(self, request)

    monkeypatch.setattr(BotocoreStubber, "process_request", locked)


@contextmanager
def running(stage: Stage, monkeypatch: Any) -> Iterator[str]:
    """The address of all doors; the stage's turns run by themselves from here on."""
    one_at_a_time(monkeypatch)
    workflow = LiveWorkflow(desk=stage.desk)
    stage.workflow = stage.desk.__dict__["workflow"] = workflow
    monkeypatch.setattr(stream, "ROUTES", ROUTES)
    monkeypatch.setattr(stream, "open_desk", lambda: stage.desk)
    config = uvicorn.Config(stream.app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
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
        thread.join(10)
        workflow.pool.shutdown()
    assert workflow.failures == []
