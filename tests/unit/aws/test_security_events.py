"""Security events name the client's network and a pseudonym of the user, whatever a client writes into its headers."""

import json
from typing import Any

import pytest

from fermata.aws import observability
from fermata.aws.security_events import SecurityEvent, begin_request_of_source, log_security_event, make_user_pseudonym
from fermata.wire.http.api_gateway import request_from_event
from fermata.wire.http.asgi import request_from_asgi_scope

FORGED = {"x-forwarded-for": "10.0.0.1"}


def read_line(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    [record] = caplog.records
    line: dict[str, Any] = json.loads(observability.logger.registered_formatter.format(record))
    return line


def test_the_source_is_that_of_api_gateway_and_not_of_a_header() -> None:
    context = {"identity": {"sourceIp": "203.0.113.7"}}
    event = {"httpMethod": "GET", "path": "/", "headers": FORGED, "requestContext": context}
    assert request_from_event(event).source == "203.0.113.7"
    assert request_from_event({"httpMethod": "GET", "path": "/", "headers": FORGED}).source == ""


@pytest.mark.parametrize(
    ("context", "source"),
    [('{"identity":{"sourceIp":"203.0.113.7"}}', "203.0.113.7"), ("no JSON", "127.0.0.1"), ("[]", "127.0.0.1")],
)
def test_the_source_of_a_streamed_request_is_in_the_context_of_the_adapter(context: str, source: str) -> None:
    headers = [(b"x-amzn-request-context", context.encode()), (b"x-forwarded-for", b"10.0.0.1")]
    scope = {"method": "GET", "path": "/", "headers": headers, "client": ("127.0.0.1", 9)}
    assert request_from_asgi_scope(scope).source == source


def test_an_event_names_the_source_and_a_pseudonym_in_place_of_the_user(caplog: pytest.LogCaptureFixture) -> None:
    observability.reset_log_keys(request_id="r", tenant="bakery", user="ada@bakery.example")
    begin_request_of_source("203.0.113.7")
    log_security_event(SecurityEvent.LIMIT_REACHED, "rate", limit=5)
    observability.reset_log_keys()
    begin_request_of_source("")
    line = read_line(caplog)
    assert (line["source"], line["reason"], line["limit"], line["security"]) == ("203.0.113.7", "rate", 5, True)
    assert line["user"] == make_user_pseudonym("bakery", "ada@bakery.example")
    assert "ada" not in json.dumps(line)


def test_a_pseudonym_differs_between_tenants() -> None:
    assert make_user_pseudonym("bakery", "ada") != make_user_pseudonym("rival", "ada")


def test_a_source_that_is_no_text_of_one_line_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    begin_request_of_source("1.2.3.4\nforged")
    log_security_event(SecurityEvent.TOKEN_REFUSED, "missing")
    assert "source" not in read_line(caplog)
