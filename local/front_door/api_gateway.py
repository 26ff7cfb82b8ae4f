"""What API Gateway does with a request before any function sees it, read from template.yaml."""

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from local import template
from local.template import Json

MAX_BODY_BYTES = 10 * 1024 * 1024
"""API Gateway takes no larger body."""
MAX_EVENT_BYTES = 6 * 1024 * 1024
"""Lambda takes no larger event: the body as a JSON text, the headers twice, and the rest of the event."""
EVENT_OVERHEAD_BYTES = 4096
"""About what an event holds besides the request."""
INTEGRATION_TIMEOUT_SECONDS = 29.0

DEFAULT_STATUS_CODES = {
    "MISSING_AUTHENTICATION_TOKEN": 403,
    "REQUEST_TOO_LARGE": 413,
    "THROTTLED": 429,
    "INTEGRATION_FAILURE": 504,
    "INTEGRATION_TIMEOUT": 504,
}
"""What AWS answers where the template does not say."""
CONTEXT_VARIABLE = re.compile(r"\$context\.(error\.messageString|error\.message|requestId)")
PathParts = tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """One path of the API and the function behind it. `streams` when its answer is sent as it comes."""

    path_parts: PathParts
    method: str
    function: str
    is_streamed: bool

    def matches(self, method: str, parts: PathParts) -> bool:
        if self.method not in ("ANY", method):
            return False
        if self.path_parts and self.path_parts[-1].endswith("+}"):
            fixed = len(self.path_parts) - 1
            return len(parts) > fixed and _match(self.path_parts[:fixed], parts[:fixed])
        return len(self.path_parts) == len(parts) and _match(self.path_parts, parts)

    @property
    def sort_key(self) -> tuple[int, ...]:
        """Words go before parameters, and those before the rest of a path."""
        return tuple(2 if part.endswith("+}") else int(part.startswith("{")) for part in self.path_parts)


@dataclass(frozen=True)
class GatewayResponse:
    """An answer of the gateway itself."""

    status: int
    headers: dict[str, str]
    body: bytes


class ApiGateway:
    """The routes and the gateway responses of the template's API."""

    def __init__(self, document: Json) -> None:
        (api,) = template.resources_of_type(document, "Api").values()
        self._responses: dict[str, Json] = api["Properties"].get("GatewayResponses", {})
        self._routes = sorted(_routes(document), key=lambda route: route.sort_key)

    def find_route(self, method: str, path: str) -> Route | None:
        parts = _parts(path)
        return next((route for route in self._routes if route.matches(method, parts)), None)

    def streaming_functions(self) -> set[str]:
        """The logical names of the functions that stream."""
        return {route.function for route in self._routes if route.is_streamed}

    def gateway_response(self, kind: str, request_id: str, message: str = "") -> GatewayResponse:
        """The gateway response of this kind, or of its default, with its variables filled in."""
        status = DEFAULT_STATUS_CODES.get(kind) or (500 if kind == "DEFAULT_5XX" else 400)
        default = "DEFAULT_5XX" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "DEFAULT_4XX"
        response = self._responses.get(kind) or self._responses.get(default, {})
        values = {"error.messageString": json.dumps(message), "error.message": message, "requestId": request_id}
        bodies = response.get("ResponseTemplates", {"application/json": '{"message":$context.error.messageString}'})
        body = CONTEXT_VARIABLE.sub(lambda found: values[found[1]], bodies["application/json"])
        headers = response.get("ResponseParameters", {}).get("Headers", {})
        given = {name.lower(): _header(source, request_id) for name, source in headers.items()}
        return GatewayResponse(
            response.get("StatusCode", status), {"content-type": "application/json"} | given, body.encode()
        )


def fits_lambda_event(headers: list[tuple[bytes, bytes]], query: bytes, body: bytes) -> bool:
    """Whether the request still fits into a Lambda event, with every character escaped that JSON escapes."""
    around = EVENT_OVERHEAD_BYTES + 2 * len(query) + 2 * sum(len(name) + len(value) + 6 for name, value in headers)
    if around + len(body) > MAX_EVENT_BYTES:
        return False
    if around + 6 * len(body) <= MAX_EVENT_BYTES:
        return True
    text = json.dumps(body.decode("utf-8", "replace"), ensure_ascii=False)
    return around + len(text.encode("utf-8", "surrogatepass")) <= MAX_EVENT_BYTES


def _routes(document: Json) -> list[Route]:
    found = []
    for name, function in template.resources_of_type(document, "Function").items():
        for event in function["Properties"].get("Events", {}).values():
            if event["Type"] == "Api":
                asked: Json = event["Properties"]
                streams = asked.get("ResponseTransferMode") == "RESPONSE_STREAM"
                found.append(Route(_parts(asked["Path"]), asked["Method"].upper(), name, streams))
    return found


def _parts(path: str) -> PathParts:
    return tuple(part for part in path.split("/") if part)


def _match(wanted: PathParts, given: PathParts) -> bool:
    return all(want.startswith("{") or want == got for want, got in zip(wanted, given, strict=True))


def _header(source: Any, request_id: str) -> str:
    """A literal stands in single quotes; the only variable we use is the request's id."""
    text = str(source)
    return request_id if text == "context.requestId" else text.strip("'")
