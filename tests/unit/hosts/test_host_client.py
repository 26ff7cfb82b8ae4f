"""Send requests to a host, sign them, and convert every kind of response."""

import gzip
import threading
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.client import (
    HOST_BUILD_SECONDS,
    HOST_READ_SECONDS,
    MAX_HOST_RESPONSE_BYTES,
    HostClient,
    HostConnectionPool,
    get_connection_pool,
)
from fermata.hosts.errors import HostError
from tests.scripted_host import HOST_SECRET, ScriptedHost
from tests.waiting import wait_until

NO_TIMES = {"verify_exp": False, "verify_iat": False}
HostCall = Callable[[HostClient], Any]


def get_error(host: ScriptedHost, host_call: HostCall = lambda client: client.list_tables()) -> HostError:
    with pytest.raises(HostError) as caught:
        host_call(host.open_client())
    return caught.value


@pytest.mark.parametrize(
    ("host_call", "route", "query"),
    [
        (lambda host: host.list_tables(), "GET tables", {}),
        (
            lambda host: host.list_documents("t 1&", status="draft", author="u1", limit=25, offset=0),
            "GET documents",
            {"tableId": "t 1&", "status": "draft", "authorUserId": "u1", "limit": "25", "offset": "0"},
        ),
        (
            lambda host: host.list_documents("t1", status=None, author=None, limit=5, offset=10),
            "GET documents",
            {"tableId": "t1", "limit": "5", "offset": "10"},
        ),
        (lambda host: host.get_document("d/1 ü"), "GET documents/d%2F1%20%C3%BC", {}),
        (lambda host: host.search_documents("rye", limit=3), "GET documents", {"query": "rye", "limit": "3"}),
        (lambda host: host.list_users(), "GET users", {}),
        (
            lambda host: host.list_media(query="oven", mime_type="image", limit=9),
            "GET media",
            {"query": "oven", "mimeType": "image", "limit": "9"},
        ),
        (lambda host: host.list_plugins(), "GET plugins", {}),
        (lambda host: host.validate_plugin("seo"), "POST plugins/seo/validate", {}),
        (lambda host: host.activate_plugin("seo", effect_key="turn/1/0"), "POST plugins/seo/activate", {}),
    ],
)
def test_each_method_sends_one_request(
    host: ScriptedHost, host_call: HostCall, route: str, query: dict[str, str]
) -> None:
    host.script_response(route, {"any": "json"})
    assert host_call(host.open_client()) == {"any": "json"}
    (request,) = host.requests
    assert (f"{request.method} {request.path}", request.query) == (route, query)


def test_every_request_carries_a_token_of_a_minute_for_its_caller(host: ScriptedHost) -> None:
    host.script_response("GET users", {"users": []})
    host.open_client().list_users()
    assert host.requests[0].claims == {
        "iss": "fermata",
        "aud": "host",
        "sub": "ada",
        "tenant": "bakery",
        "capabilities": ["ai.chat", "content.manage"],
        "scope": "content",
        "turn": "turn-1",
        "iat": 1_800_000_000,
        "exp": 1_800_000_060,
    }
    token = host.requests[0].headers["authorization"].removeprefix("Bearer ")
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "kid": "k1", "typ": "JWT"}


def test_a_hosts_token_is_valid_for_no_other_audience(host: ScriptedHost) -> None:
    host.script_response("GET users", {"users": []})
    host.open_client().list_users()
    token = host.requests[0].headers["authorization"].removeprefix("Bearer ")
    with pytest.raises(jwt.InvalidAudienceError):
        jwt.decode(token, HOST_SECRET, algorithms=["HS256"], audience="fermata", options=NO_TIMES)


def test_only_what_changes_something_carries_an_idempotency_key(host: ScriptedHost) -> None:
    for route in ("POST plugins/seo/validate", "POST plugins/seo/activate"):
        host.script_response(route, {})
    host.open_client().validate_plugin("seo")
    host.open_client().activate_plugin("seo", effect_key="turn/2/0")
    assert [request.headers.get("idempotency-key") for request in host.requests] == [None, "turn/2/0"]


