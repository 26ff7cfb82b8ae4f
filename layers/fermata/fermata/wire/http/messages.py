"""Requests and answers, the same for a Lambda behind API Gateway and for the ASGI stream app."""

import base64
import json
import math
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from fermata.aws.clock import new_id
from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.validation_errors import format_validation_errors

MAX_REQUEST_BYTES = 6 * 1024 * 1024
"""Lambda itself takes no larger event; locally and behind the stream app this is what says so."""
MAX_JSON_DEPTH = 200
"""How deep JSON may be nested, so that nothing that walks it later runs out of stack."""
_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")
_PATH_PARAMETER = re.compile(r"\{(\w+)\+?\}")
INVALID_BODY_PREFIX = "Invalid request body."

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class HttpRequest:
    """`headers` have lower-case names; `params` are the path's, once a route has been found."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    path_parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return self.headers.get("origin", "")


@dataclass(frozen=True)
class Response:
    """`body` goes out as JSON, `raw` as the bytes it is, or `stream` as it comes (the stream app only).

    `closed` is called when a stream is over, however it came to that.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterable[bytes] | AsyncIterable[bytes] | None = None
    raw_body: bytes | None = None
    on_close: Callable[[], None] | None = None

    @property
    def is_empty(self) -> bool:
        return self.body is None and self.raw_body is None and self.stream is None

    def to_bytes(self) -> bytes:
        if self.raw_body is not None:
            return self.raw_body
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def request_from_event(event: Mapping[str, Any]) -> HttpRequest:
    """A request as API Gateway's REST proxy hands it over."""
    headers = _headers(event)
    return HttpRequest(
        id=choose_request_id(headers, str((event.get("requestContext") or {}).get("requestId", ""))),
        method=str(event["httpMethod"]).upper(),
        path=_path(event),
        headers=headers,
        query=dict(event.get("queryStringParameters") or {}),
        body=_body(event),
    )


def request_from_asgi_scope(asgi_scope: Mapping[str, Any], body: bytes = b"") -> HttpRequest:
    """A request as an ASGI server hands it over."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in asgi_scope["headers"]]
    headers = _joined(pairs)
    return HttpRequest(
        id=choose_request_id(headers, ""),
        method=str(asgi_scope["method"]).upper(),
        path=str(asgi_scope["path"]),
        headers=headers,
        query=dict(parse_qsl(asgi_scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)),
        body=body,
    )


def to_proxy_response(response: Response) -> dict[str, Any]:
    """An answer as API Gateway's REST proxy wants it."""
    content, is_binary = response.to_bytes(), response.raw_body is not None
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": base64.b64encode(content).decode() if is_binary else content.decode(),
        "isBase64Encoded": is_binary,
    }


def choose_request_id(headers: Mapping[str, str], platform_id: str) -> str:
    """The caller's own x-request-id when it is fit for a log line, else the platform's, else a new one."""
    for offered in (headers.get("x-request-id", ""), platform_id):
        if _SAFE_REQUEST_ID.fullmatch(offered):
            return offered
    return new_id()


def read_integer_parameter(request: HttpRequest, name: str, default: int, *, maximum: int = 10**9) -> int:
    """A number of the query, from 0 up to `most`."""
    text = request.query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= maximum):
        raise InvalidRequest(f"'{name}' must be a whole number up to {maximum}.")
    return int(text)


def parse_body(request: HttpRequest, model: type[_Model], *, ignore_unknown: bool = False) -> _Model:
    """The body as `model`; Invalid names the first members that are wrong, never what they held.

    `tolerant`: members that nobody knows are passed over, whatever the model says about them.
    """
    value = parse_json_body(request.body)
    try:
        return model.model_validate(value, extra="ignore" if ignore_unknown else None)
    except ValidationError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} {format_validation_errors(error)}") from error


def parse_json_body(body: bytes) -> dict[str, Any]:
    """A JSON object, whatever the content type says it is. Half characters in its texts become U+FFFD."""
    if len(body) > MAX_REQUEST_BYTES:
        raise PayloadTooLarge(f"The request body has {len(body):,} bytes; at most {MAX_REQUEST_BYTES:,} are taken.")
    if not body.strip():
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is empty; send a JSON object.")
    return parse_json_object(decode_json_text(body))


def decode_json_text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is not UTF-8.") from error


def parse_json_object(text: str) -> dict[str, Any]:
    """A JSON object that whatever comes later can walk and store."""
    try:
        value = _parsed(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It is not JSON: {error.msg} at character {error.pos}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It holds a number that is too long.") from error
    if not isinstance(value, dict):
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} It must be a JSON object.")
    if text.count("{") + text.count("[") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        raise _too_deep()
    return value


def _parsed(text: str) -> Any:
    value = json.loads(text, object_pairs_hook=_members, parse_float=_finite, parse_constant=_finite)
    if "\\ud" in text or "\\uD" in text:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        value = json.loads(whole.decode("utf-16-le", "replace"))
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} The member {twice[:80]!r} is there twice.")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidRequest(f"{INVALID_BODY_PREFIX} {text[:40]} is not a number JSON can hold.")
    return number


def _depth(value: Any) -> int:
    """Level by level instead of recursively; `type is`, because a snapshot has a hundred thousand members."""
    depth, level = 0, [value]
    while level:
        depth += 1
        deeper = []
        for parent in level:
            for child in parent.values() if type(parent) is dict else parent:
                if type(child) is dict or type(child) is list:
                    deeper.append(child)
        level = deeper
    return depth


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"{INVALID_BODY_PREFIX} It is nested deeper than {MAX_JSON_DEPTH} levels.")


def _path(event: Mapping[str, Any]) -> str:
    """The path as our template has it: under a custom domain, the event's own may begin with a base path."""
    params: Mapping[str, str] = event.get("pathParameters") or {}
    resource = str(event.get("resource") or "")
    known = resource.startswith("/") and all(name in params for name in _PATH_PARAMETER.findall(resource))
    return _PATH_PARAMETER.sub(lambda step: params[step[1]], resource) if known else str(event["path"])


def _body(event: Mapping[str, Any]) -> bytes:
    text = event.get("body") or ""
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    many: Mapping[str, list[str]] = event.get("multiValueHeaders") or {}
    if many:
        return _joined([(name, value) for name, values in many.items() for value in values])
    return _joined(list((event.get("headers") or {}).items()))


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        glue = "; " if name == "cookie" else ", "
        headers[name] = f"{headers[name]}{glue}{value}" if name in headers else value
    return headers
