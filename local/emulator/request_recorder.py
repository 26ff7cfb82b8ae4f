"""Record requests to the emulated AWS, for tests and measurements that count them.

`POST /_fermata/requests` starts recording, `GET` returns the records since then, `DELETE` stops. A record holds the
service, the operation, the times of start and end (`time.monotonic_ns()`), and for DynamoDB the request and response.
"""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from local.emulator.aws_requests import AwsRequest

RECORDER_PATH = "/_fermata/requests"
App = Callable[[Any, Any, Any], Awaitable[None]]
RequestRecord = dict[str, Any]


class RequestRecorder:
    """An ASGI app around the emulator's. It costs one comparison per request while nothing is recorded."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._records: list[RequestRecord] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == RECORDER_PATH:
            await self._handle_recorder_request(scope["method"], send)
        elif scope["type"] == "http" and self._records is not None:
            await self._record(self._records, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _record(self, records: list[RequestRecord], scope: Any, receive: Any, send: Any) -> None:
        record = _describe_request(scope)
        request_body = bytearray()
        response_body = bytearray()

        async def record_request() -> Any:
            message = await receive()
            request_body.extend(message.get("body", b""))
            return message

        async def record_response(message: Any) -> None:
            record["status"] = message.get("status", record.get("status"))
            response_body.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, record_request, record_response)
        record["endedNs"] = time.monotonic_ns()
        if record["service"] == "dynamodb":
            record |= {"request": json.loads(request_body or b"{}"), "response": json.loads(response_body or b"{}")}
        if record["service"]:
            records.append(record)

    async def _handle_recorder_request(self, method: str, send: Any) -> None:
        records = self._records or []
        if method == "POST":
            self._records = []
        elif method == "DELETE":
            self._records = None
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(records).encode()})


def _describe_request(scope: Any) -> RequestRecord:
    request = AwsRequest.from_scope(scope)
    return {
        "service": request.service,
        "operation": request.operation,
        "path": request.path,
        "atNs": time.monotonic_ns(),
    }
