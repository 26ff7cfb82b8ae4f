"""Tell listeners which turn logs have grown, so that readers on this machine need not poll often (decision 0167).

`GET /_fermata/appends` streams the partition key of each log that an entry is appended to, one a line for each entry,
after an empty line that says that nothing is missed from then on.
"""

import asyncio
import re
from typing import Any

from local.emulator.snapshots import App

FEED_PATH = "/_fermata/appends"
WRITE_OPERATIONS = ("PutItem", "TransactWriteItems")
LOG_ENTRY_PUT = re.compile(rb'"pk":\s*\{"S":\s*"([^"]+)"\},\s*"sk":\s*\{"S":\s*"e#')


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
        body = bytearray()

        async def copy_request() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        await self._app(scope, copy_request, send)
        for partition_key in LOG_ENTRY_PUT.findall(body):
            for listener in self._listeners:
                listener.put_nowait(partition_key + b"\n")

    async def _stream_appends(self, receive: Any, send: Any) -> None:
        listener: asyncio.Queue[bytes] = asyncio.Queue()
        self._listeners.add(listener)
        sending = asyncio.create_task(_send_lines(listener, send))
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            self._listeners.discard(listener)
            sending.cancel()


async def _send_lines(listener: "asyncio.Queue[bytes]", send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"\n", "more_body": True})
    while True:
        await send({"type": "http.response.body", "body": await listener.get(), "more_body": True})


def _is_write(scope: Any) -> bool:
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return target.rpartition(".")[2] in WRITE_OPERATIONS
