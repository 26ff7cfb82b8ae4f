import json
from email.utils import formatdate
from time import time

import pytest

from fermata.drivers.error_mapping import error_from_response, error_from_stream, parse_retry_after, redact_secrets

KEY = "sk-ant-very-secret"


def anthropic_error_body(kind: str, message: str, **members: object) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, **members}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable", "message"),
    [
        (
            401,
            anthropic_error_body("authentication_error", "invalid x-api-key"),
            "provider_auth",
            False,
            "Anthropic authentication failed. Check your API key in /admin/ai/providers.",
        ),
        (
            403,
            b"",
            "provider_auth",
            False,
            "Anthropic authentication failed. Check your API key in /admin/ai/providers.",
        ),
        (
            402,
            anthropic_error_body("billing_error", "No credit."),
            "provider_quota",
            False,
            "Anthropic quota or rate limit reached: No credit. Check your account balance.",
        ),
        (429, b"", "provider_quota", True, "Anthropic quota or rate limit reached. Check your account balance."),
        (
            529,
            anthropic_error_body("overloaded_error", "Overloaded"),
            "provider_overloaded",
            True,
            "Anthropic service error (529): Overloaded. Please try again.",
        ),
        (500, b'{"error":"down"}', "provider_error", True, "Anthropic service error (500): down. Please try again."),
        (502, b"<html>bad gateway</html>", "provider_error", True, "Anthropic service error (502). Please try again."),
        (
            400,
            anthropic_error_body("invalid_request_error", "max_tokens: too large"),
            "provider_request",
            False,
            "Anthropic error (400): max_tokens: too large.",
        ),
        (413, b"too large", "provider_overflow", False, "Anthropic error (413): too large."),
        (
            404,
            anthropic_error_body("not_found_error", "model: x"),
            "provider_request",
            False,
            "Anthropic error (404): model: x.",
        ),
    ],
)
def test_each_status_has_a_code_and_a_retry_flag(
    status: int, body: bytes, code: str, retryable: bool, message: str
) -> None:
    error = error_from_response("Anthropic", status, {}, body, KEY)
    assert (error.code, error.retryable, error.message, error.status) == (code, retryable, message, status)


def test_a_spent_quota_is_not_retried_like_a_rate_limit() -> None:
    body = anthropic_error_body(
        "rate_limit_error", "Monthly limit", details={"error_code": "enforced_spend_limit_reached"}
    )
    assert error_from_response("Anthropic", 429, {}, body, KEY).retryable is False


@pytest.mark.parametrize(("header", "retryable"), [("true", True), ("false", False)])
def test_x_should_retry_is_obeyed(header: str, retryable: bool) -> None:
    for status in (400, 500):
        assert error_from_response("Anthropic", status, {"x-should-retry": header}, b"", KEY).retryable is retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_retry_after_may_be_a_date() -> None:
    seconds = parse_retry_after({"retry-after": formatdate(time() + 20, usegmt=True)})
    assert seconds is not None
    assert 17 < seconds <= 20
    assert parse_retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0.0


@pytest.mark.parametrize(
    ("kind", "code", "retryable"),
    [
        ("overloaded_error", "provider_overloaded", True),
        ("rate_limit_error", "provider_quota", True),
        ("api_error", "provider_error", True),
        ("timeout_error", "provider_error", True),
        ("invalid_request_error", "provider_request", False),
        ("authentication_error", "provider_auth", False),
        ("something_new", "provider_error", False),
    ],
)
def test_an_error_in_the_stream_is_classified_by_its_type(kind: str, code: str, retryable: bool) -> None:
    error = error_from_stream("Anthropic", {"type": kind, "message": "Sorry"}, KEY)
    assert (error.code, error.retryable, error.message) == (code, retryable, "Anthropic stream error: Sorry")


