"""A Messages server that says what a test tells it and refuses what the real one refuses."""

import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from local.demo_model.strict import Refused, check
from local.demo_model.wire import merged

Event = dict[str, Any]


def event(kind: str, **members: Any) -> Event:
    return {"type": kind, **members}


def started(**usage: Any) -> Event:
    return event("message_start", message={"id": "msg_1", "role": "assistant", "content": [], "usage": usage})


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Event]:
    """A content block: its start, its deltas and its stop."""
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def text(index: int, *parts: str) -> list[Event]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": part} for part in parts))


def tool(index: int, call_id: str, name: str, *parts: str) -> list[Event]:
    deltas = ({"type": "input_json_delta", "partial_json": part} for part in parts)
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas)


def stopped(reason: str | None, **usage: Any) -> list[Event]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [event("message_delta", delta=delta, usage=usage), event("message_stop")]


def sse(*events: Event | Sequence[Event]) -> bytes:
    """The events as bytes on the wire; lists among them are laid flat."""
    flat = [one for item in events for one in ([item] if isinstance(item, dict) else item)]
    lines = (f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in flat)
    return "".join(lines).encode()


def answer(*parts: str, stop: str = "end_turn") -> bytes:
    """A whole plain answer."""
    return sse(
        started(input_tokens=5, output_tokens=1), text(0, *(parts or ("Hello",))), stopped(stop, output_tokens=7)
    )


@dataclass
class Said:
    """One response: chunks of a body, or a status with a JSON body. `then` runs after the chunks, before the end."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    then: Callable[[], object] | None = None
    cut: bool = False


class StrictAnthropic:
    """`say` queues responses, `bodies` holds what was asked. A request the real API refuses gets its 400."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self.refusals: list[str] = []
        self._responses: deque[Said] = deque()
        self._thoughts: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def say(self, *chunks: bytes) -> None:
        self._responses.append(Said(chunks))

    def do(self, said: Said) -> None:
        self._responses.append(said)

    def fail(self, status: int, kind: str = "api_error", message: str = "no", **headers: str) -> None:
        body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
        self._responses.append(Said([body], status, {name.replace("_", "-"): value for name, value in headers.items()}))

    def respond(self, headers: dict[str, str], raw: bytes) -> Said:
        body = json.loads(raw)
        self.headers.append(headers)
        self.bodies.append(body)
        try:
            check(headers, body)
            self._check_thoughts(body)
        except Refused as refused:
            self.refusals.append(refused.message)
            return Said([json.dumps(refused.body()).encode()], refused.status)
        said = self._responses.popleft()
        self._remember(b"".join(said.chunks))
        return said

    def _remember(self, stream: bytes) -> None:
        """The thinking that went out: it may only come back exactly so."""
        open_blocks: dict[int, dict[str, Any]] = {}
        for line in stream.decode("utf-8", "ignore").splitlines():
            one = json.loads(line[6:]) if line.startswith("data: {") else {}
            if one.get("type") == "content_block_start":
                open_blocks[one["index"]] = dict(one["content_block"])
            elif one.get("type") == "content_block_delta":
                delta = one["delta"]
                for name in ("thinking", "signature"):
                    if name in delta:
                        open_blocks[one["index"]][name] = open_blocks[one["index"]].get(name, "") + delta[name]
        self._thoughts += [one for one in open_blocks.values() if "thinking" in one["type"]]

    def _check_thoughts(self, body: dict[str, Any]) -> None:
        for turn in merged(body["messages"]):
            for one in turn.blocks:
                if one["type"] in ("thinking", "redacted_thinking") and one not in self._thoughts:
                    raise Refused("`thinking` blocks cannot be modified. They must remain as they were.")

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["StrictAnthropic"]:
        server = cls()
        thread = threading.Thread(target=server._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server._server.shutdown()
            server._server.server_close()
            thread.join(5)


def _handler(strict: StrictAnthropic) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            strict.connections.append(self.connection)
            raw = self.rfile.read(int(self.headers["content-length"]))
            said = strict.respond({name.lower(): value for name, value in self.headers.items()}, raw)
            if said.before:
                said.before()
            with contextlib.suppress(OSError):
                self._send(said)

        def _send(self, said: Said) -> None:
            kind = "text/event-stream" if said.status == 200 else "application/json"
            self.send_response(said.status)
            for name, value in {"content-type": kind, "transfer-encoding": "chunked", **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for chunk in said.chunks:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
            if said.then:
                said.then()
            if said.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
