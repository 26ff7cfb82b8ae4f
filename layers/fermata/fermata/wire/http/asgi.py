"""Convert the scopes of an ASGI server to requests."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from fermata.wire.http.api_gateway import source_from_context
from fermata.wire.http.messages import HttpRequest, choose_request_id, join_headers

REQUEST_CONTEXT_HEADER = "x-amzn-request-context"
"""The request context of API Gateway, as JSON of the Lambda Web Adapter, which replaces what a caller sends."""


def request_from_asgi_scope(asgi_scope: Mapping[str, Any], body: bytes = b"") -> HttpRequest:
    """Convert an HTTP scope and the body that was read for it to a request."""
    headers = join_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in asgi_scope["headers"])
    return HttpRequest(
        id=choose_request_id(headers, ""),
        method=str(asgi_scope["method"]).upper(),
        path=remove_base_path(str(asgi_scope["path"]), headers.get(REQUEST_CONTEXT_HEADER, "")),
        headers=headers,
        query=dict(parse_qsl(asgi_scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)),
        body=body,
        source=_read_source(asgi_scope, headers),
    )


def remove_base_path(path: str, request_context: str) -> str:
    """Remove the base path of a custom domain, which the web adapter leaves in front (decision 0246).

    Args:
        path: The path as it arrived.
        request_context: The header of the web adapter. Its `resourcePath` is the template of the route, of which every
            parameter is one segment.
    """
    template = ""
    with suppress(ValueError, AttributeError):
        template = str(json.loads(request_context).get("resourcePath") or "")
    if "+}" in template:
        begin = path.find(template[: template.index("{")])
        return path[begin:] if begin > 0 else path
    surplus = path.count("/") - template.count("/")
    if surplus <= 0 or not template.startswith("/"):
        return path
    return "/" + path.split("/", surplus + 1)[-1]


def _read_source(asgi_scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the client's address: from the request context that the Lambda Web Adapter sets, else from the socket.

    The adapter replaces a header of that name that a client sends (decision 0011).
    """
    try:
        return source_from_context(json.loads(headers[REQUEST_CONTEXT_HEADER]))
    except (KeyError, ValueError, AttributeError, RecursionError):
        return str((asgi_scope.get("client") or ("",))[0])
