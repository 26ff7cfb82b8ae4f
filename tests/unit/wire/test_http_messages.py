import base64
import json
from typing import Any

import pytest

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.requests import NewDefault
from fermata.wire.http.messages import (
    MAX_REQUEST_BYTES,
    HttpRequest,
    Response,
    parse_body,
    parse_json_body,
    read_integer_parameter,
    request_from_asgi_scope,
    request_from_event,
    to_proxy_response,
)


def event(**members: Any) -> dict[str, Any]:
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


class TestUnderstandingAnEvent:
    def test_headers_are_found_by_their_lower_case_name(self) -> None:
        request = request_from_event(event(multiValueHeaders={"X-Thing": ["a", "b"], "COOKIE": ["x=1", "y=2"]}))
        assert request.headers == {"x-thing": "a, b", "cookie": "x=1; y=2"}

    def test_single_value_headers_will_do(self) -> None:
        assert request_from_event(event(multiValueHeaders=None)).origin == "https://bakery.example"

    def test_a_request_without_headers_query_or_body_is_understood(self) -> None:
        bare = event(headers=None, multiValueHeaders=None, body=None, pathParameters=None, requestContext=None)
        request = request_from_event(bare | {"resource": "/healthz", "path": "/healthz", "httpMethod": "get"})
        assert (request.method, request.path, request.body, request.query) == ("GET", "/healthz", b"", {})

    def test_a_base64_body_is_decoded(self) -> None:
        encoded = base64.b64encode(b'{"caf\xc3\xa9":1}').decode()
        assert request_from_event(event(body=encoded, isBase64Encoded=True)).body == b'{"caf\xc3\xa9":1}'

    def test_a_base_path_of_a_custom_domain_is_left_off(self) -> None:
        assert (
            request_from_event(event(path="/fermata/admin/api/ai/defaults/site")).path == "/admin/api/ai/defaults/site"
        )

    def test_the_catch_all_keeps_the_whole_path(self) -> None:
        caught = event(resource="/{proxy+}", path="/no/such", pathParameters={"proxy": "no/such"})
        assert request_from_event(caught).path == "/no/such"

    def test_the_callers_request_id_is_kept(self) -> None:
        assert request_from_event(event(multiValueHeaders={"X-Request-Id": ["trace-1"]})).id == "trace-1"

    @pytest.mark.parametrize("odd", ["", "a b", "x" * 129, "<script>", "a\nb"])
    def test_an_odd_request_id_gives_way_to_the_platforms(self, odd: str) -> None:
        assert request_from_event(event(multiValueHeaders={"x-request-id": [odd]})).id == "from-the-platform"

    def test_a_request_that_has_no_id_gets_one(self) -> None:
        nameless = event(requestContext={})
        assert len(request_from_event(nameless).id) == 21
        assert request_from_event(nameless).id != request_from_event(nameless).id


def test_an_asgi_scope_is_understood_the_same() -> None:
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


def test_an_answer_becomes_what_the_proxy_wants() -> None:
    assert to_proxy_response(Response(201, {"text": "é"}, {"X-A": "b"})) == {
        "statusCode": 201,
        "headers": {"X-A": "b"},
        "body": '{"text":"\\u00e9"}',
        "isBase64Encoded": False,
    }
    assert to_proxy_response(Response(204))["body"] == ""


def test_bytes_go_through_the_proxy_as_base64() -> None:
    told = to_proxy_response(Response(200, raw_body=b"\xff\xd8", headers={"Content-Type": "image/jpeg"}))
    assert (told["body"], told["isBase64Encoded"]) == ("/9g=", True)


@pytest.mark.parametrize(("text", "number"), [(None, 7), ("0", 0), ("12", 12)])
def test_a_number_of_the_query_is_read(text: str | None, number: int) -> None:
    query = {} if text is None else {"limit": text}
    assert (
        read_integer_parameter(HttpRequest(id="r", method="GET", path="/", query=query), "limit", 7, maximum=50)
        == number
    )


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²", "51", "9" * 30])
def test_a_number_that_is_none_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="'limit' must be a whole number up to 50"):
        read_integer_parameter(
            HttpRequest(id="r", method="GET", path="/", query={"limit": text}), "limit", 7, maximum=50
        )


