"""An MCP server in memory: it is slow, dies, forgets its sessions, and answers after nobody waits any more.

It takes the place of a session of the `mcp` package, whose calls are asynchronous. Nothing here really waits: a request
waits in simulated time.
"""

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderResponse
from tests.chaos.scheduler import Task

if TYPE_CHECKING:
    from tests.chaos.world import World

URL = "https://shop.example/mcp"
READING_TOOL, WRITING_TOOL = "count_stock", "place_order"
EFFECT_KEY_MEMBER = "dev.fermata/effect-key"
LOST_SESSION_TEXT = "There is no such session."
REFUSAL_TEXT = "The shop is closed."
SLOW_RATE = 0.1
SLOW_SECONDS = (5.0, 50.0)
"""Shorter than a caller waits."""
LATE_SECONDS = (61.0, 120.0)
"""Longer than a caller waits."""
REQUESTS_LOST, ANSWERS_LOST = ("unreachable",), ("cut", "cut at the end")
REFUSALS = ("rate limit", "overloaded", "refused", "error after text")


class _RunOver(BaseException):
    """The run is aborted, or its time is over."""


class SimulatedRun:
    """Takes the place of `CancellableRun`."""

    def __init__(self, server: "SimulatedMcpServer", seconds: float) -> None:
        self._server, self._seconds = server, seconds
        self._deadline = 0.0
        self._is_aborted = False

    def run(self, function: Callable[[], Awaitable[Any]]) -> Any:
        from fermata.mcp_sources.cancellable_run import RunAborted, RunTimedOut

        task = self._server.world.scheduler.current
        self._deadline = self._server.world.scheduler.now + self._seconds
        self._server.runs[task] = self
        coroutine: Any = function()
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        except _RunOver:
            raise (RunAborted if self._is_aborted else RunTimedOut) from None
        finally:
            coroutine.close()
            del self._server.runs[task]
        raise AssertionError("a simulated server lets nobody wait really")

    def wait(self, seconds: float) -> None:
        scheduler = self._server.world.scheduler
        scheduler.wait("mcp server", lambda: self._is_aborted, min(seconds, max(self._deadline - scheduler.now, 0.0)))
        if self._is_aborted or scheduler.now >= self._deadline:
            raise _RunOver

    def abort(self) -> None:
        self._is_aborted = True


@dataclass(frozen=True)
class CarriedOut:
    """One time that the server has done what a call asks for. `token` is what it answers."""

    tool: str
    effect_key: str
    token: str
    at: float


@dataclass
class SimulatedMcpServer:
    """The server, and what it has done.

    Attributes:
        sessions: Those that it knows, with when they began.
        is_stable: Whether it answers everything in time, and forgets nothing.
    """

    world: "World"
    is_stable: bool = False
    carried_out: list[CarriedOut] = field(default_factory=list)
    sessions: dict[str, float] = field(default_factory=dict)
    runs: dict[Task, SimulatedRun] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def make_run(self, seconds: float) -> SimulatedRun:
        return SimulatedRun(self, seconds)

    def forget_sessions(self) -> None:
        """Start anew, as after a deployment of the server."""
        self.sessions.clear()

    @asynccontextmanager
    async def open_session(self, _server: Any, kept: Any, _seconds: float) -> AsyncIterator["SimulatedMcpSession"]:
        """Take the place of `open_mcp_session`."""
        from fermata.agents.tool_sources.mcp_tools import McpAgreement

        session = SimulatedMcpSession(self, kept)
        if kept.agreement is None:
            session.ask("provider.mcp-list", lambda: None)
            kept.id = f"session-{next(self._numbers)}"
            self.sessions[kept.id] = self.world.scheduler.now
            kept.agreement = McpAgreement(kind="initialize", result={})
        yield session

    def carry_out(self, tool: str, effect_key: str) -> CarriedOut:
        done = CarriedOut(tool, effect_key, f"{tool}:{effect_key}", self.world.scheduler.now)
        self.carried_out.append(done)
        return done

    def open_connection(self, **_: Any) -> "contextlib.AbstractContextManager[EndingConnection]":
        """Take the place of `open_guarded_connection` for requests that end sessions."""
        return contextlib.nullcontext(EndingConnection(self))


class SimulatedMcpSession:
    """What the service calls of a `ClientSession`."""

    def __init__(self, server: SimulatedMcpServer, kept: Any) -> None:
        self._server, self._kept = server, kept

    async def list_tools(self, params: Any = None) -> Any:
        import mcp_types

        tools = [
            mcp_types.Tool(
                name=name,
                description=f"Use {name}.",
                inputSchema={"type": "object", "properties": {"sku": {"type": "string"}}},
                annotations=mcp_types.ToolAnnotations(readOnlyHint=name == READING_TOOL),
            )
            for name in (READING_TOOL, WRITING_TOOL)
        ]
        return self.ask("provider.mcp-list", lambda: mcp_types.ListToolsResult(tools=tools))

    async def send_request(self, request: Any, _result_type: Any) -> Any:
        import mcp_types

        asked = request.params.model_dump(by_alias=True)
        effect_key = asked["_meta"][EFFECT_KEY_MEMBER]

        def carry_out() -> Any:
            done = self._server.carry_out(asked["name"], effect_key)
            text = mcp_types.TextContent(type="text", text="Done.")
            return mcp_types.CallToolResult(content=[text], structuredContent={"token": done.token})

        return self.ask("provider.mcp", carry_out)

    def ask(self, point: str, answer: Callable[[], Any]) -> Any:
        """Send a request, and return what the server answers. `point` is where faults strike."""
        import httpx2
        from mcp.shared.exceptions import MCPError

        server, scheduler = self._server, self._server.world.scheduler
        run, draw = server.runs[scheduler.current], scheduler.random
        fault = server.world.faults.draw(point, scheduler.current.process.name)
        run.wait(draw.uniform(0.01, 0.2))
        if fault in REQUESTS_LOST:
            raise httpx2.ConnectError("The connection was refused.")
        if self._kept.id and self._kept.id not in server.sessions:
            self._kept.is_lost = True
            raise MCPError(code=-32600, message=LOST_SESSION_TEXT)
        if fault in REFUSALS:
            raise MCPError(code=-32000, message=REFUSAL_TEXT)
        if fault == "silence":
            late = draw.uniform(*LATE_SECONDS)
            scheduler.start(scheduler.network, answer, name="late mcp answer", delay=late)
            run.wait(late)
        is_slow = not server.is_stable and draw.random() < SLOW_RATE
        run.wait(draw.uniform(*SLOW_SECONDS) if is_slow else draw.uniform(0.0, 1.0))
        answered = answer()
        if fault in ANSWERS_LOST:
            raise httpx2.ReadError("The connection was lost.")
        run.wait(draw.uniform(0.0, 0.2))
        return answered


class EndingConnection:
    """A `ProviderConnection` that only ends sessions."""

    def __init__(self, server: SimulatedMcpServer) -> None:
        self._server = server

    @contextlib.contextmanager
    def request(self, _label: str, method: str, _url: str, headers: Any) -> Iterator[ProviderResponse]:
        assert method == "DELETE"
        scheduler = self._server.world.scheduler
        scheduler.switch("mcp server", 0.1)
        if self._server.world.faults.draw("provider.mcp-list", scheduler.current.process.name) in REQUESTS_LOST:
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        self._server.sessions.pop(headers["mcp-session-id"], None)
        yield ProviderResponse(200, {}, iter(()))

    def run_before_wait(self, action: Callable[[], object]) -> bool:
        return False

    def drain_response(self, response: ProviderResponse) -> None:
        for _ in response.chunks:
            pass
