"""The providers with bearer authentication over HTTP: a request out, parts in."""

import json
import threading
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, StreamPart, TextDelta
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.request_checks.openai_responses import is_reasoning_model
from tests.strict import gemini, ollama, openai
from tests.strict.server import ScriptedResponse, StrictServer
from tests.unit.drivers.conversation_builders import (
    message_from_response,
    model_message,
    tool_result,
    user_message,
)
from tests.unit.drivers.history_strategies import MODELS
from tests.unit.drivers.strict_providers import (
    CASES_BY_PROVIDER,
    KEY,
    StartServer,
    StrictProvider,
    build_request,
    collect_parts,
    each_provider,
    get_response,
)
from tests.waiting import BACKSTOP_SECONDS


@pytest.fixture
def server(peer: StrictProvider, running: StartServer) -> StrictServer:
    return running(peer)


def get_sent_key(server: StrictServer) -> str:
    headers = server.headers[0]
    return headers.get("x-goog-api-key") or headers.get("authorization", "").removeprefix("Bearer ")


@each_provider
def test_text_arrives_in_parts_and_the_response_comes_last(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_chunks(peer.text_response("Hel", "lo"))
    parts = collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert parts[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(parts[2], ModelResponse)
    assert get_sent_key(server) == KEY
    assert server.headers[0]["content-type"] == "application/json"
    assert server.refusals == []


@each_provider
@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "//"])
def test_the_address_may_be_given_with_or_without_its_version(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection, path: str
) -> None:
    server.script_chunks(peer.text_response())
    assert collect_parts(peer, build_request(peer, user_message("Hi")), connection, server, path)
    assert server.paths == [peer.path]


@pytest.mark.parametrize(
    ("base", "path", "address"),
    [
        ("https://a.example/v1/v1", "/v1/x", "https://a.example/v1/v1/x"),
        ("https://a.example/api/paas/v4/", "/v1/chat/completions", "https://a.example/api/paas/v4/chat/completions"),
        ("https://a.example/v1beta/openai", "/v1/chat/completions", "https://a.example/v1beta/openai/chat/completions"),
        (" https://a.example/openai/v1 ", "/v1/x", "https://a.example/openai/v1/x"),
        ("http://a.example:11434/api/", "/api/chat", "http://a.example:11434/api/chat"),
        ("https://openrouter.ai/api", "/v1/responses", "https://openrouter.ai/api/v1/responses"),
        ("https://a.example/v1beta/", "/v1beta/models/m:x", "https://a.example/v1beta/models/m:x"),
        ("https://a.example/v1beta", "/v1beta/models", "https://a.example/v1beta/models"),
    ],
)
def test_addresses_of_other_makers_keep_their_own_version(base: str, path: str, address: str) -> None:
    assert AuthenticatedEndpoint(base, SecretStr("")).url_for(path) == address


