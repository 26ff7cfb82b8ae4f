"""Dispatch of requests, over routes made for this test."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.wire.auth.tenant_store import update_tenant
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.json_body import parse_json_body
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.http.routing import RequestContext, Route, Router
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.wire.operations import make_operation, make_public_operation


def refuse_even_things(request: HttpRequest) -> None:
    if request.path_parameters["id"] == "even":
        raise InvalidRequest("No even things.")


router = Router("api")


@router.handles(make_operation("PUT", "/things/{id}", ("ai.chat", "ai.turns.manage")), precondition=refuse_even_things)
@router.handles(make_operation("GET", "/things/{id}"))
def greet(context: RequestContext) -> Response:
    body = parse_json_body(context.request.body) if context.request.body else {}
    return Response(200, {"user": context.caller.user, "thing": context.request.path_parameters["id"], **body})


@router.handles(make_operation("POST", "/things/{id}/break"))
def raise_runtime_error(context: RequestContext) -> Response:
    raise RuntimeError("the table is on fire")


@router.handles(make_operation("POST", "/things/{id}/collide"))
def raise_conflict(context: RequestContext) -> Response:
    raise Conflict("Somebody was here first.", retry_after=2)


@router.handles_public(make_public_operation("GET", "/healthz"))
def show_health(resources: Resources) -> Response:
    return Response(200, {"ok": True})


@pytest.fixture
def bakery(resources: Resources) -> TokenSigner:
    return make_tenant(resources)


def send(
    resources: Resources, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> Response:
    return handle_request(resources, router.routes, HttpRequest("request-1", method, path, headers or {}, body=body))


def test_a_request_of_an_authenticated_caller_reaches_the_handler(resources: Resources, bakery: TokenSigner) -> None:
    response = send(resources, "GET", "/things/7", bakery.bearer_headers(user="ada"))
    assert (response.status, response.body) == (200, {"user": "ada", "thing": "7"})


UNKNOWN_PATHS = ["/", "/things", "/things/", "/things/7/", "/things/7/break/more", "//things/7", "/THINGS/7"]


@pytest.mark.parametrize("path", UNKNOWN_PATHS)
def test_an_unknown_path_is_not_found(resources: Resources, bakery: TokenSigner, path: str) -> None:
    response = send(resources, "GET", path, bakery.bearer_headers())
    assert (response.status, response.body) == (404, {"error": "Not found"})


@pytest.mark.parametrize("method", ["POST", "PATCH", "HEAD", "TRACE", "BREW"])
def test_a_response_to_a_wrong_method_names_the_right_ones(resources: Resources, method: str) -> None:
    response = send(resources, method, "/things/7")
    assert (response.status, response.body) == (405, {"error": "Method not allowed"})
    assert response.headers["Allow"] == "GET, PUT, OPTIONS"


def test_the_checks_have_the_documented_order(resources: Resources, bakery: TokenSigner) -> None:
    without_token: dict[str, str] = {}
    without_capability = bakery.bearer_headers(capabilities=())
    foreign = bakery.cookie_headers(capabilities=()) | {"origin": "https://evil.example"}
    assert send(resources, "DELETE", "/things/even", without_token, b"{").status == 405
    assert send(resources, "PUT", "/things/even", without_token, b"{").body == {"error": "No even things."}
    assert send(resources, "PUT", "/things/odd", foreign, b"{").body == {"error": "Forbidden: invalid origin"}
    assert send(resources, "PUT", "/things/odd", without_token, b"{").body == {"error": "Unauthorized"}
    assert send(resources, "PUT", "/things/odd", without_capability, b"{").body == {"error": "Forbidden"}
    assert send(resources, "PUT", "/things/odd", bakery.bearer_headers(), b"{").status == 400


def test_one_of_a_routes_capabilities_is_enough(resources: Resources, bakery: TokenSigner) -> None:
    assert send(resources, "PUT", "/things/1", bakery.bearer_headers(capabilities=("ai.turns.manage",))).status == 200
    assert send(resources, "GET", "/things/1", bakery.bearer_headers(capabilities=("ai.turns.manage",))).status == 403


def test_a_public_route_needs_no_token(resources: Resources) -> None:
    assert send(resources, "GET", "/healthz").body == {"ok": True}


def test_an_unexpected_error_is_a_500_with_the_request_id(resources: Resources, bakery: TokenSigner) -> None:
    response = send(resources, "POST", "/things/1/break", bakery.bearer_headers())
    assert response.status == 500
    assert response.body["error"].endswith("request-1")
    assert "fire" not in json.dumps(response.body)


def test_a_conflict_that_ends_by_itself_says_when_to_try_again(resources: Resources, bakery: TokenSigner) -> None:
    response = send(resources, "POST", "/things/1/collide", bakery.bearer_headers())
    assert (response.status, response.headers["Retry-After"]) == (409, "2")


def test_a_missing_settings_table_is_a_500_without_cors_headers(resources: Resources, bakery: TokenSigner) -> None:
    lost = resources_of_new_process(resources, settings_table="gone")
    response = send(lost, "GET", "/things/1", bakery.bearer_headers() | {"origin": bakery.origin})
    assert response.status == 500
    assert "Access-Control-Allow-Origin" not in response.headers


class TestStandardHeaders:
    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    @pytest.mark.parametrize("path", ["/healthz", "/things/1", "/nowhere"])
    def test_every_response_has_them(self, resources: Resources, method: str, path: str) -> None:
        headers = send(resources, method, path).headers
        assert headers["X-Request-Id"] == "request-1"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Origin"
        assert headers["Content-Type"] == "application/json"

    def test_a_response_without_a_body_has_no_content_type(self, resources: Resources) -> None:
        assert "Content-Type" not in send(resources, "OPTIONS", "/things/1").headers

    def test_a_handlers_own_headers_take_precedence(self, resources: Resources, bakery: TokenSigner) -> None:
        handler_response = Response(200, {}, {"Cache-Control": "private"})
        routes = [Route(make_operation("GET", "/x"), lambda context: handler_response)]
        response = handle_request(resources, routes, HttpRequest("r", "GET", "/x", bakery.bearer_headers()))
        assert response.headers["Cache-Control"] == "private"


class TestOrigins:
    def readable_origin(self, response: Response) -> Any:
        return response.headers.get("Access-Control-Allow-Origin")

    def test_a_page_of_the_tenant_may_read_the_response(self, resources: Resources, bakery: TokenSigner) -> None:
        response = send(resources, "GET", "/things/1", bakery.bearer_headers() | {"origin": bakery.origin})
        assert self.readable_origin(response) == bakery.origin
        assert response.headers["Access-Control-Allow-Credentials"] == "true"
        exposed = set(response.headers["Access-Control-Expose-Headers"].split(", "))
        limits = {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"}
        assert exposed == {"etag", "retry-after", "x-request-id"} | limits

    def test_a_page_of_the_tenant_may_read_errors_too(self, resources: Resources, bakery: TokenSigner) -> None:
        origin = {"origin": bakery.origin}
        for response in (
            send(resources, "GET", "/things/1", origin),
            send(resources, "GET", "/nowhere", origin),
            send(resources, "PATCH", "/things/1", origin),
            send(resources, "POST", "/things/1/break", bakery.bearer_headers() | origin),
        ):
            assert response.status >= 400
            assert self.readable_origin(response) == bakery.origin

    def test_a_page_of_another_tenant_may_not_read_it(self, resources: Resources, bakery: TokenSigner) -> None:
        florist = make_tenant(resources, "florist")
        for path in ("/things/1", "/things/1/break"):
            method = "POST" if path.endswith("break") else "GET"
            response = send(resources, method, path, bakery.bearer_headers() | {"origin": florist.origin})
            assert response.status in (200, 500)
            assert self.readable_origin(response) is None

    def test_a_page_of_no_tenant_may_not_read_it(self, resources: Resources, bakery: TokenSigner) -> None:
        for headers in (bakery.bearer_headers(), {}):
            assert (
                self.readable_origin(send(resources, "GET", "/things/1", headers | {"origin": "https://evil.example"}))
                is None
            )


class TestPreflight:
    def test_it_allows_the_origin_of_any_tenant(self, resources: Resources, bakery: TokenSigner) -> None:
        response = send(
            resources, "OPTIONS", "/things/1", {"origin": bakery.origin, "access-control-request-method": "PUT"}
        )
        assert (response.status, response.body) == (204, None)
        assert response.headers["Access-Control-Allow-Origin"] == bakery.origin
        assert response.headers["Access-Control-Allow-Methods"] == "GET, PUT"
        assert "authorization" in response.headers["Access-Control-Allow-Headers"]

    def test_it_refuses_every_other_origin(self, resources: Resources, bakery: TokenSigner) -> None:
        response = send(resources, "OPTIONS", "/things/1", {"origin": "https://evil.example"})
        assert response.status == 403
        assert not [name for name in response.headers if name.startswith("Access-Control")]

    def test_on_an_unknown_path_the_page_may_read_the_404(self, resources: Resources, bakery: TokenSigner) -> None:
        assert send(resources, "OPTIONS", "/nowhere", {"origin": bakery.origin}).status == 204

    def test_without_an_origin_it_names_the_methods(self, resources: Resources) -> None:
        response = send(resources, "OPTIONS", "/things/1")
        assert (response.status, response.headers["Allow"]) == (204, "GET, PUT, OPTIONS")

    def test_a_removed_origin_is_refused_a_minute_later(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        assert send(resources, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 204
        update_tenant(resources, "bakery", origins=[])
        clock.advance(61)
        assert send(resources, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 403
