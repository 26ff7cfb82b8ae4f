"""A browser over real HTTP: it sends a prompt or an undo, follows the turn, carries out tool requests and answers them.

It repeats what failed, as its user would: the same request with the same key, the same answer, the rest of a stream
from the last event that it has.
"""

import asyncio
import base64
import json
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.browser import Upload, make_picture
from tests.chaos.evidence import ClientTurn, Reader
from tests.chaos.page import Page
from tests.chaos.real.http_client_without_retries import HttpAnswer, HttpClient, NumberedEvent

RETRY_SECONDS = 0.5
MAX_REPEATS = 400
MAX_UNDO_REPEATS = 20
"""An undo may be refused for good with a 409, because there is nothing to undo."""
ABANDON_RATE = 0.1
SECOND_TAB_RATE = 0.3
SECOND_READER_RATE = 0.2
SLOW_ANSWER_RATE = 0.05
STREAMED_START_RATE = 0.5
UPLOAD_RATE = 0.3
IMAGE_RATE = 0.2


@dataclass
class Browser:
    """The tabs that show one turn."""

    client: HttpClient
    page: Page
    turn: ClientTurn
    path: str
    """Of the request that starts the turn."""
    body: dict[str, Any]
    may_abandon: bool = True
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies of the answers that were accepted, by request id."""
    _handled: set[str] = field(default_factory=set)
    _tabs: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.turn.name)

    @property
    def is_over(self) -> bool:
        turn = self.turn
        return bool(turn.error) or turn.is_abandoned or all(reader.has_ended for reader in turn.readers)

    def close(self) -> None:
        for tab in self._tabs:
            tab.cancel()

    async def run(self, delay: float = 0.0) -> None:
        """Start the turn, and follow it until its end."""
        await asyncio.sleep(delay)
        await self._attach_files()
        await self._start()
        if not self.turn.bridge:
            return
        if self.turn.kind == "prompt":
            self.turn.snapshots.append(self.turn.name)
        if self._draw.random() < SECOND_READER_RATE:
            self.turn.readers.append(Reader())
        await asyncio.gather(*(self._read(reader) for reader in self.turn.readers))

    # files

    async def _attach_files(self) -> None:
        """Add a picture to some prompts, and upload some pictures and snapshots."""
        draw = random.Random(f"files of {self.turn.name}")
        if self.turn.kind == "prompt" and draw.random() < IMAGE_RATE:
            picture: dict[str, Any] = {"kind": "image", "mimeType": "image/jpeg"}
            ref = await self._upload("image", make_picture()) if draw.random() < UPLOAD_RATE else ""
            picture |= {"uploadRef": ref} if ref else {"data": base64.b64encode(make_picture()).decode()}
            self.body["content"] = [{"kind": "text", "text": self.body.pop("prompt")}, picture]
        if self.turn.kind == "prompt" and draw.random() < UPLOAD_RATE:
            await self._upload_snapshot(self.body)

    async def _upload_snapshot(self, body: dict[str, Any]) -> None:
        """Replace the snapshot in a body by a reference to its upload, unless that fails."""
        ref = await self._upload("snapshot", json.dumps(body["snapshot"]).encode())
        if ref:
            del body["snapshot"]
            body["snapshotRef"] = ref

    async def _upload(self, kind: str, raw: bytes) -> str:
        """Announce and put an upload; return its reference, or nothing when a fault has prevented it."""
        announced = await self.client.request("POST", "/uploads", Upload(kind, raw).announcement)
        if not announced.is_success:
            return ""
        upload = announced.body
        is_put = await self.client.put_upload(upload["url"], upload.get("headers", {}), raw)
        return str(upload["ref"]) if is_put else ""

    # the request that starts the turn

    async def send_start(self) -> HttpAnswer:
        return await self.client.request("POST", self.path, self.body, self._key | {"accept": "application/json"})

    @property
    def _key(self) -> dict[str, str]:
        return {"idempotency-key": f"key-{self.turn.name}"}

    async def _start(self) -> None:
        is_streamed = self._draw.random() < STREAMED_START_RATE
        answer = HttpAnswer(0)
        for _ in range(MAX_UNDO_REPEATS if self.turn.kind == "undo" else MAX_REPEATS):
            answer = await (self._start_streamed() if is_streamed else self.send_start())
            if answer.status == 202:
                self.turn.bridge = str(answer.body["bridgeId"])
            if self.turn.bridge:
                return
            if answer.is_final:
                break
            if not answer.is_temporary and self.may_abandon and self._draw.random() < ABANDON_RATE:
                self.turn.is_abandoned = True
                return
            await asyncio.sleep(RETRY_SECONDS)
        self.turn.error = f"{answer.status}: {answer.body}"

    async def _start_streamed(self) -> HttpAnswer:
        """Read the first events from the response itself, then drop the connection."""
        reader = self.turn.readers[0]

        def take(numbered: NumberedEvent) -> None:
            number, event = numbered
            if event["type"] == "bridgeReady":
                self.turn.bridge = str(event["bridgeId"])
            if number > last_number(reader):
                self._receive(reader, numbered)

        return await self.client.stream("POST", self.path, take, self.body, self._key, max_events=5)

    # the stream

    async def _read(self, reader: Reader) -> None:
        while not reader.has_ended:
            path = f"/bridges/{self.turn.bridge}/events?after={last_number(reader)}"
            await self.client.stream("GET", path, lambda numbered: self._receive(reader, numbered))
            await asyncio.sleep(0.05)

    def _receive(self, reader: Reader, numbered: NumberedEvent) -> None:
        reader.received.append(numbered)
        event = numbered[1]
        if event["type"] == "toolRequest" and event["requestId"] not in self._handled:
            self._handled.add(event["requestId"])
            self._start_tab(self._answer(event))

    # answers

    async def _answer(self, request: dict[str, Any]) -> None:
        draw = random.Random(f"{self.turn.name}/{request['effectKey']}")
        if draw.random() < SLOW_ANSWER_RATE:
            await asyncio.sleep(draw.uniform(2, 12))
        while not self.turn.bridge:
            await asyncio.sleep(0.05)
        result = self.page.carry_out(request)
        body = {"bridgeId": self.turn.bridge, "requestId": request["requestId"], "result": result}
        if draw.random() < UPLOAD_RATE:
            body["snapshot"] = {"site": {"pages": [], "note": request["effectKey"]}}
            await self._upload_snapshot(body)
        if draw.random() < SECOND_TAB_RATE:
            self._start_tab(self._post_answer(body, draw.uniform(0, 3)))
        await self._post_answer(body)

    async def _post_answer(self, body: dict[str, Any], delay: float = 0.0) -> None:
        await asyncio.sleep(delay)
        for _ in range(MAX_REPEATS):
            answer = await self.send_answer(body)
            if answer.is_success:
                self.turn.acknowledged[body["requestId"]] = body["result"]
                self.answers[body["requestId"]] = body
                return
            if answer.status == 409:
                self.turn.complaints.append(f"the same answer to {body['requestId']} was refused: {answer.body}")
            if answer.is_final:
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def send_answer(self, body: dict[str, Any]) -> HttpAnswer:
        return await self.client.request("POST", "/tool-result", body)

    async def cancel(self, delay: float) -> None:
        await asyncio.sleep(delay)
        for _ in range(MAX_REPEATS):
            if self.is_over:
                return
            path = f"/bridges/{self.turn.bridge}/cancel"
            if self.turn.bridge and (await self.client.request("POST", path)).is_success:
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _start_tab(self, work: Coroutine[Any, Any, None]) -> None:
        tab = asyncio.ensure_future(work)
        self._tabs.add(tab)
        tab.add_done_callback(self._tabs.discard)


def last_number(reader: Reader) -> int:
    return reader.received[-1][0] if reader.received else 0