@each_provider
def test_a_key_pasted_with_a_line_end_works(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_chunks(peer.text_response())
    collect_parts(peer, build_request(peer, user_message("Hi")), connection, server, key=f" {KEY}\n")
    assert get_sent_key(server) == KEY


@each_provider
def test_a_key_that_no_header_can_hold_is_refused(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server, key="schlüssel")
    assert caught.value.code == "provider_auth"
    assert server.bodies == []


@each_provider
def test_a_customers_own_server_needs_no_key(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    if peer.provider in ("openai", "openrouter", "gemini"):
        with pytest.raises(ProviderError) as caught:
            collect_parts(peer, build_request(peer, user_message("Hi")), connection, server, key="")
        assert caught.value.code == "provider_auth"
    else:
        server.script_chunks(peer.text_response())
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server, key="")
        assert not get_sent_key(server)


@each_provider
def test_rounds_share_a_connection(peer: StrictProvider, server: StrictServer, connection: HttpConnection) -> None:
    for _ in range(3):
        server.script_chunks(peer.text_response())
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert len({id(socket) for socket in server.connections}) == 1


@each_provider
def test_r9_and_r11_the_second_round_sends_back_the_providers_reasoning(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_chunks(peer.tool_call_answer)
    server.script_chunks(peer.text_response())
    first = get_response(peer, build_request(peer, user_message("Hi")), connection, server)
    (called,) = [block for block in first.blocks if isinstance(block, ToolCallBlock)]
    rows = (user_message("Hi"), message_from_response(first), tool_result(called.tool_call_id, 1))
    assert get_response(peer, build_request(peer, *rows), connection, server).stop is FinishReason.END
    assert server.refusals == []
    second_body = json.dumps(server.bodies[1])
    assert {"openai": "gAAAA", "openrouter": "rs_0", "gemini": gemini.SIGNATURE}.get(
        peer.provider, "Hm."
    ) in second_body


@each_provider
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "provider_auth", False),
        (404, "provider_request", False),
        (429, "provider_quota", True),
        (503, "provider_overloaded", True),
        (500, "provider_error", True),
    ],
)
def test_an_error_status_becomes_a_provider_error(
    status: int, code: str, retryable: bool, peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_error(status, "x", f"the model was not found, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message + error.detail
    assert error.tokens is None


@each_provider
def test_a_connection_lost_in_mid_stream_is_raised_after_the_parts_before_it(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_response(ScriptedResponse([peer.partial_answer], cut=True))
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        parts.extend(
            peer.driver.stream(
                build_request(peer, user_message("Hi")), connection, AuthenticatedEndpoint(server.url, SecretStr(KEY))
            )
        )
    assert parts == [TextDelta(text="Partial")]
    assert (caught.value.retryable, caught.value.tokens) == (True, None)


@each_provider
def test_an_abort_in_mid_text_closes_the_connection_to_the_provider(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    gone = threading.Event()

    def until_gone() -> None:
        server.connections[0].settimeout(BACKSTOP_SECONDS)
        if server.connections[0].recv(1) == b"":
            gone.set()

    server.script_response(ScriptedResponse([peer.partial_answer], then=until_gone))
    stream = peer.driver.stream(
        build_request(peer, user_message("Hi")), connection, AuthenticatedEndpoint(server.url, SecretStr(KEY))
    )
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, connection.abort).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert gone.wait(BACKSTOP_SECONDS)


@each_provider
def test_a_lone_surrogate_in_a_prompt_is_not_sent(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_chunks(peer.text_response())
    collect_parts(peer, build_request(peer, user_message("a\ud83d")), connection, server)
    assert "a?" in json.dumps(server.bodies[0])


@each_provider
def test_r8_an_empty_answer_is_an_error_and_the_turn_after_it_is_accepted(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    server.script_chunks(peer.text_response(""))
    with pytest.raises(ProviderError, match="without a word") as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_empty", True)
    server.script_chunks(peer.text_response())
    rows = (user_message("Hi"), model_message(), user_message("And now?", turn="t2"))
    collect_parts(peer, build_request(peer, *rows), connection, server)
    assert server.refusals == []


@each_provider
def test_calls_where_none_may_be_made_are_no_answer(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    """In a turn's last round nothing would be shown to the user."""
    server.script_chunks(peer.tool_call_answer)
    with pytest.raises(ProviderError, match="asked for tools again instead of answering") as caught:
        collect_parts(peer, build_request(peer, user_message("Hi"), call_tools=False), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_empty", True)
    assert caught.value.tokens is None or caught.value.tokens.completion


def test_pp13_an_ollama_that_counts_2051_tokens_of_a_long_prompt_gives_a_warning(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER["ollama"]
    server = running(peer)
    server.script_chunks(ollama.encode_ndjson(ollama.make_line("What rules?"), ollama.done_line(prompt=2051)))
    warned = get_response(peer, build_request(peer, user_message("word " * 15_000)), connection, server).warning
    assert warned is not None
    assert "Ollama read only 2051 of about 15" in warned
    server.script_chunks(ollama.encode_ndjson(ollama.make_line("Yes."), ollama.done_line(prompt=15_100)))
    assert get_response(peer, build_request(peer, user_message("word " * 15_000)), connection, server).warning is None


def test_a_prompt_that_does_not_fit_has_a_code_of_its_own(running: StartServer, connection: HttpConnection) -> None:
    for provider, words in (
        ("ollama", "the prompt is longer than the context length currently available to the model"),
        ("openai-compatible", "the request exceeds the available context size, try increasing it"),
        ("gemini", "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576)."),
        ("openrouter", "This endpoint's maximum context length is 8192 tokens. Please reduce the length."),
    ):
        peer = CASES_BY_PROVIDER[provider]
        server = running(peer)
        server.script_error(400, "invalid_request_error", words)
        with pytest.raises(ProviderError) as caught:
            collect_parts(peer, build_request(peer, user_message("a")), connection, server)
        assert (caught.value.code, caught.value.retryable) == ("provider_overflow", False)


def test_the_models_of_the_tests_reason() -> None:
    assert all(is_reasoning_model(MODELS[provider]) for provider in ("openai", "openrouter"))


WHOLE_ANSWERS = [
    (
        "openai",
        {
            "object": "response",
            "status": "completed",
            "output": [openai.message_events(0, "Hi")[-1]["item"]],
            "usage": None,
        },
    ),
    ("openai-compatible", {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": None}),
    ("ollama", {"message": {"content": "Hi"}, "done": True}),
    ("gemini", {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}),
]


@pytest.mark.parametrize(("provider", "body"), WHOLE_ANSWERS, ids=[answer[0] for answer in WHOLE_ANSWERS])
def test_a_response_that_is_not_streamed_is_understood(
    provider: str, body: Any, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER[provider]
    server = running(peer)
    server.script_response(
        ScriptedResponse([json.dumps(body).encode()], headers={"content-type": "application/json; charset=utf-8"})
    )
    assert collect_parts(peer, build_request(peer, user_message("a")), connection, server)[0] == TextDelta(text="Hi")


@each_provider
def test_an_error_with_status_200_is_an_error(
    peer: StrictProvider, server: StrictServer, connection: HttpConnection
) -> None:
    body = json.dumps({"error": {"message": "Sorry", "code": 503}}).encode()
    server.script_response(ScriptedResponse([body], headers={"content-type": "application/json"}))
    with pytest.raises(ProviderError, match="stream error: Sorry") as caught:
        collect_parts(peer, build_request(peer, user_message("a")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
