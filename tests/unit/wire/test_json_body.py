"""Parsing of request bodies."""

import json
from typing import Any

import pytest

from fermata.domain.errors import InvalidRequest, PayloadTooLarge
from fermata.wire.bodies.requests import NewDefault
from fermata.wire.http.json_body import MAX_REQUEST_BYTES, parse_body, parse_json_body
from fermata.wire.http.messages import HttpRequest


class TestParseJsonBody:
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
    def test_a_body_that_is_no_json_object_is_refused_with_a_reason(self, body: bytes, says: str) -> None:
        with pytest.raises(InvalidRequest, match=rf"^Invalid request body\..*{says}"):
            parse_json_body(body)

    def test_a_body_too_large_for_the_platform_is_too_large_everywhere(self) -> None:
        with pytest.raises(PayloadTooLarge, match=r"more than 6\.3 MB.* Send fewer or smaller pictures"):
            parse_json_body(b" " * (MAX_REQUEST_BYTES + 1))

    def test_deep_but_not_too_deep_is_fine(self) -> None:
        value = parse_json_body(b'{"a":' + b"[" * 199 + b"]" * 199 + b"}")
        assert json.dumps(value).count("[") == 199

    def test_many_small_arrays_are_not_deep(self) -> None:
        assert len(parse_json_body(b'{"a":[' + b",".join([b"[]"] * 5000) + b"]}")["a"]) == 5000

    def test_a_lone_surrogate_becomes_a_replacement_character(self) -> None:
        value = parse_json_body(
            b'{"\\ud83d":"a\\uD83D b","whole":"\\ud83d\\ude00","tail":"\\ude00","plain":"\\\\ud83d"}'
        )
        assert value == {"\ufffd": "a\ufffd b", "whole": "\U0001f600", "tail": "\ufffd", "plain": "\\ud83d"}

    def test_a_byte_order_mark_is_skipped(self) -> None:
        assert parse_json_body(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


class TestParseBody:
    def parse(self, value: Any) -> NewDefault:
        return parse_body(HttpRequest("r", "PUT", "/", body=json.dumps(value).encode()), NewDefault)

    def test_a_right_body_becomes_the_model(self) -> None:
        assert self.parse({"credentialId": "c", "modelId": "m"}).model_id == "m"

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
        with pytest.raises(InvalidRequest) as raised:
            self.parse(value)
        assert raised.value.message.startswith("Invalid request body. ")
        assert raised.value.message.endswith(says)

    def test_the_value_of_a_member_is_never_repeated(self) -> None:
        with pytest.raises(InvalidRequest) as raised:
            self.parse({"credentialId": ["sk-secret"], "modelId": {"key": "sk-secret"}})
        assert "sk-secret" not in raised.value.message