def test_no_message_holds_a_secret() -> None:
    text = redact_secrets(f"key {KEY} and sk-proj-abc123 and Bearer eyJ.a.b, but sk-no", "plain-key")
    assert text == "key [redacted] and [redacted] and [redacted], but sk-no"
    assert redact_secrets("Wrong key: sk-p**********4321. Or sk-…98765", "") == "Wrong key: [redacted] Or [redacted]"
    assert redact_secrets("the plain-key was wrong", "plain-key") == "the [redacted] was wrong"
    assert KEY not in error_from_response("Anthropic", 400, {}, anthropic_error_body("x", f"bad {KEY}"), KEY).message


def test_a_long_reason_is_cut() -> None:
    assert len(error_from_response("Anthropic", 400, {}, b"x" * 5000, KEY).message) < 240


def openai_error_body(
    message: str, code: object = None, kind: str = "invalid_request_error", **members: object
) -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code, **members}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (401, openai_error_body("You didn't provide an API key."), "provider_auth", False),
        (401, openai_error_body("Incorrect API key provided.", "invalid_api_key"), "provider_auth", False),
        (429, openai_error_body("Slow down.", "rate_limit_exceeded", "tokens"), "provider_quota", True),
        (429, openai_error_body("No credit.", "insufficient_quota", "insufficient_quota"), "provider_quota", False),
        (429, openai_error_body("Rate limited upstream.", 429), "provider_quota", True),
        (402, openai_error_body("Insufficient credits.", 402), "provider_quota", False),
        (404, openai_error_body("No such model.", "model_not_found"), "provider_request", False),
        (400, openai_error_body("Too many tokens.", "context_length_exceeded"), "provider_overflow", False),
        (503, openai_error_body("Overloaded", kind="service_unavailable_error"), "provider_overloaded", True),
        (500, openai_error_body("Sorry", "server_error", "server_error"), "provider_error", True),
        (400, b'[{"error": {"code": 400, "message": "Bad", "status": "INVALID_ARGUMENT"}}]', "provider_request", False),
        (
            400,
            b'{"object": "error", "message": "Bad", "type": "BadRequestError", "code": 400}',
            "provider_request",
            False,
        ),
        (422, b'{"detail": [{"loc": ["body", "x"], "msg": "Extra inputs"}]}', "provider_request", False),
        (404, b'{"error": "model \'x\' not found"}', "provider_request", False),
    ],
)
def test_every_providers_errors_are_classified(status: int, body: bytes, code: str, retryable: bool) -> None:
    error = error_from_response("Peer", status, {}, body, KEY)
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'[{"error": {"code": 400, "message": "Bad list"}}]', "Bad list"),
        (b'{"object": "error", "message": "Bare"}', "Bare"),
        (b'{"detail": "Not here"}', "Not here"),
        (openai_error_body("Provider returned error", 400,
                           metadata={"raw": "max_tokens: too large", "provider_name": "X"}),
         "Provider returned error (max_tokens: too large)"),
        (b'{"unknown": "shape"}', '{"unknown": "shape"}'),
        (b'"text"', '"text"'),
    ],
)  # fmt: skip
def test_the_providers_own_words_are_quoted(body: bytes, words: str) -> None:
    assert error_from_response("Peer", 400, {}, body, KEY).message == f"Peer error (400): {words}."


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 215000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens",
        "the request exceeds the available context size, try increasing it",
        "Your input exceeds the context window of this model.",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "Request too large for the model",
        "total message size 10176584 exceeds limit 2097152",
        "You passed 9000 input tokens and requested 0 output tokens. However, the model's context length is only 8192",
    ],
)
def test_a_request_that_is_too_large_has_a_code_of_its_own(words: str) -> None:
    assert error_from_response("Peer", 400, {}, openai_error_body(words), KEY).code == "provider_overflow"
    assert error_from_stream("Peer", {"message": words}, KEY).code == "provider_overflow"


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_other_failures_are_not_mistaken_for_image_errors(status: int) -> None:
    assert (
        error_from_response("Peer", status, {}, openai_error_body("does not support images"), KEY).code
        != "provider_images"
    )


