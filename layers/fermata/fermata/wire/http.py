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
from fermata.wire.said import mistakes
from fermata.words.errors import Invalid, TooLarge

MOST_BYTES = 6 * 1024 * 1024
"""Lambda itself takes no larger event; locally and behind the stream app this is what says so."""
MOST_DEPTH = 200
"""How deep JSON may be nested, so that nothing that walks it later runs out of stack."""
SANE_ID = re.compile(r"[A-Za-z0-9._:=+/-]{1,128}")
STEP = re.compile(r"\{(\w+)\+?\}")
BAD_BODY = "Invalid request body."

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Request:
    """`headers` have lower-case names; `params` are the path's, once a route has been found."""

    id: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return self.headers.get("origin", "")


@dataclass(frozen=True)
class Answer:
    """`body` goes out as JSON, `raw` as the bytes it is, or `stream` as it comes (the stream app only).

    `closed` is called when a stream is over, however it came to that.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterable[bytes] | AsyncIterable[bytes] | None = None
    raw: bytes | None = None
    closed: Callable[[], None] | None = None

    @property
    def is_empty(self) -> bool:
        return self.body is None and self.raw is None and self.stream is None

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def of_event(event: Mapping[str, Any]) -> Request:
    """A request as API Gateway's REST proxy hands it over."""
    headers = _headers(event)
    return Request(
        id=request_id(headers, str((event.get("requestContext") or {}).get("requestId", ""))),
        method=str(event["httpMethod"]).upper(),
        path=_path(event),
        headers=headers,
        query=dict(event.get("queryStringParameters") or {}),
        body=_body(event),
    )


def of_scope(scope: Mapping[str, Any], body: bytes = b"") -> Request:
    """A request as an ASGI server hands it over."""
    pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
    headers = _joined(pairs)
    return Request(
        id=request_id(headers, ""),
        method=str(scope["method"]).upper(),
        path=str(scope["path"]),
        headers=headers,
        query=dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)),
        body=body,
    )


def to_event(answer: Answer) -> dict[str, Any]:
    """An answer as API Gateway's REST proxy wants it."""
    content, is_binary = answer.content(), answer.raw is not None
    return {
        "statusCode": answer.status,
        "headers": dict(answer.headers),
        "body": base64.b64encode(content).decode() if is_binary else content.decode(),
        "isBase64Encoded": is_binary,
    }


def request_id(headers: Mapping[str, str], otherwise: str) -> str:
    """The caller's own x-request-id when it is fit for a log line, else the platform's, else a new one."""
    for offered in (headers.get("x-request-id", ""), otherwise):
        if SANE_ID.fullmatch(offered):
            return offered
    return new_id()


def whole_number(request: Request, name: str, otherwise: int, *, most: int = 10**9) -> int:
    """A number of the query, from 0 up to `most`."""
    text = request.query.get(name, str(otherwise))
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        raise Invalid(f"'{name}' must be a whole number up to {most}.")
    return int(text)


def read_body(request: Request, model: type[Model], *, tolerant: bool = False) -> Model:
    """The body as `model`; Invalid names the first members that are wrong, never what they held.

    `tolerant`: members that nobody knows are passed over, whatever the model says about them.
    """
    value = read_json(request.body)
    try:
        return model.model_validate(value, extra="ignore" if tolerant else None)
    except ValidationError as error:
        raise Invalid(f"{BAD_BODY} {mistakes(error)}") from error


def read_json(body: bytes) -> dict[str, Any]:
    """A JSON object, whatever the content type says it is. Half characters in its texts become U+FFFD."""
    if len(body) > MOST_BYTES:
        raise TooLarge(f"The request body has {len(body):,} bytes; at most {MOST_BYTES:,} are taken.")
    if not body.strip():
        raise Invalid(f"{BAD_BODY} It is empty; send a JSON object.")
    return as_object(as_text(body))


def as_text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{BAD_BODY} It is not UTF-8.") from error


def as_object(text: str) -> dict[str, Any]:
    """A JSON object that whatever comes later can walk and store."""
    try:
        value = _parsed(text)
    except json.JSONDecodeError as error:
        raise Invalid(f"{BAD_BODY} It is not JSON: {error.msg} at character {error.pos}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise Invalid(f"{BAD_BODY} It holds a number that is too long.") from error
    if not isinstance(value, dict):
        raise Invalid(f"{BAD_BODY} It must be a JSON object.")
    if text.count("{") + text.count("[") > MOST_DEPTH and _depth(value) > MOST_DEPTH:
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
        raise Invalid(f"{BAD_BODY} The member {twice[:80]!r} is there twice.")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Invalid(f"{BAD_BODY} {text[:40]} is not a number JSON can hold.")
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


def _too_deep() -> Invalid:
    return Invalid(f"{BAD_BODY} It is nested deeper than {MOST_DEPTH} levels.")


def _path(event: Mapping[str, Any]) -> str:
    """The path as our template has it: under a custom domain, the event's own may begin with a base path."""
    params: Mapping[str, str] = event.get("pathParameters") or {}
    resource = str(event.get("resource") or "")
    known = resource.startswith("/") and all(name in params for name in STEP.findall(resource))
    return STEP.sub(lambda step: params[step[1]], resource) if known else str(event["path"])


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
