"""Requests and their query parameters."""

import pytest

from fermata.domain.errors import InvalidRequest
from fermata.wire.http.asgi import request_from_asgi_scope
from fermata.wire.http.messages import HttpRequest, read_integer_parameter


def test_an_asgi_scope_becomes_a_request() -> None:
    scope = {
        "method": "POST",
        "path": "/admin/api/ai/chat/site",
        "query_string": b"after=5&name=a%20b&empty=",
        "headers": [(b"origin", b"https://bakery.example"), (b"cookie", b"a=1"), (b"cookie", b"b=2")],
    }
    request = request_from_asgi_scope(scope, b"{}")
    assert request.query == {"after": "5", "name": "a b", "empty": ""}
    assert request.headers == {"origin": "https://bakery.example", "cookie": "a=1; b=2"}
    assert (request.method, request.path, request.body) == ("POST", "/admin/api/ai/chat/site", b"{}")


@pytest.mark.parametrize(("text", "number"), [(None, 7), ("0", 0), ("12", 12)])
def test_an_integer_parameter_is_read(text: str | None, number: int) -> None:
    query = {} if text is None else {"limit": text}
    assert (
        read_integer_parameter(HttpRequest(id="r", method="GET", path="/", query=query), "limit", 7, maximum=50)
        == number
    )


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²", "51", "9" * 30])
def test_a_parameter_that_is_no_integer_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="'limit' must be a whole number up to 50"):
        read_integer_parameter(
            HttpRequest(id="r", method="GET", path="/", query={"limit": text}), "limit", 7, maximum=50
        )
