"""Restrict access to the emulator to programs of this machine.

The emulator checks no credentials, and unpatched MiniStack accepts requests of web pages from any origin: a page could
read every secret. So requests with an `Origin` header are refused, and requests for another host, which come from a
DNS name that points to this machine. Only the deployed API accepts pages: it checks origins and tokens itself.
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

    async def restricted_app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        is_api = scope["path"].startswith(API_PATH_PREFIX)
        if (b"origin" in headers and not is_api) or headers.get(b"host") not in hosts:
            await _refuse(send)
            return

        async def send_without_cors(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = [
                    (name, value)
                    for name, value in message["headers"]
                    if not name.lower().startswith(CORS_HEADER_PREFIX)
                ]
                message = message | {"headers": kept}
            await send(message)

        await app(scope, receive, send if is_api else send_without_cors)

    return restricted_app


async def _refuse(send: Any) -> None:
    body = json.dumps({"error": "The local cloud answers programs on this machine, not web pages."}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
