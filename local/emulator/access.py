"""Who may speak to the emulator: programs of this machine, never a web page.

It knows no passwords, and stock MiniStack lets pages of any origin call it. A page could then open every sealed secret.
So a request that names an origin is refused, and so is one for another host (a name that was made to point here).
Only the deployed API may be called by pages: it checks their origin and their token itself.
"""

import json
import os
from typing import Any

from local.emulator.snapshots import App

API_PATH_PREFIX = "/restapis/"
CORS_HEADER_PREFIX = b"access-control-"


def restrict_access(app: App) -> App:
    port = os.environ["GATEWAY_PORT"]
    hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def polite(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        is_api = scope["path"].startswith(API_PATH_PREFIX)
        if (b"origin" in headers and not is_api) or headers.get(b"host") not in hosts:
            await _refuse(send)
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    (name, value)
                    for name, value in message["headers"]
                    if not name.lower().startswith(CORS_HEADER_PREFIX)
                ]
                message = message | {"headers": kept}
            await send(message)

        await app(scope, receive, send if is_api else sending)

    return polite


async def _refuse(send: Any) -> None:
    body = json.dumps({"error": "The local cloud answers programs on this machine, not web pages."}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