@pytest.mark.parametrize(
    "words",
    [
        "Invalid tool schema",
        "max_tokens: must be at least 1",
        "Unknown parameter: 'prompt'.",
        "tools.3: name is too long",
    ],
)
def test_other_refusals_are_ordinary_bad_requests(words: str) -> None:
    assert error_from_response("Peer", 400, {}, openai_error_body(words), KEY).code == "provider_request"


def test_the_detail_is_longer_than_the_message_and_holds_no_secret() -> None:
    error = error_from_response("Peer", 400, {}, openai_error_body(f"{'x' * 900} stream_options {KEY}"), KEY)
    assert "stream_options" in error.detail
    assert "stream_options" not in error.message
    assert KEY not in error.detail


@pytest.mark.parametrize("odd", ["\n", "\r\n\t", "\x1b", "\x00", "\u202e", "\u2028", "\ufeff", "\ud83d"])
def test_a_reason_is_shown_on_one_line_without_control_characters(odd: str) -> None:
    error = error_from_response(
        "Anthropic", 404, {}, anthropic_error_body("not_found_error", f"model: a{odd}b"), ""
    ).message
    assert error == "Anthropic error (404): model: a b."
    assert error_from_stream("Anthropic", {"message": f"a{odd}b"}, "").message == "Anthropic stream error: a b"


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 8192),
        ("request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 200_000),
        ("This model's maximum prompt length is 131,072 but the request contains 537812 tokens.", 131_072),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("the model is loaded with context length of only 4096 tokens: context length exceeded", 4096),
        ("Range of input length should be [1, 98304]", 98_304),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
            8193,
        ),
        ("Please reduce the length of the messages. Current length is 40000 while limit is 8192", 8192),
        ("Invalid request: Your request exceeded model token limit: 131072", 131_072),
        ("prompt token count of 135291 exceeds the limit of 128000", 128_000),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
            272_000,
        ),
        ("Requested 140000 tokens, but the model only supports 131072", 131_072),
        ("Number of input tokens (9000) exceeds maximum (8192)", 8192),
        ("Prompt length 9000 exceeds maximum 8192", 8192),
        ("prompt (9000) > max_model_len 8192", 8192),
        ("too many tokens: total number of tokens in the prompt cannot exceed 8000", 8000),
        ("Token count exceeds the model maximum", None),
        ("Your input exceeds the context window of this model.", None),
        ("messages: too many images: 101 > 100", None),
        ("Invalid request of 8192 tokens", None),
    ],
)
def test_the_window_that_a_refusal_states_is_read(words: str, window: int | None) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    error = error_from_response("X", 400, {}, body, "")
    assert error.window_tokens == window
    assert (error.code == "provider_overflow") is (words != "Invalid request of 8192 tokens")


RATE = "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested {}. Sorry."


@pytest.mark.parametrize("status", [413, 429])
def test_a_request_that_exceeds_the_rate_by_itself_is_too_large(status: int) -> None:
    """Waiting does not help: every later prompt of the conversation would be refused as well."""
    body = openai_error_body(RATE.format("45,000"), "rate_limit_exceeded", "tokens")
    error = error_from_response("Peer", status, {}, body, KEY)
    assert (error.code, error.retryable, error.window_tokens) == ("provider_overflow", False, 30_000)


@pytest.mark.parametrize(
    "words",
    [RATE.format(20_000), "tokens per min (TPM): Limit 30000, Used 20000, Requested 15000. Please try again in 10s."],
)
def test_a_request_within_the_rate_is_repeated(words: str) -> None:
    error = error_from_response("Peer", 429, {}, openai_error_body(words, "rate_limit_exceeded", "tokens"), KEY)
    assert (error.code, error.retryable) == ("provider_quota", True)


def test_a_request_that_is_too_large_is_not_repeated_whatever_its_status() -> None:
    body = openai_error_body("the request exceeds the available context size", "server_error", "server_error")
    error = error_from_response("Peer", 500, {}, body, KEY)
    assert (error.code, error.retryable) == ("provider_overflow", False)
