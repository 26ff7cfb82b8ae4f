"""Anthropic over HTTP: a request out, parts in."""

import json
import threading

import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart, TextDelta
from fermata.drivers.registry import PROVIDER_MODULES, get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.anthropic import (
    ScriptedResponse,
    StrictAnthropic,
    content_block,
    encode_sse,
    message_start,
    message_stop,
    text_block,
    text_response,
    tool_use_block,
)
from tests.unit.drivers.conftest import KEY
from tests.unit.drivers.conversation_builders import (
    MODEL,
    message_from_response,
    model_request,
    tool_result,
    user_message,
)
from tests.waiting import BACKSTOP_SECONDS

anthropic = get_provider("anthropic")


def collect_parts(
    request: ModelRequest, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> list[StreamPart]:
    return list(anthropic.stream(request, connection, endpoint))


def get_response(request: ModelRequest, connection: HttpConnection, endpoint: AuthenticatedEndpoint) -> ModelResponse:
    last = collect_parts(request, connection, endpoint)[-1]
    assert isinstance(last, ModelResponse)
    return last


def test_an_unknown_provider_is_refused_with_a_list_of_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match=rf"nobody\. Use one of: {', '.join(sorted(PROVIDER_MODULES))}\.$"):
        get_provider("nobody")


def test_an_unknown_providers_name_is_quoted_on_one_short_line_without_a_key() -> None:
    with pytest.raises(InvalidRequest) as caught:
        get_provider("no\nbody\u202e sk-ant-0123456789 " + "x" * 5000)
    assert caught.value.message.startswith("Unknown provider: no body [redacted] x")
    assert len(caught.value.message) < 200


