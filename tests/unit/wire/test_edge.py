"""From a request to an answer, over routes made for this test."""

import json
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.wire.edge import PublicRoute, Route, Visit, serve
from fermata.wire.http import Answer, Request, read_json
from fermata.wire.tenants import change_tenant
from fermata.words.errors import Conflict, Invalid
from tests.callers import Signer, make_tenant
from tests.desk import TestClock, another_process


def greet(visit: Visit) -> Answer:
    said = read_json(visit.request.body) if visit.request.body else {}
    return Answer(200, {"user": visit.caller.user, "thing": visit.request.params["id"], **said})


def break_down(visit: Visit) -> Answer:
    raise RuntimeError("the table is on fire")


def collide(visit: Visit) -> Answer:
    raise Conflict("Somebody was here first.")


def odd_things_only(request: Request) -> None:
    if request.params["id"] == "even":
        raise Invalid("No even things.")


ROUTES = (
    Route("GET", "/things/{id}", greet, ("ai.chat",)),
    Route("PUT", "/things/{id}", greet, ("ai.chat", "ai.turns.manage"), first=odd_things_only),
    Route("POST", "/things/{id}/break", break_down, ("ai.chat",)),
    Route("POST", "/things/{id}/collide", collide, ("ai.chat",)),
    PublicRoute("GET", "/healthz", lambda desk: Answer(200, {"ok": True})),
)


@pytest.fixture
def bakery(desk: Desk) -> Signer:
    return make_tenant(desk)


def ask(desk: Desk, method: str, path: str, headers: dict[str, str] | None = None, body: bytes = b"") -> Answer:
    return serve(desk, ROUTES, Request("request-1", method, path, headers or {}, body=body))


def test_a_known_caller_reaches_the_verb(desk: Desk, bakery: Signer) -> None:
    answer = ask(desk, "GET", "/things/7", bakery.bearer(user="ada"))
    assert (answer.status, answer.body) == (200, {"user": "ada", "thing": "7"})


