"""The whole way: an ask out, pieces in, over HTTP."""

import json
import threading

import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart, TextDelta
from fermata.drivers.registry import Endpoint, get_provider
from fermata.drivers.transport.connection import ProviderConnection
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

anthropic = get_provider("anthropic")


def collect_pieces(asked: ModelRequest, line: ProviderConnection, endpoint: Endpoint) -> list[StreamPart]:
    return list(anthropic.stream(asked, line, endpoint))


def get_response(asked: ModelRequest, line: ProviderConnection, endpoint: Endpoint) -> ModelResponse:
    last = collect_pieces(asked, line, endpoint)[-1]
    assert isinstance(last, ModelResponse)
    return last


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"nobody\. Use one of: anthropic, ollama, openai, openai-c.*, openr.*\."):
        get_provider("nobody")


def test_whatever_somebody_calls_a_provider_is_repeated_as_a_short_line_without_a_key() -> None:
    with pytest.raises(InvalidRequest) as caught:
        get_provider("no\nbody\u202e sk-ant-0123456789 " + "x" * 5000)
    assert caught.value.message.startswith("Unknown provider: no body [redacted] x")
    assert len(caught.value.message) < 200


def test_text_arrives_as_pieces_and_ends_with_the_reply(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(text_response("Hel", "lo"))
    pieces = collect_pieces(model_request(user_message("Hi")), line, endpoint)
    assert pieces[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(pieces[2], ModelResponse)
    assert provider.headers[0]["x-api-key"] == KEY
    assert provider.headers[0]["anthropic-version"] == "2023-06-01"
    assert "anthropic-beta" not in provider.headers[0]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_address_may_be_given_with_or_without_its_version(
    provider: StrictAnthropic, line: ProviderConnection, path: str
) -> None:
    provider.script_chunks(text_response())
    assert collect_pieces(model_request(user_message("Hi")), line, Endpoint(provider.url + path, SecretStr(KEY)))


def test_a_key_pasted_with_a_line_end_is_still_the_key(provider: StrictAnthropic, line: ProviderConnection) -> None:
    provider.script_chunks(text_response())
    collect_pieces(model_request(user_message("Hi")), line, Endpoint(provider.url, SecretStr(f" {KEY}\n")))
    assert provider.headers[0]["x-api-key"] == KEY


def test_a_gateway_of_ones_own_needs_no_key(provider: StrictAnthropic, line: ProviderConnection) -> None:
    """The real server says what is missing."""
    with pytest.raises(ProviderError) as caught:
        collect_pieces(model_request(user_message("Hi")), line, Endpoint(provider.url, SecretStr("")))
    assert caught.value.code == "provider_auth"
    assert "x-api-key" not in provider.headers[0]


def test_a_key_no_header_can_hold_is_a_wrong_key(line: ProviderConnection, provider: StrictAnthropic) -> None:
    with pytest.raises(ProviderError) as caught:
        collect_pieces(model_request(user_message("Hi")), line, Endpoint(provider.url, SecretStr("schlüssel")))
    assert caught.value.code == "provider_auth"


def test_the_key_shows_nowhere(endpoint: Endpoint) -> None:
    assert KEY not in repr(endpoint)
    assert KEY not in str(endpoint)


def test_r9_and_r10_the_second_round_repeats_the_first_to_the_byte(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
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
    first = get_response(model_request(user_message("Hi")), line, endpoint)
    collect_pieces(
        model_request(
            user_message("Hi"), message_from_response(first), tool_result("toolu_1", 1), tool_result("toolu_2", 2)
        ),
        line,
        endpoint,
    )
    assert provider.refusals == []
    assert [one["type"] for one in provider.bodies[1]["messages"][1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_use",
    ]


def test_r8_after_an_empty_refusal_the_next_turn_is_accepted(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(encode_sse(message_start(), message_stop("refusal")))
    provider.script_chunks(text_response())
    refused = get_response(model_request(user_message("Hi")), line, endpoint)
    collect_pieces(
        model_request(user_message("Hi"), message_from_response(refused), user_message("And now?", turn="t2")),
        line,
        endpoint,
    )
    assert provider.refusals == []


def test_r5_a_truncated_call_can_be_answered_and_asked_again(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(
        encode_sse(
            message_start(), tool_use_block(0, "toolu_1", "insertHtml", '{"html":"<p'), message_stop("max_tokens")
        )
    )
    provider.script_chunks(text_response())
    cut = get_response(model_request(user_message("Hi")), line, endpoint)
    assert isinstance(cut.blocks[0], ToolCallBlock)
    assert cut.blocks[0].malformed
    told = tool_result("toolu_1", ok=False, error="Your arguments were cut off. Send less at once.")
    collect_pieces(model_request(user_message("Hi"), message_from_response(cut), told), line, endpoint)
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
def test_an_error_status_is_told_in_our_words(
    status: int,
    kind: str,
    code: str,
    retryable: bool,
    provider: StrictAnthropic,
    line: ProviderConnection,
    endpoint: Endpoint,
) -> None:
    provider.script_error(status, kind, f"no, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        collect_pieces(model_request(user_message("Hi")), line, endpoint)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message
    assert error.tokens is None


def test_a_connection_lost_in_mid_stream_tells_what_was_used_so_far(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    begun = encode_sse(
        message_start(input_tokens=90, output_tokens=1, cache_read_input_tokens=1000), text_block(0, "Partial")[:-1]
    )
    provider.script_response(ScriptedResponse([begun], cut=True))
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(anthropic.stream(model_request(user_message("Hi")), line, endpoint))
    assert pieces == [TextDelta(text="Partial")]
    assert caught.value.tokens is not None
    assert (caught.value.tokens.prompt, caught.value.tokens.cache_read) == (90, 1000)


def test_a_hang_up_in_mid_text_stops_the_answer_and_the_provider_feels_it(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    gone = threading.Event()
    begun = encode_sse(message_start(input_tokens=9), text_block(0, "Partial")[:-1])

    def until_gone() -> None:
        provider.connections[0].settimeout(5)
        if provider.connections[0].recv(1) == b"":
            gone.set()

    provider.script_response(ScriptedResponse([begun], then=until_gone))
    stream = anthropic.stream(model_request(user_message("Hi")), line, endpoint)
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, line.abort).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert caught.value.tokens is not None
    assert gone.wait(1)


def test_a_reader_that_goes_away_leaves_the_line_usable(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(text_response("a", "b"))
    provider.script_chunks(text_response("c"))
    stream = anthropic.stream(model_request(user_message("Hi")), line, endpoint)
    next(stream)
    stream.close()  # type: ignore[attr-defined]  # a driver's iterator is a generator
    assert collect_pieces(model_request(user_message("Hi")), line, endpoint)[0] == TextDelta(text="c")


def test_rounds_share_a_connection(provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint) -> None:
    for _ in range(3):
        provider.script_chunks(text_response())
        collect_pieces(model_request(user_message("Hi")), line, endpoint)
    assert len({id(one) for one in provider.connections}) == 1


def test_the_newest_models_get_the_header_their_thinking_setting_needs(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(text_response())
    collect_pieces(model_request(user_message("Hi"), model="claude-opus-5-5"), line, endpoint)
    assert provider.refusals == []
    assert provider.headers[0]["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


def test_half_a_surrogate_pair_in_a_prompt_does_not_reach_the_provider(
    provider: StrictAnthropic, line: ProviderConnection, endpoint: Endpoint
) -> None:
    provider.script_chunks(text_response())
    collect_pieces(model_request(user_message("a\ud83d", "b"), model=MODEL), line, endpoint)
    json.dumps(provider.bodies[0], ensure_ascii=False).encode("utf-8")
    assert provider.bodies[0]["messages"][0]["content"][0]["text"] == "a?"
