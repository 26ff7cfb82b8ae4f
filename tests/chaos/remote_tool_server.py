"""A tenant's server with a remote tool: it answers at once, or 202 and the result later, or even earlier."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from fermata.drivers.adjustments import LearnedAdjustments
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.signed_requests.signature import sign_request
from tests.chaos.scheduler import Process

if TYPE_CHECKING:
    from tests.chaos.world import World

TOOL_NAME = "pim.lookup"
TOOL_ALIAS = "pim_lookup"
"""The name that models see."""
MANIFEST = {
    "name": TOOL_NAME,
    "description": "Finds a product.",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "required": ["token"]},
    "capability": "read",
    "timeoutMs": 5000,
    "retryPolicy": {"maxAttempts": 3, "backoffMs": 500},
    "idempotent": True,
}
URL = "https://pim.example/lookup"
LATER_RATE = 0.7
EARLY_RATE = 0.3
"""How often a result that comes later is sent before the 202 has arrived."""
REPEAT_RATE = 0.4
OTHER_RESULT_RATE = 0.15
MAX_POSTS = 40


@dataclass(frozen=True)
class PostedResult:
    """A result that the server has posted, and how it was answered."""

    bridge: str
    token: str
    status: int


@dataclass
class RemoteToolServer:
    """Whatever happens to a call, its repetitions are answered with the result of the first."""

    world: "World"
    signing_secret: str = ""
    posted: list[PostedResult] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    """What the result of each call says, by the call's id."""

    def open_connection(self, **_: Any) -> "contextlib.AbstractContextManager[ToolConnection]":
        """Take the place of `open_guarded_connection`."""
        return contextlib.nullcontext(ToolConnection(self))

    def respond(self, headers: Mapping[str, str], body: bytes) -> ProviderResponse:
        scheduler, draw = self.world.scheduler, self.world.scheduler.random
        fault = self.world.faults.draw("provider.remote-tool", "round")
        if fault in ("unreachable", "silence"):
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        if fault in ("rate limit", "overloaded"):
            return ProviderResponse(503, {}, iter([b"later"]))
        call_id = headers["webhook-id"]
        is_new = call_id not in self.tokens
        token = self.tokens.setdefault(call_id, f"token-{len(self.tokens)}")
        is_later = sum(call_id.encode()) % 10 < LATER_RATE * 10
        if is_later and is_new:
            delay = 0.0 if draw.random() < EARLY_RATE else draw.uniform(0.0, 40.0)
            callback = json.loads(body)["callback"]
            post = partial(self._post_until_taken, callback, token)
            scheduler.start(Process("remote-tool"), post, name="remote-tool", delay=delay)
        scheduler.switch("remote tool", draw.uniform(0.0, 3.0))
        if fault in ("cut", "cut at the end", "error after text"):
            raise Failure.UNREACHABLE.to_error("The connection was lost.")
        answer = (202, b"") if is_later else (200, json.dumps({"data": {"token": token}}).encode())
        return ProviderResponse(answer[0], {}, iter([answer[1]]))

    def _post_until_taken(self, callback: Mapping[str, Any], token: str) -> None:
        scheduler, draw = self.world.scheduler, self.world.scheduler.random
        for _ in range(MAX_POSTS):
            status = self._post(callback, token)
            if status in (200, 404, 409) and draw.random() >= REPEAT_RATE:
                break
            scheduler.switch("remote tool", draw.uniform(0.5, 5.0))
        if draw.random() < OTHER_RESULT_RATE:
            self._post(callback, f"{token}-other")

    def _post(self, callback: Mapping[str, Any], token: str) -> int:
        body = {name: callback[name] for name in ("tenant", "bridgeId", "requestId")} | {"data": {"token": token}}
        now = self.world.scheduler.now
        signed = sign_request([self.signing_secret], "result", now, json.dumps(body).encode())
        answer = self.world.cloud.request("tool_result", "POST", "tool-callbacks", "", body, **_as_members(signed))
        self.posted.append(PostedResult(callback["bridgeId"], token, answer.status))
        return answer.status


def _as_members(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


class ToolConnection:
    """A `ProviderConnection` to the server, on simulated time."""

    def __init__(self, server: RemoteToolServer) -> None:
        self.learned_adjustments = LearnedAdjustments()
        self._server, self._is_aborted = server, False

    @contextlib.contextmanager
    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> Iterator[ProviderResponse]:
        self.sleep(0.1)
        yield self._server.respond(headers, body)

    def sleep(self, seconds: float) -> None:
        self._server.world.scheduler.wait("remote tool", lambda: self._is_aborted, seconds)
        if self._is_aborted:
            raise Failure.ABORTED.to_error("The request was stopped.")

    def abort(self) -> bool:
        self._is_aborted = True
        return True