ELSEWHERE = ["/", "/things", "/things/", "/things/7/", "/things/7/break/more", "//things/7", "/THINGS/7"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_an_unknown_path_is_not_found(desk: Desk, bakery: Signer, path: str) -> None:
    answer = ask(desk, "GET", path, bakery.bearer())
    assert (answer.status, answer.body) == (404, {"error": "Not found"})


@pytest.mark.parametrize("method", ["POST", "PATCH", "HEAD", "TRACE", "BREW"])
def test_a_wrong_method_is_told_the_right_ones(desk: Desk, method: str) -> None:
    answer = ask(desk, method, "/things/7")
    assert (answer.status, answer.body) == (405, {"error": "Method not allowed"})
    assert answer.headers["Allow"] == "GET, PUT, OPTIONS"


def test_the_checks_come_in_the_contracts_order(desk: Desk, bakery: Signer) -> None:
    nobody: dict[str, str] = {}
    powerless = bakery.bearer(capabilities=())
    foreign = bakery.cookie(capabilities=()) | {"origin": "https://evil.example"}
    assert ask(desk, "DELETE", "/things/even", nobody, b"{").status == 405
    assert ask(desk, "PUT", "/things/even", nobody, b"{").body == {"error": "No even things."}
    assert ask(desk, "PUT", "/things/odd", foreign, b"{").body == {"error": "Forbidden: invalid origin"}
    assert ask(desk, "PUT", "/things/odd", nobody, b"{").body == {"error": "Unauthorized"}
    assert ask(desk, "PUT", "/things/odd", powerless, b"{").body == {"error": "Forbidden"}
    assert ask(desk, "PUT", "/things/odd", bakery.bearer(), b"{").status == 400


def test_one_of_a_routes_capabilities_is_enough(desk: Desk, bakery: Signer) -> None:
    assert ask(desk, "PUT", "/things/1", bakery.bearer(capabilities=("ai.turns.manage",))).status == 200
    assert ask(desk, "GET", "/things/1", bakery.bearer(capabilities=("ai.turns.manage",))).status == 403


def test_a_public_route_asks_nobody(desk: Desk) -> None:
    assert ask(desk, "GET", "/healthz").body == {"ok": True}


def test_our_own_bug_is_a_500_with_the_request_id(desk: Desk, bakery: Signer) -> None:
    answer = ask(desk, "POST", "/things/1/break", bakery.bearer())
    assert answer.status == 500
    assert answer.body["error"].endswith("request-1")
    assert "fire" not in json.dumps(answer.body)


def test_a_conflict_says_when_to_try_again(desk: Desk, bakery: Signer) -> None:
    answer = ask(desk, "POST", "/things/1/collide", bakery.bearer())
    assert (answer.status, answer.headers["Retry-After"]) == (409, "2")


def test_a_settings_table_that_is_gone_is_our_bug_for_caller_and_origin_alike(desk: Desk, bakery: Signer) -> None:
    lost = another_process(desk, settings_table="gone")
    answer = ask(lost, "GET", "/things/1", bakery.bearer() | {"origin": bakery.origin})
    assert answer.status == 500
    assert "Access-Control-Allow-Origin" not in answer.headers


class TestManners:
    @pytest.mark.parametrize("method", ["GET", "PATCH"])
    @pytest.mark.parametrize("path", ["/healthz", "/things/1", "/nowhere"])
    def test_every_answer_has_them(self, desk: Desk, method: str, path: str) -> None:
        headers = ask(desk, method, path).headers
        assert headers["X-Request-Id"] == "request-1"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Origin"
        assert headers["Content-Type"] == "application/json"

    def test_an_answer_without_a_body_has_no_content_type(self, desk: Desk) -> None:
        assert "Content-Type" not in ask(desk, "OPTIONS", "/things/1").headers

    def test_a_verbs_own_headers_count(self, desk: Desk, bakery: Signer) -> None:
        routes = (Route("GET", "/x", lambda visit: Answer(200, {}, {"Cache-Control": "private"}), ("ai.chat",)),)
        answer = serve(desk, routes, Request("r", "GET", "/x", bakery.bearer()))
        assert answer.headers["Cache-Control"] == "private"


class TestOrigins:
    def readable(self, answer: Answer) -> Any:
        return answer.headers.get("Access-Control-Allow-Origin")

    def test_a_page_of_the_tenant_may_read_the_answer(self, desk: Desk, bakery: Signer) -> None:
        answer = ask(desk, "GET", "/things/1", bakery.bearer() | {"origin": bakery.origin})
        assert self.readable(answer) == bakery.origin
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.headers["Access-Control-Expose-Headers"] == "retry-after, x-request-id"

    def test_errors_can_be_read_by_it_too(self, desk: Desk, bakery: Signer) -> None:
        origin = {"origin": bakery.origin}
        for answer in (
            ask(desk, "GET", "/things/1", origin),
            ask(desk, "GET", "/nowhere", origin),
            ask(desk, "PATCH", "/things/1", origin),
            ask(desk, "POST", "/things/1/break", bakery.bearer() | origin),
        ):
            assert answer.status >= 400
            assert self.readable(answer) == bakery.origin

    def test_a_page_of_another_tenant_may_not(self, desk: Desk, bakery: Signer) -> None:
        florist = make_tenant(desk, "florist")
        for path in ("/things/1", "/things/1/break"):
            method = "POST" if path.endswith("break") else "GET"
            answer = ask(desk, method, path, bakery.bearer() | {"origin": florist.origin})
            assert answer.status in (200, 500)
            assert self.readable(answer) is None

    def test_a_strange_page_may_not(self, desk: Desk, bakery: Signer) -> None:
        for headers in (bakery.bearer(), {}):
            assert self.readable(ask(desk, "GET", "/things/1", headers | {"origin": "https://evil.example"})) is None


class TestPreflight:
    def test_it_lets_in_any_tenants_origin(self, desk: Desk, bakery: Signer) -> None:
        answer = ask(desk, "OPTIONS", "/things/1", {"origin": bakery.origin, "access-control-request-method": "PUT"})
        assert (answer.status, answer.body) == (204, None)
        assert answer.headers["Access-Control-Allow-Origin"] == bakery.origin
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, PUT"
        assert "authorization" in answer.headers["Access-Control-Allow-Headers"]

    def test_it_keeps_every_other_origin_out(self, desk: Desk, bakery: Signer) -> None:
        answer = ask(desk, "OPTIONS", "/things/1", {"origin": "https://evil.example"})
        assert answer.status == 403
        assert not [name for name in answer.headers if name.startswith("Access-Control")]

    def test_on_an_unknown_path_it_lets_the_page_see_the_404(self, desk: Desk, bakery: Signer) -> None:
        assert ask(desk, "OPTIONS", "/nowhere", {"origin": bakery.origin}).status == 204

    def test_without_an_origin_it_is_a_plain_question(self, desk: Desk) -> None:
        answer = ask(desk, "OPTIONS", "/things/1")
        assert (answer.status, answer.headers["Allow"]) == (204, "GET, PUT, OPTIONS")

    def test_an_origin_taken_away_is_kept_out_a_minute_later(
        self, desk: Desk, bakery: Signer, clock: TestClock
    ) -> None:
        assert ask(desk, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 204
        change_tenant(desk, "bakery", origins=[])
        clock.go_on(61)
        assert ask(desk, "OPTIONS", "/things/1", {"origin": bakery.origin}).status == 403
