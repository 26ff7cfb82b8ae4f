"""Find routes, check sizes and make gateway responses as API Gateway does, from template.yaml (decision 0032)."""

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from local import template
from local.template import Json

MAX_BODY_BYTES = 10 * 1024 * 1024
"""Largest body that API Gateway accepts."""
MAX_EVENT_BYTES = 6 * 1024 * 1024
"""Largest event that Lambda accepts. It holds the body as JSON text, the headers twice, and `EVENT_OVERHEAD_BYTES`."""
EVENT_OVERHEAD_BYTES = 4096
"""Estimate of what an event holds besides the request."""
INTEGRATION_TIMEOUT_SECONDS = 29.0

DEFAULT_STATUS_CODES = {
    "MISSING_AUTHENTICATION_TOKEN": 403,
    "REQUEST_TOO_LARGE": 413,
    "THROTTLED": 429,
    "INTEGRATION_FAILURE": 504,
    "INTEGRATION_TIMEOUT": 504,
}
"""Status by gateway response type, where the template gives none."""
CONTEXT_VARIABLE = re.compile(r"\$context\.(error\.messageString|error\.message|requestId)")
PathParts = tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """One path of the API and the logical id of the function behind it. `is_streamed`: the response is not buffered."""

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
        """Order routes: literal parts before parameters, and those before a greedy parameter; a method before any."""
        ranks = (2 if part.endswith("+}") else int(part.startswith("{")) for part in self.path_parts)
        return (*ranks, int(self.method == "ANY"))


@dataclass(frozen=True)
class GatewayResponse:
    """A response that the gateway makes itself."""

    status: int
    headers: dict[str, str]
    body: bytes


class ApiGateway:
    """The routes and the gateway responses of the template's API."""

    def __init__(self, document: Json) -> None:
        (api,) = template.resources_of_type(document, "Api").values()
        self._responses: dict[str, Json] = api["Properties"].get("GatewayResponses", {})
        self._routes = sorted(_read_routes(document), key=lambda route: route.sort_key)

    def find_route(self, method: str, path: str) -> Route | None:
        if not path.startswith("/"):  # a target that names a host, as for a proxy: no client of an API sends one
            return None
        parts = _split_path(path)
        return next((route for route in self._routes if route.matches(method, parts)), None)

    def streaming_functions(self) -> set[str]:
        """Get the logical ids of the functions that stream."""
        return {route.function for route in self._routes if route.is_streamed}

    def gateway_response(self, response_type: str, request_id: str, message: str = "") -> GatewayResponse:
        """Make the gateway response of this type, or of its default type, with its variables filled in."""
        status = DEFAULT_STATUS_CODES.get(response_type) or (500 if response_type == "DEFAULT_5XX" else 400)
        default = "DEFAULT_5XX" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "DEFAULT_4XX"
        response = self._responses.get(response_type) or self._responses.get(default, {})
        values = {"error.messageString": json.dumps(message), "error.message": message, "requestId": request_id}
        bodies = response.get("ResponseTemplates", {"application/json": '{"message":$context.error.messageString}'})
        body = CONTEXT_VARIABLE.sub(lambda match: values[match[1]], bodies["application/json"])
        headers = {"content-type": "application/json"}
        for name, source in response.get("ResponseParameters", {}).get("Headers", {}).items():
            headers[name.lower()] = _header_value(source, request_id)
        return GatewayResponse(response.get("StatusCode", status), headers, body.encode())


def fits_lambda_event(headers: list[tuple[bytes, bytes]], query: bytes, body: bytes) -> bool:
    """Return whether the request fits into a Lambda event, once the body is escaped as JSON text."""
    overhead = EVENT_OVERHEAD_BYTES + 2 * len(query) + 2 * sum(len(name) + len(value) + 6 for name, value in headers)
    if overhead + len(body) > MAX_EVENT_BYTES:
        return False
    if overhead + 6 * len(body) <= MAX_EVENT_BYTES:
        return True
    text = json.dumps(body.decode("utf-8", "replace"), ensure_ascii=False)
    return overhead + len(text.encode("utf-8", "surrogatepass")) <= MAX_EVENT_BYTES


def _read_routes(document: Json) -> list[Route]:
    routes = []
    for logical_id, function in template.resources_of_type(document, "Function").items():
        for event in function["Properties"].get("Events", {}).values():
            if event["Type"] == "Api":
                properties: Json = event["Properties"]
                is_streamed = properties.get("ResponseTransferMode") == "RESPONSE_STREAM"
                method = properties["Method"].upper()
                routes.append(Route(_split_path(properties["Path"]), method, logical_id, is_streamed))
    return routes


def _split_path(path: str) -> PathParts:
    return tuple(part for part in path.split("/") if part)


def _match(pattern: PathParts, parts: PathParts) -> bool:
    pairs = zip(pattern, parts, strict=True)
    return all(expected.startswith("{") or expected == part for expected, part in pairs)


def _header_value(source: Any, request_id: str) -> str:
    """Evaluate a header of a gateway response: a literal in single quotes, or the request's id."""
    text = str(source)
    return request_id if text == "context.requestId" else text.strip("'")
