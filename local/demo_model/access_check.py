"""Let programs ask the demo model, and only those of this run script it (decision 0231)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from local.browser_check import decode_headers, find_page_problem
from local.request_signature import HttpRequest, SignatureRefusedError, get_run_credentials, verify_run_request

CONTROL_PATH_PREFIX = "/demo/"
App = Callable[[Any, Any, Any], Awaitable[None]]


class AccessCheck:
    """An ASGI app around the demo model's. Its answers decide what a page's editor does, so no other page may."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        problem = _find_problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        body = json.dumps({"error": problem}).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _find_problem(scope: Any) -> str | None:
    headers, (_, port) = decode_headers(scope["headers"]), scope["server"]
    if problem := find_page_problem(headers, port):
        return problem
    if scope["path"].startswith(CONTROL_PATH_PREFIX):
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        try:
            verify_run_request(HttpRequest(scope["method"], path, query, headers), get_run_credentials())
        except SignatureRefusedError as refusal:
            return str(refusal)
    return None
