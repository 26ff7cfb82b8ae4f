"""Conversion of proxy events to requests, and of responses to proxy responses."""

import base64
from typing import Any

import pytest

from fermata.wire.http.api_gateway import request_from_event, to_proxy_response
from fermata.wire.http.messages import Response


def make_event(**members: Any) -> dict[str, Any]:
    return {
        "resource": "/admin/api/ai/defaults/{scope}",
        "path": "/admin/api/ai/defaults/site",
        "httpMethod": "PUT",
        "headers": {"Origin": "https://bakery.example"},
        "multiValueHeaders": {"Origin": ["https://bakery.example"]},
        "queryStringParameters": None,
        "pathParameters": {"scope": "site"},
        "requestContext": {"requestId": "from-the-platform"},
        "body": '{"a":1}',
        "isBase64Encoded": False,
    } | members


class TestRequestFromEvent:
    def test_headers_are_found_by_their_lower_case_name(self) -> None:
        request = request_from_event(make_event(multiValueHeaders={"X-Thing": ["a", "b"], "COOKIE": ["x=1", "y=2"]}))
        assert request.headers == {"x-thing": "a, b", "cookie": "x=1; y=2"}

    def test_single_value_headers_are_enough(self) -> None:
        assert request_from_event(make_event(multiValueHeaders=None)).origin == "https://bakery.example"

    def test_a_request_without_headers_query_or_body_is_understood(self) -> None:
        bare_event = make_event(
            headers=None, multiValueHeaders=None, body=None, pathParameters=None, requestContext=None
        )
        request = request_from_event(bare_event | {"resource": "/healthz", "path": "/healthz", "httpMethod": "get"})
        assert (request.method, request.path, request.body, request.query) == ("GET", "/healthz", b"", {})

    def test_a_base64_body_is_decoded(self) -> None:
        encoded = base64.b64encode(b'{"caf\xc3\xa9":1}').decode()
        assert request_from_event(make_event(body=encoded, isBase64Encoded=True)).body == b'{"caf\xc3\xa9":1}'

    def test_the_base_path_of_a_custom_domain_is_removed(self) -> None:
        assert (
            request_from_event(make_event(path="/fermata/admin/api/ai/defaults/site")).path
            == "/admin/api/ai/defaults/site"
        )

    def test_the_catch_all_keeps_the_whole_path(self) -> None:
        event = make_event(resource="/{proxy+}", path="/no/such", pathParameters={"proxy": "no/such"})
        assert request_from_event(event).path == "/no/such"

    def test_the_callers_request_id_is_kept(self) -> None:
        assert request_from_event(make_event(multiValueHeaders={"X-Request-Id": ["trace-1"]})).id == "trace-1"

    @pytest.mark.parametrize("odd", ["", "a b", "x" * 129, "<script>", "a\nb"])
    def test_an_odd_request_id_gives_way_to_the_platforms(self, odd: str) -> None:
        assert request_from_event(make_event(multiValueHeaders={"x-request-id": [odd]})).id == "from-the-platform"

    def test_a_request_that_has_no_id_gets_one(self) -> None:
        event_without_id = make_event(requestContext={})
        assert len(request_from_event(event_without_id).id) == 21
        assert request_from_event(event_without_id).id != request_from_event(event_without_id).id


def test_a_response_becomes_a_proxy_response() -> None:
    assert to_proxy_response(Response(201, {"text": "é"}, {"X-A": "b"})) == {
        "statusCode": 201,
        "headers": {"X-A": "b"},
        "body": '{"text":"é"}',
        "isBase64Encoded": False,
    }
    assert to_proxy_response(Response(204))["body"] == ""


def test_half_of_a_surrogate_pair_is_escaped_because_utf_8_has_none() -> None:
    assert to_proxy_response(Response(200, {"text": "é\ud83e"}))["body"] == r'{"text":"\u00e9\ud83e"}'


def test_raw_bytes_are_encoded_in_base64() -> None:
    proxy_response = to_proxy_response(Response(200, raw_body=b"\xff\xd8", headers={"Content-Type": "image/jpeg"}))
    assert (proxy_response["body"], proxy_response["isBase64Encoded"]) == ("/9g=", True)


def test_raw_text_is_sent_as_text_because_it_is_no_binary_media_type() -> None:
    events = Response(200, raw_body=b"data: {}\n\n", headers={"Content-Type": "text/event-stream"})
    assert to_proxy_response(events)["body"] == "data: {}\n\n"
    assert not to_proxy_response(events)["isBase64Encoded"]
