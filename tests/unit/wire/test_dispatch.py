"""From a request to an answer, over routes made for this test."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.wire.auth.tenant_store import update_tenant
from fermata.wire.http.dispatch import PublicRoute, RequestContext, Route, handle_request
from fermata.wire.http.messages import HttpRequest, Response, parse_json_body
from tests.resources import TestClock, resources_of_new_process
from tests.tenant_tokens import TokenSigner, make_tenant


def greet(visit: RequestContext) -> Response:
    said = parse_json_body(visit.request.body) if visit.request.body else {}
    return Response(200, {"user": visit.caller.user, "thing": visit.request.path_parameters["id"], **said})


def break_down(visit: RequestContext) -> Response:
    raise RuntimeError("the table is on fire")


def collide(visit: RequestContext) -> Response:
    raise Conflict("Somebody was here first.")


def odd_things_only(request: HttpRequest) -> None:
    if request.path_parameters["id"] == "even":
        raise InvalidRequest("No even things.")


ROUTES = (
    Route("GET", "/things/{id}", greet, ("ai.chat",)),
    Route("PUT", "/things/{id}", greet, ("ai.chat", "ai.turns.manage"), precondition=odd_things_only),
    Route("POST", "/things/{id}/break", break_down, ("ai.chat",)),
    Route("POST", "/things/{id}/collide", collide, ("ai.chat",)),
    PublicRoute("GET", "/healthz", lambda resources: Response(200, {"ok": True})),
)


@pytest.fixture
def bakery(resources: Resources) -> TokenSigner:
    return make_tenant(resources)


def ask(
    resources: Resources, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b""
) -> Response:
    return handle_request(resources, ROUTES, HttpRequest("request-1", method, path, headers or {}, body=body))


def test_a_known_caller_reaches_the_verb(resources: Resources, bakery: TokenSigner) -> None:
    answer = ask(resources, "GET", "/things/7", bakery.bearer_headers(user="ada"))
    assert (answer.status, answer.body) == (200, {"user": "ada", "thing": "7"})


ELSEWHERE = ["/", "/things", "/things/", "/things/7/", "/things/7/break/more", "//things/7", "/THINGS/7"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_an_unknown_path_is_not_found(resources: Resources, bakery: TokenSigner, path: str) -> None:
    answer = ask(resources, "GET", path, bakery.bearer_headers())
    assert (answer.status, answer.body) == (404, {"error": "Not found"})


@pytest.mark.parametrize("method", ["POST", "PATCH", "HEAD", "TRACE", "BREW"])
def test_a_wrong_method_is_told_the_right_ones(resources: Resources, method: str) -> None:
    answer = ask(resources, method, "/things/7")
    assert (answer.status, answer.body) == (405, {"error": "Method not allowed"})
    assert answer.headers["Allow"] == "GET, PUT, OPTIONS"


def test_the_checks_come_in_the_contracts_order(resources: Resources, bakery: TokenSigner) -> None:
    nobody: dict[str, str] = {}
    powerless = bakery.bearer_headers(capabilities=())
    foreign = bakery.cookie_headers(capabilities=()) | {"origin": "https://evil.example"}
    assert ask(resources, "DELETE", "/things/even", nobody, b"{").status == 405
    assert ask(resources, "PUT", "/things/even", nobody, b"{").body == {"error": "No even things."}
    assert ask(resources, "PUT", "/things/odd", foreign, b"{").body == {"error": "Forbidden: invalid origin"}
    assert ask(resources, "PUT", "/things/odd", nobody, b"{").body == {"error": "Unauthorized"}
    assert ask(resources, "PUT", "/things/odd", powerless, b"{").body == {"error": "Forbidden"}
    assert ask(resources, "PUT", "/things/odd", bakery.bearer_headers(), b"{").status == 400


def test_one_of_a_routes_capabilities_is_enough(resources: Resources, bakery: TokenSigner) -> None:
    assert ask(resources, "PUT", "/things/1", bakery.bearer_headers(capabilities=("ai.turns.manage",))).status == 200
    assert ask(resources, "GET", "/things/1", bakery.bearer_headers(capabilities=("ai.turns.manage",))).status == 403


def test_a_public_route_asks_nobody(resources: Resources) -> None:
    assert ask(resources, "GET", "/healthz").body == {"ok": True}


def test_our_own_bug_is_a_500_with_the_request_id(resources: Resources, bakery: TokenSigner) -> None:
    answer = ask(resources, "POST", "/things/1/break", bakery.bearer_headers())
    assert answer.status == 500
    assert answer.body["error"].endswith("request-1")
    assert "fire" not in json.dumps(answer.body)


def test_a_conflict_says_when_to_try_again(resources: Resources, bakery: TokenSigner) -> None:
    answer = ask(resources, "POST", "/things/1/collide", bakery.bearer_headers())
    assert (answer.status, answer.headers["Retry-After"]) == (409, "2")


def test_a_settings_table_that_is_gone_is_our_bug_for_caller_and_origin_alike(
    resources: Resources, bakery: TokenSigner
) -> None:
    lost = resources_of_new_process(resources, settings_table="gone")
    answer = ask(lost, "GET", "/things/1", bakery.bearer_headers() | {"origin": bakery.origin})
    assert answer.status == 500
    assert "Access-Control-Allow-Origin" not in answer.headers


class TestManners:
    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    @pytest.mark.parametrize("path", ["/healthz", "/things/1", "/nowhere"])
    def test_every_answer_has_them(self, resources: Resources, method: str, path: str) -> None:
        headers = ask(resources, method, path).headers
        assert headers["X-Request-Id"] == "request-1"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Origin"
        assert headers["Content-Type"] == "application/json"

    def test_an_answer_without_a_body_has_no_content_type(self, resources: Resources) -> None:
        assert "Content-Type" not in ask(resources, "OPTIONS", "/things/1").headers

    def test_a_verbs_own_headers_count(self, resources: Resources, bakery: TokenSigner) -> None:
        routes = (Route("GET", "/x", lambda visit: Response(200, {}, {"Cache-Control": "private"}), ("ai.chat",)),)
        answer = handle_request(resources, routes, HttpRequest("r", "GET", "/x", bakery.bearer_headers()))
        assert answer.headers["Cache-Control"] == "private"


class TestOrigins:
    def readable(self, answer: Response) -> Any:
        return answer.headers.get("Access-Control-Allow-Origin")

    def test_a_page_of_the_tenant_may_read_the_answer(self, resources: Resources, bakery: TokenSigner) -> None:
        answer = ask(resources, "GET", "/things/1", bakery.bearer_headers() | {"origin": bakery.origin})
        assert self.readable(answer) == bakery.origin
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.headers["Access-Control-Expose-Headers"] == "retry-after, x-request-id"

    def test_errors_can_be_read_by_it_too(self, resources: Resources, bakery: TokenSigner) -> None:
        origin = {"origin": bakery.origin}
        for answer in (
            ask(resources, "GET", "/things/1", origin),
            ask(resources, "GET", "/nowhere", origin),
            ask(resources, "PATCH", "/things/1", origin),
            ask(resources, "POST", "/things/1/break", bakery.bearer_headers() | origin),
        ):
            assert answer.status >= 400
            assert self.readable(answer) == bakery.origin

    def test_a_page_of_another_tenant_may_not(self, resources: Resources, bakery: TokenSigner) -> None:
        florist = make_tenant(resources, "florist")
        for path in ("/things/1", "/things/1/break"):
            method = "POST" if path.endswith("break") else "GET"
            answer = ask(resources, method, path, bakery.bearer_headers() | {"origin": florist.origin})
            assert answer.status in (200, 500)
            assert self.readable(answer) is None

    def test_a_strange_page_may_not(self, resources: Resources, bakery: TokenSigner) -> None:
        for headers in (bakery.bearer_headers(), {}):
            assert (
                self.readable(ask(resources, "GET", "/things/1", headers | {"origin": "https://evil.example"})) is None
            )


class TestPreflight:
    def test_it_lets_in_any_tenants_origin(self, resources: Resources, bakery: TokenSigner) -> None:
        answer = ask(
            resources, "OPTIONS", "/things/1", {"origin": bakery.origin, "access-control-request-method": "PUT"}
        )
        assert (answer.status, answer.body) == (204, None)
        assert answer.headers["Access-Control-Allow-Origin"] == bakery.origin
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, PUT"
        assert "authorization" in answer.headers["Access-Control-Allow-Headers"]

    def test_it_keeps_every_other_origin_out(self, resources: Resources, bakery: TokenSigner) -> None:
        answer = ask(resources, "OPTIONS", "/things/1", {"origin": "https://evil.example"})
        assert answer.status == 403
        assert not [name for name in answer.headers if name.startswith("Access-Control")]

    def test_on_an_unknown_path_it_lets_the_page_see_the_404(self, resources: Resources, bakery: TokenSigner) -> None:
        assert ask(resources, "OPTIONS", "/nowhere", {"origin": bakery.origin}).status == 204

    def test_without_an_origin_it_is_a_plain_question(self, resources: Resources) -> None:
        answer = ask(resources, "OPTIONS", "/things/1")
        assert (answer.status, answer.headers["Allow"]) == (204, "GET, PUT, OPTIONS")

    def test_an_origin_taken_away_is_kept_out_a_minute_later(
        self, resources: Resources, bakery: TokenSigner, clock: TestClock
    ) -> None:
        assert ask(resources, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 204
        update_tenant(resources, "bakery", origins=[])
        clock.advance(61)
        assert ask(resources, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 403
