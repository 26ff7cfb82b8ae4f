"""Define HTTP requests and responses, the same for Lambda behind API Gateway and for the ASGI application."""

import json
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from fermata.aws.clock import new_id
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass

EVENT_STREAM = "text/event-stream"
EVENT_STREAM_HEARTBEAT = b": keep-alive\n\n"
"""A comment, which readers of server-sent events skip."""
_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")


@value_dataclass(frozen=True)
class HttpRequest:
    """A request. Names in `headers` are lower case; `path_parameters` is filled in when a route is found."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """The address of the client's network, as the platform states it; empty if it does not."""

    @property
    def origin(self) -> str:
        """The header `Origin`, as the browser sent it; empty for a client that is no browser."""
        return self.headers.get("origin", "")


@value_dataclass(frozen=True)
class Response:
    """A response with one of three bodies, or with none.

    `body` is sent as JSON, `raw_body` as it is, `stream` as it comes (in the ASGI application only). `on_close` is
    called when a stream is over, also when the client has disconnected.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterable[bytes] | AsyncIterable[bytes] | None = None
    raw_body: bytes | None = None
    on_close: Callable[[], None] | None = None
    build_whole: Callable[[], "Response"] | None = None
    """Set for a stream that is read to its end without being sent: returns the response that is sent then."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no body of any kind."""
        return self.body is None and self.raw_body is None and self.stream is None

    def to_bytes(self) -> bytes:
        """Return the body as bytes. A stream is not read."""
        if self.raw_body is not None:
            return self.raw_body
        return b"" if self.body is None else _format_json(self.body)


def _format_json(value: Any) -> bytes:
    """Return a JSON text in UTF-8, where a letter has one to four bytes and its escape six or twelve.

    Half of a surrogate pair is in UTF-8 nothing, so a text that has one is escaped.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def choose_request_id(headers: Mapping[str, str], platform_id: str) -> str:
    """Return the caller's x-request-id if it is safe in a log line, else the platform's id, else a new one."""
    for request_id in (headers.get("x-request-id", ""), platform_id):
        if _SAFE_REQUEST_ID.fullmatch(request_id):
            return request_id
    return new_id()


def read_integer_parameter(request: HttpRequest, name: str, default: int, *, maximum: int = 10**9) -> int:
    """Read a whole number from the query.

    Args:
        name: The parameter's name.
        default: The value of a missing parameter.
        maximum: The greatest value to accept; the smallest is 0.

    Raises:
        InvalidRequest: The parameter is no such number.
    """
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= maximum):
        raise InvalidRequest(f"'{name}' must be a whole number up to {maximum}.")
    return int(text)


def join_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Join headers of the same name into one, with lower-case names. Cookies are joined by `;`, others by `,`."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        separator = "; " if key == "cookie" else ", "
        headers[key] = f"{headers[key]}{separator}{value}" if key in headers else value
    return headers