def test_the_next_request_reuses_the_connection(host: ScriptedHost) -> None:
    host.script_response("GET users", {"users": []})
    for _ in range(3):
        host.open_client().list_users()
    assert (len(host.requests), len({request.port for request in host.requests})) == (3, 1)


def test_a_request_with_side_effects_has_a_connection_of_its_own(host: ScriptedHost) -> None:
    host.script_response("POST plugins/seo/activate", {})
    fresh = HostConnectionPool(UrlGuard(loopback=True), 5.0, keeps_connections=False)
    client = HostClient(host.url, lambda: "t", lambda _seconds: fresh)
    for number in range(2):
        client.activate_plugin("seo", effect_key=f"turn/{number}/0")
    assert len({request.port for request in host.requests}) == 2
    assert get_connection_pool(loopback=True, seconds=HOST_READ_SECONDS).keeps_connections
    assert not get_connection_pool(loopback=True, seconds=HOST_BUILD_SECONDS).keeps_connections


def test_cookies_of_a_host_are_not_sent_back(host: ScriptedHost) -> None:
    host.script_response("GET users", {"users": []}, headers={"set-cookie": "session=of-this-tenant; Path=/"})
    host.open_client().list_users()
    host.open_client().list_users()
    assert all("cookie" not in request.headers for request in host.requests)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_id_cannot_climb_to_another_path(host: ScriptedHost, name: str) -> None:
    error = get_error(host, lambda client: client.get_document(name))
    assert (error.status, host.requests) == (404, [])


@pytest.mark.parametrize(
    ("status", "is_transient", "message"),
    [
        (400, False, "refused GET tables (400): no."),
        (401, False, "does not take Fermata's token: no. An administrator should check its secret and clock."),
        (403, False, "does not let this user do that: no."),
        (404, False, "has nothing at GET tables: no."),
        (408, True, "failed (408): no."),
        (422, False, "refused GET tables (422): no."),
        (429, True, "failed (429): no."),
        (500, True, "failed (500): no."),
        (503, True, "failed (503): no."),
    ],
)
def test_a_refusal_contains_the_hosts_own_reason(
    host: ScriptedHost, status: int, is_transient: bool, message: str
) -> None:
    host.script_response("GET tables", {"error": "no."}, status=status)
    error = get_error(host)
    assert str(error) == f"The content system (127.0.0.1) {message}"
    assert (error.is_transient, error.status) == (is_transient, status)


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", {"error": {"deep": 1}}, ["no"], {"error": " "}])
def test_a_refusal_without_a_reason_is_reported_without_one(host: ScriptedHost, body: Any) -> None:
    host.script_response("GET tables", body, status=502)
    assert str(get_error(host)) == "The content system (127.0.0.1) failed (502)."


def test_a_reason_that_repeats_the_token_or_has_no_end_is_cut(host: ScriptedHost) -> None:
    token = "tok.en.en"
    client = HostClient(host.url, lambda: token, host.pool_for)
    host.script_response("GET tables", {"error": f"who is {token}? " + "x" * 5000}, status=400)
    with pytest.raises(HostError) as caught:
        client.list_tables()
    assert token not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("where", ["http://169.254.169.254/latest/meta-data/", "/fermata/users"])
def test_a_redirect_is_not_followed(host: ScriptedHost, where: str) -> None:
    host.script_response("GET tables", b"", status=302, headers={"location": where})
    assert "redirects GET tables, which is not followed" in str(get_error(host))
    assert len(host.requests) == 1


NO_JSON = [b"<html>Sign in</html>", b"", b" ", b'{"tables": [', b"[" * 100_000, b"[" * 200 + b"]" * 200, b"\xff\xfe"]


@pytest.mark.parametrize("body", [*NO_JSON, b'{"n": NaN}', b'{"n": 1e999}', b'{"n": -Infinity}'])
def test_a_body_that_is_no_json_is_reported_as_such(host: ScriptedHost, body: bytes) -> None:
    host.script_response("GET tables", body, headers={"content-type": "text/html"})
    error = get_error(host)
    assert str(error) == "The content system (127.0.0.1) answered GET tables with what is no JSON (text/html)."
    assert not error.is_transient


