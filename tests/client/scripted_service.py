"""A small HTTP server that speaks the chat API from a script, and misbehaves on request.

It is a real server on a real socket, because what it is there to test are connections that break.
"""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = dict[str, Any]
BASE = "/admin/api/ai"
BRIDGE = "bridge-1"
UNDONE_BRIDGE = "bridge-0"
"""A turn whose edits can be taken back; the script is what that streams."""
DROP_CONNECTION = "lose"
"""A fault for an answer or a start: do the work, then drop the connection without a response."""
TERMINAL_EVENTS = ("done", "error", "cancelled")


def number_events(*events: Event) -> list[Event]:
    """Events with rising numbers that have gaps, as internal events leave them."""
    return [{**event, "seq": 1 + 2 * index} for index, event in enumerate(events)]


def ready_event() -> Event:
    return {"type": "bridgeReady", "bridgeId": BRIDGE}


def text_event(said: str) -> Event:
    return {"type": "text", "text": said}


def tool_call_event(number: int, name: str = "insertHtml", given: Any = None) -> Event:
    return {"type": "toolCall", "toolCallId": f"c{number}", "toolName": name, "input": given, "status": "pending"}


def tool_request_event(number: int, name: str = "insertHtml", given: Any = None, effect: str | None = None) -> Event:
    return {
        "type": "toolRequest",
        "requestId": f"r{number}",
        "toolCallId": f"c{number}",
        "toolName": name,
        "input": given if given is not None else {},
        "effectKey": effect or f"turn/{number}",
        "deadline": "2030-01-01T00:00:00Z",
    }


def tool_result_event(number: int, *, ok: bool = True, name: str = "insertHtml") -> Event:
    extra = {} if ok else {"error": "it broke"}
    return {"type": "toolResult", "toolCallId": f"c{number}", "toolName": name, "ok": ok, **extra}


def context_event() -> Event:
    return {"type": "context", "promptTokens": 10, "contextTokens": 10}


def usage_event() -> Event:
    return {"type": "usage", "promptTokens": 20, "completionTokens": 5, "costUsd": 0.5}


def done_event() -> Event:
    return {"type": "done"}


def undo_events(*outcomes: bool) -> list[Event]:
    """An undo of as many edits, the newest first; the ones that are not true meet somebody else's."""
    events: list[Event] = [{**ready_event(), "undoes": UNDONE_BRIDGE}]
    undone, skipped = [], []
    for number, ok in enumerate(outcomes, 1):
        key = f"{UNDONE_BRIDGE}/{len(outcomes) + 1 - number}/0"
        patch = {"patch": {"edit": number}}
        events += [
            tool_call_event(number, "restore", patch),
            {**tool_request_event(number, "restore", patch), "undoes": key},
        ]
        events.append(tool_result_event(number, ok=ok, name="restore") | ({} if ok else {"conflict": True}))
        undone += [key] if ok else []
        skipped += [] if ok else [{"effectKey": key, "reason": "it broke"}]
    return number_events(*events, usage_event(), done_event() | {"report": {"undone": undone, "skipped": skipped}})


def three_tool_turn() -> list[Event]:
    """Text, two browser tools in one round, a third that fails, and a last word."""
    return number_events(
        ready_event(),
        text_event("I will "),
        text_event("change two things – 那个🦀.\u2028"),
        tool_call_event(1),
        tool_call_event(2, "applyCss"),
        context_event(),
        tool_request_event(1),
        tool_result_event(1),
        tool_request_event(2, "applyCss"),
        tool_result_event(2, name="applyCss"),
        text_event("And one more."),
        tool_call_event(3, "deleteNode"),
        context_event(),
        tool_request_event(3, "deleteNode"),
        tool_result_event(3, ok=False, name="deleteNode"),
        text_event("Done."),
        context_event(),
        usage_event(),
        done_event(),
    )


