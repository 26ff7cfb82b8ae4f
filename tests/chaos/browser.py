"""Simulated browsers: they send prompts and undos, follow turns, carry out tool requests, and repeat what failed."""

import base64
import hashlib
import io
import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from PIL import Image

from fermata.turns.read.follow_log import LogPoller, read_entries_after
from fermata.turns.turn import find_turn_for_caller
from fermata.turns.turn_log import LogEntry
from fermata.wire.renderers.ndjson import render_event
from tests.chaos.evidence import ClientTurn, Reader
from tests.chaos.page import Page
from tests.chaos.provider import make_prompt
from tests.chaos.scheduler import Process, Scheduler
from tests.chaos.simulated_cloud import FunctionProcess, HttpAnswer, SimulatedCloud
from tests.chaos.users import User

ABANDON_RATE = 0.3
SECOND_TAB_RATE = 0.3
SECOND_CLICK_RATE = 0.15
SECOND_READER_RATE = 0.2
UPLOAD_RATE = 0.2
IMAGE_RATE = 0.1
READER_SECONDS = 840.0
MAX_START_ATTEMPTS = 60
NOTHING_TO_UNDO = "nothing to undo"
MAX_ANSWER_ATTEMPTS = 40


@dataclass
class Upload:
    """Bytes that a browser puts into the bucket before it refers to them."""

    kind: str
    raw: bytes

    @property
    def announcement(self) -> dict[str, Any]:
        return {"kind": self.kind, "bytes": len(self.raw), "sha256": hashlib.sha256(self.raw).hexdigest()}