def test_a_response_in_an_unknown_compression_is_reported(host: ScriptedHost) -> None:
    host.script_response("GET tables", b"\x1b\x00", headers={"content-encoding": "br"})
    assert "compressed (br)" in str(get_error(host))


def test_a_compressed_response_is_read(host: ScriptedHost) -> None:
    host.script_response("GET tables", gzip.compress(b"no JSON"), headers={"content-encoding": "gzip"})
    assert str(get_error(host)).endswith("with what is no JSON (application/json, gzip).")


def test_lone_surrogates_are_replaced_because_utf_8_cannot_encode_them(host: ScriptedHost) -> None:
    host.script_response("GET tables", b'{"\\ud83d": ["a\\ude00b", "\\ud83d\\ude00"]}')
    assert host.open_client().list_tables() == {"\ufffd": ["a\ufffdb", "\U0001f600"]}


def test_a_response_of_the_maximum_size_is_accepted_and_one_byte_more_is_not(host: ScriptedHost) -> None:
    largest = b'"' + b"x" * (MAX_HOST_RESPONSE_BYTES - 2) + b'"'
    host.script_response("GET tables", largest)
    host.script_response("GET tables", largest + b" ")
    host.script_response("GET tables", {"tables": []})
    assert len(host.open_client().list_tables()) == MAX_HOST_RESPONSE_BYTES - 2
    assert "with more than 4 MB. Ask for less." in str(get_error(host))
    assert host.open_client().list_tables() == {"tables": []}


def test_a_host_that_stalls_within_a_response_times_out(host: ScriptedHost) -> None:
    host.stall_seconds = 0.2
    completed = threading.Event()
    host.script_response("GET tables", {"tables": []}, completed_by=completed)
    error = get_error(host)
    completed.set()
    assert not error.is_transient, "it had all the time there is"
    assert "gave no answer within" in str(error)


def test_the_outcome_of_a_failed_action_is_reported_as_unknown(host: ScriptedHost) -> None:
    doubt = "Whether it took effect is unknown: check before repeating it."
    host.script_response("POST plugins/seo/activate", {"error": "try later"}, status=500)
    assert str(get_error(host, lambda client: client.activate_plugin("seo", effect_key="k"))).endswith(
        f"try later. {doubt}"
    )
    host.script_response("GET tables", {"error": "try later"}, status=500)
    assert doubt not in str(get_error(host))


def test_aborting_ends_the_request_at_once(host: ScriptedHost) -> None:
    completed = threading.Event()
    host.script_response("GET tables", {"tables": []}, completed_by=completed)
    client = host.open_client()
    client.abort()  # nothing to end yet
    aborting = threading.Thread(
        target=lambda: (wait_until(lambda: host.requests, "the request has arrived"), client.abort())
    )
    aborting.start()
    with pytest.raises(HostError, match="was not waited for: the turn is over") as caught:
        client.list_tables()
    aborting.join()
    completed.set()
    assert not caught.value.is_transient
    host.script_response("GET users", {"users": []})
    assert client.list_users() == {"users": []}


def get_connection_error(url: str, guard: UrlGuard) -> HostError:
    pool = HostConnectionPool(guard, 2.0)
    with pytest.raises(HostError) as caught:
        HostClient(url, lambda: "t", lambda _seconds: pool).list_tables()
    pool.close()
    return caught.value


def test_a_host_that_is_down_may_be_up_a_moment_later() -> None:
    error = get_connection_error("http://127.0.0.1:9", UrlGuard(loopback=True))
    assert (str(error), error.is_transient) == (
        "The content system (127.0.0.1) did not answer: it could not be reached.",
        True,
    )


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9", "https://127.0.0.1", "https://169.254.169.254", "https://10.0.0.1", "https://8.8.8.8:8443"],
)
def test_on_aws_no_request_goes_to_a_private_address_or_without_tls(url: str) -> None:
    error = get_connection_error(url, UrlGuard())
    assert not error.is_transient
    assert "must not be asked: " in str(error)
    assert str(error).endswith("An administrator has to correct its address.")