class TestReadingJson:
    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"", "It is empty"),
            (b" \n", "It is empty"),
            (b"{", "It is not JSON: .* at character 1"),
            (b"{'a':1}", "It is not JSON"),
            (b"a=1&b=2", "It is not JSON"),
            (b'{"a":1} {"b":2}', "It is not JSON"),
            (b'{"a":"\xff"}', "It is not UTF-8"),
            (b"[1]", "It must be a JSON object"),
            (b'"text"', "It must be a JSON object"),
            (b"null", "It must be a JSON object"),
            (b'{"a":NaN}', "NaN is not a number"),
            (b'{"a":-Infinity}', "-Infinity is not a number"),
            (b'{"a":1e999}', "1e999 is not a number"),
            (b'{"a":' + b"9" * 5000 + b"}", "a number that is too long"),
            (b'{"a":{"b":1,"b":2}}', "The member 'b' is there twice"),
            (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 200 levels"),
            (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 200 levels"),
        ],
    )
    def test_what_is_no_json_object_is_refused_with_a_reason(self, body: bytes, says: str) -> None:
        with pytest.raises(InvalidRequest, match=rf"^Invalid request body\..*{says}"):
            parse_json_body(body)

    def test_a_body_too_large_for_the_platform_is_too_large_everywhere(self) -> None:
        with pytest.raises(PayloadTooLarge, match="at most 6,291,456"):
            parse_json_body(b" " * (MAX_REQUEST_BYTES + 1))

    def test_deep_but_not_too_deep_is_fine(self) -> None:
        value = parse_json_body(b'{"a":' + b"[" * 199 + b"]" * 199 + b"}")
        assert json.dumps(value).count("[") == 199

    def test_many_small_things_are_not_deep(self) -> None:
        assert len(parse_json_body(b'{"a":[' + b",".join([b"[]"] * 5000) + b"]}")["a"]) == 5000

    def test_half_an_emoji_becomes_a_replacement_character(self) -> None:
        value = parse_json_body(
            b'{"\\ud83d":"a\\uD83D b","whole":"\\ud83d\\ude00","tail":"\\ude00","plain":"\\\\ud83d"}'
        )
        assert value == {"\ufffd": "a\ufffd b", "whole": "\U0001f600", "tail": "\ufffd", "plain": "\\ud83d"}

    def test_a_byte_order_mark_is_no_obstacle(self) -> None:
        assert parse_json_body(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


class TestReadingABody:
    def read(self, value: Any) -> NewDefault:
        return parse_body(HttpRequest("r", "PUT", "/", body=json.dumps(value).encode()), NewDefault)

    def test_a_right_body_becomes_the_model(self) -> None:
        assert self.read({"credentialId": "c", "modelId": "m"}).model_id == "m"

    @pytest.mark.parametrize(
        ("value", "says"),
        [
            ({"modelId": "m"}, "'credentialId' is missing."),
            ({"credentialId": 5, "modelId": "m"}, "'credentialId' must be a string."),
            ({"credentialId": "", "modelId": "m"}, "'credentialId' must not be empty."),
            ({"credentialId": "x" * 201, "modelId": "m"}, "'credentialId' may have at most 200 characters."),
            ({"credentialId": "c", "modelId": "m", "model": 1}, "'model' is not known here."),
            ({"credentialId": "c", "modelId": "m", "credential_id": "x"}, "'credential_id' is not known here."),
            ({}, "'credentialId' is missing. 'modelId' is missing."),
            ({"credentialId": "c", "modelId": "m"} | dict.fromkeys("abcde", 1), "'c' is not known here. And 2 more."),
        ],
    )
    def test_a_wrong_member_is_named(self, value: dict[str, Any], says: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            self.read(value)
        assert refused.value.message.startswith("Invalid request body. ")
        assert refused.value.message.endswith(says)

    def test_what_a_member_held_is_never_repeated(self) -> None:
        with pytest.raises(InvalidRequest) as refused:
            self.read({"credentialId": ["sk-secret"], "modelId": {"key": "sk-secret"}})
        assert "sk-secret" not in refused.value.message
