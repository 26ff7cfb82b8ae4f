"""An HTTP server that plays the chat API by a script, with the faults that the script asks for.

It listens on a socket, because it tests connections that break.
"""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from fermata_client.service.json_types import Event
from tests.client.scripted_events import BRIDGE, UNDONE_BRIDGE
from tests.threaded_server import ThreadedServer, serve_in_thread
from tests.waiting import BACKSTOP_SECONDS

API_BASE_PATH = "/admin/api/ai"
DROP_CONNECTION = "drop"
"""Fault of a start or an answer: the request takes effect, and the connection is closed without a response."""
TERMINAL_EVENTS = ("done", "error", "cancelled")


@dataclass
class ServiceScript:
    """State and faults of the service. Each deque is consumed, one element for each connection or request."""

    events: list[Event]
    cut_after_bytes: deque[int | None] = field(default_factory=deque)
    """For each stream: close the connection after so many bytes."""
    end_after_events: deque[int | None] = field(default_factory=deque)
    """For each stream: end it properly after so many events."""
    start_faults: deque[int | str] = field(default_factory=deque)
    answer_faults: deque[int | str | None] = field(default_factory=deque)
    bridge_states: deque[Event] = field(default_factory=deque)
    count_copies: Callable[[int], int] = lambda seq: 1
    """How often the event of a number is written."""
    restored_events: list[Event] = field(default_factory=list)
    """The log after the first stream, of which the second one finds the first event only: it was restored."""
    ignores_after: bool = False
    """Every connection replays all events."""
    sends_only_heartbeats: bool = False
    is_silent: bool = False
    gates: dict[int, threading.Event] = field(default_factory=dict)
    """Events from this number on wait until the gate is set."""
    answers_by_path: dict[str, Any] = field(default_factory=dict)
    """What a GET of these paths is answered, whatever else is there."""
    result_by_request: dict[str, Any] = field(default_factory=dict)
    posted_answers: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    stream_starts: list[int] = field(default_factory=list)
    """The `after` of each stream that was opened."""
    cancel_count: int = 0

    def visible_events(self) -> list[Event]:
        """Return the log so far, which ends at the first tool request without an answer."""
        visible: list[Event] = []
        for event in self.events:
            if any(event["seq"] >= seq and not gate.is_set() for seq, gate in self.gates.items()):
                return visible
            visible.append(event)
            if self._is_unanswered(event) and not self.cancel_count:
                return visible
            if event["type"] in TERMINAL_EVENTS:
                return visible
        return visible

    def pending_requests(self) -> list[Event]:
        last = self.visible_events()[-1]
        return [last] if self._is_unanswered(last) else []

    def cancel(self) -> None:
        visible = self.visible_events()
        self.cancel_count += 1
        if self.cancel_count == 1:
            self.events[:] = [*visible, {"type": "cancelled", "seq": visible[-1]["seq"] + 1}]

    def _is_unanswered(self, event: Event) -> bool:
        return event["type"] == "toolRequest" and event["requestId"] not in self.result_by_request


class ScriptHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    script: ServiceScript
    changed: threading.Condition

    def log_message(self, *_: Any) -> None:
        """Log nothing: tests read the script."""

    def do_GET(self) -> None:
        self.record_request(None)
        path, _, query = self.path.removeprefix(API_BASE_PATH).partition("?")
        if path in self.script.answers_by_path:
            self.send_json(200, self.script.answers_by_path[path])
        elif path == f"/bridges/{BRIDGE}/events":
            self.send_stream(int(query.removeprefix("after=")))
        elif path == f"/bridges/{BRIDGE}":
            self.send_json(200, self.bridge_state())
        elif path == f"/bridges/{UNDONE_BRIDGE}":
            self.send_json(200, {"bridgeId": UNDONE_BRIDGE, "status": "done", "seq": 9, "round": 1, "pending": []})
        elif path.startswith("/conversations/"):
            self.send_json(200, {"conversation": {"id": "conv-9", "scope": "content"}})
        else:
            self.send_json(404, {"error": "Not found"})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else {}
        self.record_request(body)
        path = self.path.removeprefix(API_BASE_PATH)
        if self.headers.get("authorization") != "Bearer good":
            self.send_json(401, {"error": "Unauthorized"})
        elif path == "/conversations":
            self.send_json(201, {"conversation": {"id": "conv-1", **body}})
        elif path.startswith("/chat/") or path == f"/bridges/{UNDONE_BRIDGE}/undo":
            self.start_turn()
        elif path == "/tool-result":
            self.take_answer(body)
        elif path == f"/bridges/{BRIDGE}/cancel":
            with self.changed:
                self.script.cancel()
                self.changed.notify_all()
            self.send_json(200, {"status": "cancelled"})
        else:
            self.send_json(404, {"error": "Not found"})

    def start_turn(self) -> None:
        fault = self.script.start_faults.popleft() if self.script.start_faults else None
        if fault == DROP_CONNECTION:
            self.close_now()
        elif fault is not None:
            self.send_json(int(fault), {"error": f"fault {fault}"}, {"retry-after": "0"})
        elif self.headers.get("accept") == "application/json":
            self.send_json(202, {"bridgeId": BRIDGE})
        else:
            self.send_stream(0)

    def take_answer(self, body: dict[str, Any]) -> None:
        fault = self.script.answer_faults.popleft() if self.script.answer_faults else None
        self.script.posted_answers.append(body)
        if fault is not None and fault != DROP_CONNECTION:
            self.send_json(int(fault), {"error": f"fault {fault}"}, {"retry-after": "0"})
            return
        with self.changed:
            first_result = self.script.result_by_request.setdefault(body["requestId"], body["result"])
            self.changed.notify_all()
        if fault == DROP_CONNECTION:
            self.close_now()
        elif first_result != body["result"]:
            self.send_json(409, {"error": "answered differently"})
        else:
            self.send_json(200, {"ok": True})

    def bridge_state(self) -> dict[str, Any]:
        with self.changed:
            visible = self.script.visible_events()
            state = self.script.bridge_states.popleft() if self.script.bridge_states else {}
            return {
                "bridgeId": BRIDGE,
                "status": "paused" if self.script.pending_requests() else "running",
                "seq": visible[-1]["seq"],
                "round": 1,
                "pending": self.script.pending_requests(),
                **state,
            }

    def send_stream(self, after: int) -> None:
        script = self.script
        script.stream_starts.append(after)
        if script.restored_events and len(script.stream_starts) == 2:
            script.events[:] = script.restored_events
            self.send_json(400, {"error": "No such event.", "code": "logRewound", "lastSeq": script.events[0]["seq"]})
            return
        max_bytes = script.cut_after_bytes.popleft() if script.cut_after_bytes else None
        max_events = script.end_after_events.popleft() if script.end_after_events else None
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if script.is_silent:
            self.wait_for_client()
            return
        sent_bytes = 0
        for line in self.stream_lines(0 if script.ignores_after else after, max_events):
            chunk = line if max_bytes is None else line[: max_bytes - sent_bytes]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b"")
            sent_bytes += len(chunk)
            if max_bytes is not None and sent_bytes >= max_bytes:
                self.close_now()
                return
        self.wfile.write(b"0\r\n\r\n")

    def stream_lines(self, after: int, max_events: int | None) -> Iterator[bytes]:
        """Yield the lines of one stream, with heartbeats while there are no new events."""
        if self.script.sends_only_heartbeats:
            yield b"\n" * 3
            return
        last_seq, event_count = after, 0
        while True:
            events = self.wait_for_events(last_seq)
            if not events:
                yield b"\n"
            for event in events:
                last_seq = event["seq"]
                line = json.dumps(event, ensure_ascii=False).encode() + b"\n"
                yield line * self.script.count_copies(last_seq)
                event_count += 1
                if event["type"] in TERMINAL_EVENTS or event_count == max_events:
                    return

    def wait_for_events(self, last_seq: int) -> list[Event]:
        """Return the events after a number, for which it waits a short time."""

        def newer_events() -> list[Event]:
            return [event for event in self.script.visible_events() if event["seq"] > last_seq]

        with self.changed:
            if not newer_events():
                self.changed.wait(0.05)
            return newer_events()

    def wait_for_client(self) -> None:
        """Send nothing until the client closes the connection."""
        self.connection.settimeout(BACKSTOP_SECONDS)
        self.rfile.read(1)
        self.close_connection = True

    def record_request(self, body: Any) -> None:
        self.script.requests.append((self.command, self.path.removeprefix(API_BASE_PATH), body))

    def send_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def close_now(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


@contextmanager
def serve_script(script: ServiceScript) -> Iterator[str]:
    """Run a service that follows the script, and yield its address."""
    handler = type("Scripted", (ScriptHandler,), {"script": script, "changed": threading.Condition()})
    with serve_in_thread(ThreadedServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"
