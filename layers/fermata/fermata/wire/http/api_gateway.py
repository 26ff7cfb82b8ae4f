"""Convert the events of API Gateway's REST proxy to requests, and responses to what the proxy expects."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from fermata.wire.http.messages import HttpRequest, Response, choose_request_id, join_headers

_PATH_PARAMETER = re.compile(r"\{(\w+)\+?\}")


def request_from_event(event: Mapping[str, Any]) -> HttpRequest:
    """Convert a proxy event to a request."""
    headers = _headers(event)
    context: Mapping[str, Any] = event.get("requestContext") or {}
    return HttpRequest(
        id=choose_request_id(headers, str(context.get("requestId", ""))),
        method=str(event["httpMethod"]).upper(),
        path=_path(event),
        headers=headers,
        query=dict(event.get("queryStringParameters") or {}),
        body=_body(event),
        source=source_from_context(context),
    )


def source_from_context(context: Mapping[str, Any]) -> str:
    """Return the client's address. A header such as X-Forwarded-For is not read, because clients can write one."""
    return str((context.get("identity") or {}).get("sourceIp") or "")


def to_proxy_response(response: Response) -> dict[str, Any]:
    """Convert a response to the result that a proxy function returns. A raw body that is no text is encoded in base64.

    API Gateway decodes base64 only for the media types that it is told are binary.
    """
    content = response.to_bytes()
    is_binary = response.raw_body is not None and not response.headers.get("Content-Type", "").startswith("text/")
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": base64.b64encode(content).decode() if is_binary else content.decode(),
        "isBase64Encoded": is_binary,
    }


def _path(event: Mapping[str, Any]) -> str:
    """Fill in the template's path: under a custom domain, the event's own path may begin with a base path."""
    parameters: Mapping[str, str] = event.get("pathParameters") or {}
    resource = str(event.get("resource") or "")
    is_complete = resource.startswith("/") and all(name in parameters for name in _PATH_PARAMETER.findall(resource))
    return _PATH_PARAMETER.sub(lambda match: parameters[match[1]], resource) if is_complete else str(event["path"])


def _body(event: Mapping[str, Any]) -> bytes:
    text = event.get("body") or ""
    return base64.b64decode(text) if event.get("isBase64Encoded") else text.encode("utf-8", "surrogatepass")


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    multi_value_headers: Mapping[str, list[str]] = event.get("multiValueHeaders") or {}
    if multi_value_headers:
        return join_headers((name, value) for name, values in multi_value_headers.items() for value in values)
    return join_headers((event.get("headers") or {}).items())
