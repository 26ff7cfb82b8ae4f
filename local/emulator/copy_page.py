"""Serve the page that starts a process of the local cloud as a copy of what functions share (decision 0609).

`POST /_fermata/copies` with `{"configuration": …, "socket": …}`: the configuration of the function whose variables the
shared process was imported with, and the path of the Unix socket at which the copy calls back.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

COPIES_PATH = "/_fermata/copies"
App = Callable[[Any, Any, Any], Awaitable[None]]
ForkCopy = Callable[[dict[str, Any], str], None]


class CopyPage:
    """An ASGI app around the emulator's."""

    def __init__(self, app: App, fork_copy: ForkCopy) -> None:
        """
        Args:
            fork_copy: Takes the configuration and the path of the socket. Raises if no copy is made.
        """
        self._app = app
        self._fork_copy = fork_copy

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != COPIES_PATH:
            await self._app(scope, receive, send)
            return
        order = json.loads(await _read_body(receive))
        status, body = 200, b"{}"
        try:
            await asyncio.to_thread(self._fork_copy, order["configuration"], order["socket"])
        except Exception as error:  # noqa: BLE001  whatever it is, the one who asked is told
            status, body = 500, json.dumps({"error": str(error)}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _read_body(receive: Any) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body.extend(message.get("body", b""))
        more = message.get("more_body", False)
    return bytes(body)
