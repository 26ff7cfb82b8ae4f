"""What was asked of AWS, for whoever counts it: nothing is kept until somebody asks for it.

`POST /_fermata/requests` begins, `GET` gives what was recorded since, `DELETE` stops. Each record holds the service,
the operation, the moment (`time.monotonic_ns()`), and for DynamoDB the request and the response as they went over the
wire.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

RECORDER_PATH = "/_fermata/requests"
CREDENTIAL_SCOPE = re.compile(rb"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")
App = Callable[[Any, Any, Any], Awaitable[None]]
RequestRecord = dict[str, Any]


class RequestRecorder:
    """Stands before the emulator's application; one `if` per request while nobody counts."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._records: list[RequestRecord] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == RECORDER_PATH:
            await self._tell(scope["method"], send)
        elif scope["type"] == "http" and self._records is not None:
            await self._record(self._records, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _record(self, records: list[RequestRecord], scope: Any, receive: Any, send: Any) -> None:
        record = _about(scope)
        asked, answered = bytearray(), bytearray()

        async def receiving() -> Any:
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def sending(message: Any) -> None:
            record["status"] = message.get("status", record.get("status"))
            answered.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receiving, sending)
        record["endedNs"] = time.monotonic_ns()
        if record["service"] == "dynamodb":
            record |= {"request": json.loads(asked or b"{}"), "response": json.loads(answered or b"{}")}
        if record["service"]:
            records.append(record)

    async def _tell(self, method: str, send: Any) -> None:
        answer = self._records or []
        if method == "POST":
            self._records = []
        elif method == "DELETE":
            self._records = None
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def _about(scope: Any) -> RequestRecord:
    """Clients sign for a service, and name the operation in a header or, for S3, by their method."""
    headers = dict(scope["headers"])
    signed = CREDENTIAL_SCOPE.search(headers.get(b"authorization", b""))
    target = headers.get(b"x-amz-target", b"").decode("latin-1").rpartition(".")[2]
    return {
        "service": signed[1].decode() if signed else "",
        "operation": target or scope["method"],
        "path": scope["path"],
        "atNs": time.monotonic_ns(),
    }
