"""Convert the scopes of an ASGI server to requests."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fermata.wire.http.messages import HttpRequest, choose_request_id, join_headers


def request_from_asgi_scope(asgi_scope: Mapping[str, Any], body: bytes = b"") -> HttpRequest:
    """Convert an HTTP scope and the body that was read for it to a request."""
    headers = join_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in asgi_scope["headers"])
    return HttpRequest(
        id=choose_request_id(headers, ""),
        method=str(asgi_scope["method"]).upper(),
        path=str(asgi_scope["path"]),
        headers=headers,
        query=dict(parse_qsl(asgi_scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)),
        body=body,
    )
