"""Put answers and errors into the envelope that clients of the CMS agent's own protocol read (decision 0453)."""

from dataclasses import replace
from typing import Any

from fermata.wire.http.messages import Response

CMS_AGENT_PATH_PREFIX = "/v1/agent/"
_CODES = {
    400: "VALIDATION_ERROR",
    401: "UNAUTHORIZED",
    402: "BUDGET_EXHAUSTED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    409: "CONFLICT",
    410: "NOT_FOUND",
    413: "VALIDATION_ERROR",
    422: "VALIDATION_ERROR",
    429: "RATE_LIMIT_EXCEEDED",
    500: "INTERNAL_ERROR",
    502: "EXTERNAL_SERVICE_ERROR",
    503: "EXTERNAL_SERVICE_ERROR",
}


def build_cms_envelope(data: Any, timestamp: str, next_cursor: str | None = None) -> dict[str, Any]:
    """Return the body of a success.

    Args:
        data: What was asked for.
        timestamp: When it is answered.
        next_cursor: Where a list goes on.
    """
    meta = {"timestamp": timestamp} | ({"nextCursor": next_cursor} if next_cursor else {})
    return {"success": True, "data": data, "meta": meta}


def shape_cms_agent_error(path: str, response: Response, timestamp: str) -> Response:
    """Return the response of an operation of this protocol with its error in the envelope; any other unchanged.

    Args:
        path: The path of the request.
        response: As the service has built it.
        timestamp: When it is answered.
    """
    body = response.body
    if not path.startswith(CMS_AGENT_PATH_PREFIX) or response.status < 400 or not isinstance(body, dict):
        return response
    words = body.get("error")
    if not isinstance(words, str):
        return response
    details = {name: value for name, value in body.items() if name != "error"}
    error = {"code": _CODES.get(response.status, "INTERNAL_ERROR"), "message": words}
    envelope = {
        "success": False,
        "error": error | ({"details": details} if details else {}),
        "meta": {"timestamp": timestamp},
    }
    return replace(response, body=envelope)