@dataclass
class Browser:
    """The tabs of one user that show one turn."""

    cloud: SimulatedCloud
    page: Page
    user: User
    turn: ClientTurn
    body: dict[str, Any] = field(default_factory=dict)
    """Of the request that starts the turn."""
    path: str = "chat/site"
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies of the answers that were accepted, by request id."""
    pending: list[dict[str, Any]] = field(default_factory=list)
    """Tool requests that a reader has got and nobody has carried out."""
    _effect_keys: dict[str, str] = field(default_factory=dict)
    """By request id."""
    has_acted: bool = False
    """Whether nobody acts for the turn any more."""
    _has_been_read: bool = False
    _is_read: bool = False
    """Whether a reader has got the turn's end."""

    @property
    def scheduler(self) -> Scheduler:
        return self.cloud.scheduler

    @property
    def key(self) -> str:
        return f"key-{self.turn.name}"

    @property
    def is_over(self) -> bool:
        is_read = not self.turn.bridge or all(reader.has_ended for reader in self.turn.readers)
        return self.has_acted and is_read

    # starting

    def write_prompt(self, rounds: int, seed: int) -> None:
        """Write the prompt, with a picture and the page's snapshot, which may be uploaded."""
        draw = self.scheduler.random
        content: list[dict[str, Any]] = [{"kind": "text", "text": make_prompt(self.turn.name, rounds, seed)}]
        if draw.random() < IMAGE_RATE:
            content.append(self._make_image(is_uploaded=draw.random() < 0.5))
        self.body = {"conversationId": self.turn.conversation, "content": content, "revision": self.page.revision}
        snapshot = {"site": {"pages": [], "note": self.turn.name}}
        self.body |= self._attach_snapshot(snapshot)

    def _attach_snapshot(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        if self.scheduler.random.random() >= UPLOAD_RATE:
            return {"snapshot": snapshot}
        ref = self.upload(Upload("snapshot", json.dumps(snapshot).encode()))
        return {"snapshotRef": ref} if ref else {}

    def _make_image(self, *, is_uploaded: bool) -> dict[str, Any]:
        picture = {"kind": "image", "mimeType": "image/jpeg"}
        ref = self.upload(Upload("image", make_picture())) if is_uploaded else ""
        return picture | ({"uploadRef": ref} if ref else {"data": base64.b64encode(make_picture()).decode()})

    def upload(self, upload: Upload) -> str:
        """Announce an upload and put it; return its reference, or nothing when the service did not answer in time."""
        for _ in range(5):
            answer = self.cloud.request("api", "POST", "uploads", self.user.token, upload.announcement)
            if answer.is_success:
                self.scheduler.switch("upload", 0.2)
                self.cloud.s3.put_presigned(answer.body["url"], upload.raw)
                return str(answer.body["ref"])
            self.scheduler.switch("browser retry", 3.0)
        return ""

    def start(self) -> None:
        """Send the request until it is answered, or for good refused."""
        if self.scheduler.random.random() < SECOND_CLICK_RATE:
            delay = self.scheduler.random.uniform(0, 20)
            self.scheduler.start(Process("tab"), self._click_again, name="tab", delay=delay)
        answer = HttpAnswer(0)
        for _ in range(MAX_START_ATTEMPTS):
            answer = self.send_start()
            if answer.is_success:
                self.turn.bridge = answer.body["bridgeId"]
                if "snapshot" in self.body or "snapshotRef" in self.body:
                    self._note_snapshot(self.turn.name)
                return
            if answer.is_final or NOTHING_TO_UNDO in answer.error:
                break
            if answer.status >= 500 and self.scheduler.random.random() < ABANDON_RATE:
                self.turn.is_abandoned = True
                return
            self.scheduler.switch("browser retry", 5.0)
        self.turn.error = answer.error

    def _click_again(self) -> None:
        """Send the same request once more, from another connection, unless the turn is over."""
        if self.has_acted:
            return
        answer = self.send_start()
        self.scheduler.wait("tab", lambda: bool(self.turn.bridge) or self.has_acted)
        if answer.is_success and self.turn.bridge and answer.body["bridgeId"] != self.turn.bridge:
            self.turn.complaints.append(f"the same request has started {answer.body['bridgeId']} too")

    def send_start(self) -> HttpAnswer:
        self.turn.requested_at.append(self.scheduler.now)
        return self.cloud.request("stream", "POST", self.path, self.user.token, self.body, idempotency_key=self.key)

    def _note_snapshot(self, note: str) -> None:
        if note not in self.turn.snapshots:
            self.turn.snapshots.append(note)

    # the life of a turn

    def run(self) -> None:
        """Start the turn, and act for it until it is over."""
        self.start()
        if self.turn.bridge:
            self._open_readers()
            handled: set[str] = set()
            while not self.turn.has_ended:
                self.scheduler.wait("browser", lambda: bool(self.pending) or self._is_read)
                for request in self._take_pending(handled):
                    self._answer(request)
        self.has_acted = True

    def _take_pending(self, handled: set[str]) -> list[dict[str, Any]]:
        """Return the requests that are new; each reader gets them."""
        pending, self.pending = self.pending, []
        new = {event["requestId"]: event for event in pending if event["requestId"] not in handled}
        handled.update(new)
        return list(new.values())

    # reading

    def _open_readers(self) -> None:
        self._open_reader(self.turn.readers[0], 0.0)
        if self.scheduler.random.random() < SECOND_READER_RATE:
            self.turn.readers.append(Reader())
            self._open_reader(self.turn.readers[1], self.scheduler.random.uniform(0, 20))

    def _open_reader(self, reader: Reader, delay: float) -> None:
        self.scheduler.start(Process("reader"), lambda: self._read(reader), name="reader", delay=delay)

    def _read(self, reader: Reader) -> None:
        """Follow the log; reconnect after every failure with the number of the last event."""
        while not reader.has_ended:
            try:
                self.cloud.call("reader", lambda process: self._follow(process, reader), READER_SECONDS)
                absence = 0.0 if reader.has_ended else self.scheduler.random.uniform(0, 12)
            except Exception:  # noqa: BLE001 (the connection broke: the client reconnects)
                absence = 1.0
            left_at = self.scheduler.now
            if absence:
                self.scheduler.switch("reconnect", absence)
                self.turn.absences.append((left_at, self.scheduler.now))

    def _follow(self, process: FunctionProcess, reader: Reader) -> None:
        """Read what is there, then what the poller delivers, as one response of `GET bridges/{id}/events`."""
        resources = process.resources
        assert resources is not None
        after = reader.received[-1][0] if reader.received else 0
        turn = find_turn_for_caller(resources, self.user.caller, self.turn.bridge)
        queue: list[LogEntry | None] = list(read_entries_after(resources, turn, after))
        last = queue[-1]
        assert last is not None
        assert process.watcher is not None
        process.watcher.add_reader(turn, is_returning=self._has_been_read)
        if not self._has_been_read:
            self.turn.first_read_at = self.scheduler.now
        self._has_been_read = True
        poller = LogPoller(resources)
        follower = None
        if last.state.phase != "ended":
            follower = poller.follow(turn, last.next_number, queue.append)
        patience = self.scheduler.random.uniform(0, 20) if self._leaves_early() else None
        while not reader.has_ended and self.scheduler.wait("delivery", lambda: bool(queue), patience):
            entry = queue.pop(0)
            if entry is None:
                break
            self._receive(reader, entry, turn.dialect)
        if follower is not None:
            poller.unfollow(follower)
        process.watcher.remove_reader(turn, is_broken_off=not reader.has_ended, has_seen_end=reader.has_ended)

    def _leaves_early(self) -> bool:
        """Return whether the tab is closed, and opened again later, where the service sees that."""
        return self.cloud.sees_departures and self.scheduler.random.random() < self.cloud.habits.leaving_reader

    def _receive(self, reader: Reader, entry: LogEntry, dialect: Any) -> None:
        after = reader.received[-1][0] if reader.received else 0
        for number, event in enumerate(entry.events, entry.first_number):
            line = render_event(number, event, dialect)
            if number > after and line:
                members = json.loads(line)
                reader.received.append((members.pop("seq"), members))
                if members["type"] == "toolRequest":
                    self.pending.append(members)
        self._is_read = self.turn.has_ended

    # answering

    def _answer(self, request: dict[str, Any]) -> None:
        if self.cloud.is_left_alone(request):
            return
        draw = self.scheduler.random
        if draw.random() < self.cloud.habits.slow_browser:
            self.scheduler.switch("slow browser", draw.uniform(*self.cloud.habits.slow_seconds))
        result = self.page.carry_out(request)
        self._effect_keys[request["requestId"]] = request["effectKey"]
        body = {"bridgeId": self.turn.bridge, "requestId": request["requestId"], "result": result}
        if draw.random() < UPLOAD_RATE:
            body |= self._attach_snapshot({"site": {"pages": [], "note": request["effectKey"]}})
        if draw.random() < SECOND_TAB_RATE:
            delay = draw.uniform(0, 2)
            self.scheduler.start(Process("tab"), lambda: self._post_answer(body), name="tab", delay=delay)
        self._post_answer(body)

    def _post_answer(self, body: dict[str, Any]) -> None:
        request_id = body["requestId"]
        for _ in range(MAX_ANSWER_ATTEMPTS):
            answer = self.send_answer(body)
            if answer.is_success:
                self.turn.acknowledged[request_id] = body["result"]
                if "snapshot" in body or "snapshotRef" in body:
                    self._note_snapshot(self._effect_keys[request_id])
                self.answers[request_id] = body
                return
            if answer.status == 409:
                self.turn.complaints.append(f"the same answer to {request_id} was refused: {answer.error}")
            gives_up = answer.status >= 500 and self.scheduler.random.random() < self.cloud.habits.lost_answer
            if answer.is_final or gives_up:
                return
            self.scheduler.switch("browser retry", 3.0)

    def send_answer(self, body: dict[str, Any]) -> HttpAnswer:
        return self.cloud.request("tool_result", "POST", "tool-result", self.user.token, body)

    def cancel(self, delay: float) -> None:
        """Cancel the turn some time after it has started; with 0 at once."""
        self.turn.is_cancelled_by_user = True
        self.scheduler.wait("user", lambda: bool(self.turn.bridge) or self.has_acted)
        self.scheduler.switch("user", delay)
        for _ in range(20):
            if self.has_acted:
                return
            path = f"bridges/{self.turn.bridge}/cancel"
            if self.cloud.request("api", "POST", path, self.user.token).is_success:
                return
            self.scheduler.switch("browser retry", 3.0)


@cache
def make_picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(buffer, "JPEG")
    return buffer.getvalue()