@dataclass
class ServiceScript:
    """What the service knows and how it misbehaves; each deque is used up one connection or call at a time."""

    events: list[Event]
    cuts: deque[int | None] = field(default_factory=deque)
    """Per stream: cut it hard after so many bytes."""
    ends: deque[int | None] = field(default_factory=deque)
    """Per stream: end it cleanly after so many events."""
    start_faults: deque[int | str] = field(default_factory=deque)
    answer_faults: deque[int | str | None] = field(default_factory=deque)
    bridge_states: deque[Event] = field(default_factory=deque)
    times: Callable[[int], int] = lambda seq: 1
    """How often an event is written."""
    ignore_after: bool = False
    """Replay everything on every connection."""
    heartbeats_only: bool = False
    silent: bool = False
    gates: dict[int, threading.Event] = field(default_factory=dict)
    """Events from this number on wait for the gate."""
    answered: dict[str, Any] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    """The `after` of every stream that was opened."""
    cancels: int = 0

    def visible(self) -> list[Event]:
        """The log so far: nothing comes after a request that nobody has answered."""
        shown = []
        for event in self.events:
            gate = next((gate for seq, gate in self.gates.items() if event["seq"] >= seq and not gate.is_set()), None)
            if gate is not None:
                return shown
            shown.append(event)
            if event["type"] == "toolRequest" and event["requestId"] not in self.answered and not self.cancels:
                return shown
            if event["type"] in TERMINAL_EVENTS:
                return shown
        return shown

    def pending(self) -> list[Event]:
        last = self.visible()[-1]
        return [last] if last["type"] == "toolRequest" and last["requestId"] not in self.answered else []

    def cancel(self) -> None:
        shown = self.visible()
        self.cancels += 1
        if self.cancels == 1:
            self.events[:] = [*shown, {"type": "cancelled", "seq": shown[-1]["seq"] + 1}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    script: ServiceScript
    changed: threading.Condition

    def log_message(self, *_: Any) -> None:
        """Tests read what happened from the script."""

    def do_GET(self) -> None:
        self.note(None)
        path, _, query = self.path.removeprefix(BASE).partition("?")
        if path == f"/bridges/{BRIDGE}/events":
            self.stream(int(query.removeprefix("after=")))
        elif path == f"/bridges/{BRIDGE}":
            self.reply(200, self.bridge())
        elif path.startswith("/conversations/"):
            self.reply(200, {"conversation": {"id": "conv-9", "scope": "content"}})
        else:
            self.reply(404, {"error": "Not found"})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.note(body)
        path = self.path.removeprefix(BASE)
        if self.headers.get("authorization") != "Bearer good":
            self.reply(401, {"error": "Unauthorized"})
        elif path == "/conversations":
            self.reply(201, {"conversation": {"id": "conv-1", **body}})
        elif path.startswith("/chat/") or path == f"/bridges/{UNDONE_BRIDGE}/undo":
            self.start()
        elif path == "/tool-result":
            self.answer(body)
        elif path == f"/bridges/{BRIDGE}/cancel":
            with self.changed:
                self.script.cancel()
                self.changed.notify_all()
            self.reply(200, {"status": "cancelled"})
        else:
            self.reply(404, {"error": "Not found"})

    def start(self) -> None:
        fault = self.script.start_faults.popleft() if self.script.start_faults else None
        if fault == DROP_CONNECTION:
            self.hang_up()
        elif fault is not None:
            self.reply(int(fault), {"error": f"fault {fault}"}, {"retry-after": "0"})
        elif self.headers.get("accept") == "application/json":
            self.reply(202, {"bridgeId": BRIDGE})
        else:
            self.stream(0)

    def answer(self, body: dict[str, Any]) -> None:
        fault = self.script.answer_faults.popleft() if self.script.answer_faults else None
        self.script.answers.append(body)
        if fault is not None and fault != DROP_CONNECTION:
            self.reply(int(fault), {"error": f"fault {fault}"}, {"retry-after": "0"})
            return
        with self.changed:
            known = self.script.answered.setdefault(body["requestId"], body["result"])
            self.changed.notify_all()
        if fault == DROP_CONNECTION:
            self.hang_up()
        elif known != body["result"]:
            self.reply(409, {"error": "answered differently"})
        else:
            self.reply(200, {"ok": True})

    def bridge(self) -> dict[str, Any]:
        with self.changed:
            shown = self.script.visible()
            state = self.script.bridge_states.popleft() if self.script.bridge_states else {}
            return {
                "bridgeId": BRIDGE,
                "status": "paused" if self.script.pending() else "running",
                "seq": shown[-1]["seq"],
                "round": 1,
                "pending": self.script.pending(),
                **state,
            }

    def stream(self, after: int) -> None:
        script = self.script
        script.streams.append(after)
        cut = script.cuts.popleft() if script.cuts else None
        ends = script.ends.popleft() if script.ends else None
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if script.silent:
            self.wait_for_the_end()
            return
        sent = 0
        for data in self.lines(0 if script.ignore_after else after, ends):
            piece = data if cut is None else data[: cut - sent]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"")
            sent += len(piece)
            if cut is not None and sent >= cut:
                self.hang_up()
                return
        self.wfile.write(b"0\r\n\r\n")

    def lines(self, after: int, ends: int | None) -> Iterator[bytes]:
        """The lines of one stream: heartbeats while nothing happens, and every event as often as asked."""
        if self.script.heartbeats_only:
            yield b"\n" * 3
            return
        seen, count = after, 0
        while True:
            with self.changed:
                fresh = [event for event in self.script.visible() if event["seq"] > seen]
                if not fresh:
                    self.changed.wait(0.05)
                    fresh = [event for event in self.script.visible() if event["seq"] > seen]
            if not fresh:
                yield b"\n"
            for event in fresh:
                seen = event["seq"]
                yield (json.dumps(event, ensure_ascii=False).encode() + b"\n") * self.script.times(seen)
                count += 1
                if event["type"] in TERMINAL_EVENTS or count == ends:
                    return

    def wait_for_the_end(self) -> None:
        """Say nothing until the client has had enough."""
        self.connection.settimeout(10)
        self.rfile.read(1)
        self.close_connection = True

    def note(self, body: Any) -> None:
        self.script.requests.append((self.command, self.path.removeprefix(BASE), body))

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that went away is what these tests are about."""


@contextmanager
def serve_script(script: ServiceScript) -> Iterator[str]:
    """The address of a service that follows the script."""
    handler = type("Scripted", (Handler,), {"script": script, "changed": threading.Condition()})
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
