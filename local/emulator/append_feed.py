"""Tell listeners of each entry that a turn log grows by, so that readers on this machine need not poll for it.

`GET /_fermata/appends` streams the row of each entry that was written, as DynamoDB's JSON on one line, after an empty
line that says that nothing is missed from then on (decisions 0167 and 0656). A listener that is too slow gets another
empty line in the place of what it has not read.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

from local.emulator.copy_page import App

FEED_PATH = "/_fermata/appends"
WRITE_OPERATIONS = ("PutItem", "TransactWriteItems")
LOG_ENTRY_PUT = re.compile(r'"Item":\s*(?=\{"pk":\s*\{"S":\s*"[^"]+"\},\s*"sk":\s*\{"S":\s*"e#\d+")')
"""Before the row of an entry, whose sort key is a number. Within a text the quotes would be escaped."""
MAX_WAITING_LINES = 1_000
"""That a listener has not read yet."""
NOTHING_MISSED = b"\n"
OK = 200
_decoder = json.JSONDecoder()


class AppendFeed:
    """An ASGI app around the emulator's. Without listeners it costs one comparison per request."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._listeners: set[asyncio.Queue[bytes]] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == FEED_PATH:
            await self._stream_appends(receive, send)
        elif self._listeners and scope["type"] == "http" and _is_write(scope):
            await self._announce_appends(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _announce_appends(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a write, and tell of its entries if it has succeeded. They are stored then, and never change."""
        body = bytearray()
        status = 0

        async def copy_request() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def note_status(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, copy_request, note_status)
        if status != OK:
            return
        for row in find_entry_rows(body.decode()):
            for listener in self._listeners:
                _tell(listener, row.encode() + b"\n")

    async def _stream_appends(self, receive: Any, send: Any) -> None:
        listener: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING_LINES)
        self._listeners.add(listener)
        sending = asyncio.create_task(_send_lines(listener, send))
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._listeners.discard(listener)
            sending.cancel()


def find_entry_rows(body: str) -> Iterator[str]:
    """Yield the rows of log entries that the request of a write puts. Boto3 writes them on one line."""
    for put in LOG_ENTRY_PUT.finditer(body):
        _, end = _decoder.raw_decode(body, put.end())
        yield body[put.end() : end]


def _tell(listener: "asyncio.Queue[bytes]", line: bytes) -> None:
    """Tell a listener a line. Behind an empty one it polls for what came before, also for what is dropped here."""
    if listener.full():
        while not listener.empty():
            listener.get_nowait()
        listener.put_nowait(NOTHING_MISSED)
    listener.put_nowait(line)


async def _send_lines(listener: "asyncio.Queue[bytes]", send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": NOTHING_MISSED, "more_body": True})
    while True:
        await send({"type": "http.response.body", "body": await listener.get(), "more_body": True})


def _is_write(scope: Any) -> bool:
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return target.rpartition(".")[2] in WRITE_OPERATIONS