def test_text_arrives_in_parts_and_the_response_comes_last(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(text_response("Hel", "lo"))
    parts = collect_parts(model_request(user_message("Hi")), connection, endpoint)
    assert parts[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(parts[2], ModelResponse)
    assert provider.headers[0]["x-api-key"] == KEY
    assert provider.headers[0]["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in provider.headers[0]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_given_with_or_without_its_version(
    provider: StrictAnthropic, connection: HttpConnection, path: str
) -> None:
    provider.script_chunks(text_response())
    assert collect_parts(
        model_request(user_message("Hi")), connection, AuthenticatedEndpoint(provider.url + path, SecretStr(KEY))
    )


def test_a_key_pasted_with_a_line_end_works(provider: StrictAnthropic, connection: HttpConnection) -> None:
    provider.script_chunks(text_response())
    collect_parts(
        model_request(user_message("Hi")), connection, AuthenticatedEndpoint(provider.url, SecretStr(f" {KEY}\n"))
    )
    assert provider.headers[0]["x-api-key"] == KEY


def test_a_gateway_may_need_no_key(provider: StrictAnthropic, connection: HttpConnection) -> None:
    """The server itself refuses a missing key."""
    with pytest.raises(ProviderError) as caught:
        collect_parts(model_request(user_message("Hi")), connection, AuthenticatedEndpoint(provider.url, SecretStr("")))
    assert caught.value.code == "provider_auth"
    assert "x-api-key" not in provider.headers[0]


def test_a_key_that_no_header_can_hold_is_refused(connection: HttpConnection, provider: StrictAnthropic) -> None:
    with pytest.raises(ProviderError) as caught:
        collect_parts(
            model_request(user_message("Hi")), connection, AuthenticatedEndpoint(provider.url, SecretStr("schlüssel"))
        )
    assert caught.value.code == "provider_auth"


def test_the_key_is_in_no_repr(endpoint: AuthenticatedEndpoint) -> None:
    assert KEY not in repr(endpoint)
    assert KEY not in str(endpoint)


def test_r9_and_r10_the_second_round_repeats_the_first_to_the_byte(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    thinking = content_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Look 那 first."},
        {"type": "signature_delta", "signature": "EqQBCgIYAhIk+/=="},
    )
    redacted = content_block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="})
    calls = [
        *tool_use_block(3, "toolu_1", "read_document", "{}"),
        *tool_use_block(4, "toolu_2", "insertHtml", '{"nodeId":"n1"}'),
    ]
    provider.script_chunks(
        encode_sse(message_start(), thinking, redacted, text_block(2, ""), calls, message_stop("tool_use"))
    )
    provider.script_chunks(text_response())
    first = get_response(model_request(user_message("Hi")), connection, endpoint)
    collect_parts(
        model_request(
            user_message("Hi"), message_from_response(first), tool_result("toolu_1", 1), tool_result("toolu_2", 2)
        ),
        connection,
        endpoint,
    )
    assert provider.refusals == []
    assert [block["type"] for block in provider.bodies[1]["messages"][1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_use",
    ]


def test_r8_a_turn_after_an_empty_refusal_is_accepted(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(encode_sse(message_start(), message_stop("refusal")))
    provider.script_chunks(text_response())
    refused = get_response(model_request(user_message("Hi")), connection, endpoint)
    collect_parts(
        model_request(user_message("Hi"), message_from_response(refused), user_message("And now?", turn="t2")),
        connection,
        endpoint,
    )
    assert provider.refusals == []


def test_r5_a_truncated_call_can_be_answered_with_an_error(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(
        encode_sse(
            message_start(), tool_use_block(0, "toolu_1", "insertHtml", '{"html":"<p'), message_stop("max_tokens")
        )
    )
    provider.script_chunks(text_response())
    cut = get_response(model_request(user_message("Hi")), connection, endpoint)
    assert isinstance(cut.blocks[0], ToolCallBlock)
    assert cut.blocks[0].malformed
    failed_result = tool_result("toolu_1", ok=False, error="Your arguments were cut off. Send less at once.")
    collect_parts(model_request(user_message("Hi"), message_from_response(cut), failed_result), connection, endpoint)
    assert provider.refusals == []


@pytest.mark.parametrize(
    ("status", "kind", "code", "retryable"),
    [
        (401, "authentication_error", "provider_auth", False),
        (429, "rate_limit_error", "provider_quota", True),
        (529, "overloaded_error", "provider_overloaded", True),
        (500, "api_error", "provider_error", True),
    ],
)
def test_an_error_status_becomes_a_provider_error(
    status: int,
    kind: str,
    code: str,
    retryable: bool,
    provider: StrictAnthropic,
    connection: HttpConnection,
    endpoint: AuthenticatedEndpoint,
) -> None:
    provider.script_error(status, kind, f"no, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        collect_parts(model_request(user_message("Hi")), connection, endpoint)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message
    assert error.tokens is None


def test_a_connection_lost_in_mid_stream_reports_the_tokens_so_far(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    partial = encode_sse(
        message_start(input_tokens=90, output_tokens=1, cache_read_input_tokens=1000), text_block(0, "Partial")[:-1]
    )
    provider.script_response(ScriptedResponse([partial], cut=True))
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        parts.extend(anthropic.stream(model_request(user_message("Hi")), connection, endpoint))
    assert parts == [TextDelta(text="Partial")]
    assert caught.value.tokens is not None
    assert (caught.value.tokens.prompt, caught.value.tokens.cache_read) == (90, 1000)


def test_an_abort_in_mid_text_closes_the_connection_to_the_provider(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    gone = threading.Event()
    partial = encode_sse(message_start(input_tokens=9), text_block(0, "Partial")[:-1])

    def until_gone() -> None:
        provider.connections[0].settimeout(BACKSTOP_SECONDS)
        if provider.connections[0].recv(1) == b"":
            gone.set()

    provider.script_response(ScriptedResponse([partial], then=until_gone))
    stream = anthropic.stream(model_request(user_message("Hi")), connection, endpoint)
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, connection.abort).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert caught.value.tokens is not None
    assert gone.wait(BACKSTOP_SECONDS)


def test_a_closed_stream_leaves_the_connection_usable(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(text_response("a", "b"))
    provider.script_chunks(text_response("c"))
    stream = anthropic.stream(model_request(user_message("Hi")), connection, endpoint)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a driver's iterator is a generator
    assert collect_parts(model_request(user_message("Hi")), connection, endpoint)[0] == TextDelta(text="c")


def test_rounds_share_a_connection(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    for _ in range(3):
        provider.script_chunks(text_response())
        collect_parts(model_request(user_message("Hi")), connection, endpoint)
    assert len({id(socket) for socket in provider.connections}) == 1


def test_the_newest_models_get_the_header_their_thinking_setting_needs(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(text_response())
    collect_parts(model_request(user_message("Hi"), model="claude-opus-5-5"), connection, endpoint)
    assert provider.refusals == []
    assert provider.headers[0]["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_a_lone_surrogate_in_a_prompt_is_not_sent(
    provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.script_chunks(text_response())
    collect_parts(model_request(user_message("a\ud83d", "b"), model=MODEL), connection, endpoint)
    json.dumps(provider.bodies[0], ensure_ascii=False).encode("utf-8")
    assert provider.bodies[0]["messages"][0]["content"][0]["text"] == "a?"
