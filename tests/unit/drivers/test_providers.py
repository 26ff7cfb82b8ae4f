"""The whole way for the providers that are asked with a bearer key: an ask out, pieces in, over HTTP."""

import json
import threading
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, StreamPart, TextDelta
from fermata.drivers.registry import Endpoint
from fermata.drivers.transport.connection import ProviderConnection
from local.demo_model.request_checks.openai_responses import is_reasoning_model
from tests.strict import ollama, openai
from tests.strict.server import ScriptedResponse, StrictServer
from tests.unit.drivers.conversation_builders import message_from_response, tool_result, user_message
from tests.unit.drivers.history_strategies import MODELS
from tests.unit.drivers.strict_providers import (
    CASES_BY_PROVIDER,
    KEY,
    StartServer,
    StrictProvider,
    build_request,
    collect_pieces,
    each_provider,
    get_response,
)


@pytest.fixture
def server(peer: StrictProvider, running: StartServer) -> StrictServer:
    return running(peer)


@each_provider
def test_text_arrives_as_pieces_and_ends_with_the_reply(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_chunks(peer.text_response("Hel", "lo"))
    pieces = collect_pieces(peer, build_request(peer, user_message("Hi")), line, server)
    assert pieces[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(pieces[2], ModelResponse)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["content-type"] == "application/json"
    assert server.refusals == []


@each_provider
@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "//"])
def test_the_address_may_be_given_with_or_without_its_version(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection, path: str
) -> None:
    server.script_chunks(peer.text_response())
    assert collect_pieces(peer, build_request(peer, user_message("Hi")), line, server, path)
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
    ],
)
def test_addresses_of_other_makers_keep_their_own_version(base: str, path: str, address: str) -> None:
    assert Endpoint(base, SecretStr("")).url_for(path) == address


@each_provider
def test_a_key_pasted_with_a_line_end_is_still_the_key(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_chunks(peer.text_response())
    collect_pieces(peer, build_request(peer, user_message("Hi")), line, server, key=f" {KEY}\n")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@each_provider
def test_a_key_no_header_can_hold_is_a_wrong_key(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    with pytest.raises(ProviderError) as caught:
        collect_pieces(peer, build_request(peer, user_message("Hi")), line, server, key="schlüssel")
    assert caught.value.code == "provider_auth"
    assert server.bodies == []


@each_provider
def test_a_server_of_ones_own_needs_no_key(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    if peer.provider in ("openai", "openrouter"):
        with pytest.raises(ProviderError) as caught:
            collect_pieces(peer, build_request(peer, user_message("Hi")), line, server, key="")
        assert caught.value.code == "provider_auth"
    else:
        server.script_chunks(peer.text_response())
        collect_pieces(peer, build_request(peer, user_message("Hi")), line, server, key="")
        assert "authorization" not in server.headers[0]


@each_provider
def test_rounds_share_a_connection(peer: StrictProvider, server: StrictServer, line: ProviderConnection) -> None:
    for _ in range(3):
        server.script_chunks(peer.text_response())
        collect_pieces(peer, build_request(peer, user_message("Hi")), line, server)
    assert len({id(one) for one in server.connections}) == 1


@each_provider
def test_r9_and_r11_the_second_round_gives_back_what_the_provider_wants_to_remember(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_chunks(peer.tool_call_answer)
    server.script_chunks(peer.text_response())
    first = get_response(peer, build_request(peer, user_message("Hi")), line, server)
    (called,) = [block for block in first.blocks if isinstance(block, ToolCallBlock)]
    rows = (user_message("Hi"), message_from_response(first), tool_result(called.tool_call_id, 1))
    assert get_response(peer, build_request(peer, *rows), line, server).stop is FinishReason.END
    assert server.refusals == []
    sent = json.dumps(server.bodies[1])
    assert {"openai": "gAAAA", "openrouter": "rs_0"}.get(peer.provider, "Hm.") in sent


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
def test_an_error_status_is_told_in_our_words(
    status: int, code: str, retryable: bool, peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_error(status, "x", f"no, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        collect_pieces(peer, build_request(peer, user_message("Hi")), line, server)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message + error.detail
    assert error.tokens is None


@each_provider
def test_a_connection_lost_in_mid_stream_is_an_error_and_what_was_said_stays_said(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_response(ScriptedResponse([peer.partial_answer], cut=True))
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(
            peer.driver.stream(build_request(peer, user_message("Hi")), line, Endpoint(server.url, SecretStr(KEY)))
        )
    assert pieces == [TextDelta(text="Partial")]
    assert (caught.value.retryable, caught.value.tokens) == (True, None)


@each_provider
def test_a_hang_up_in_mid_text_stops_the_answer_and_the_provider_feels_it(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    gone = threading.Event()

    def until_gone() -> None:
        server.connections[0].settimeout(5)
        if server.connections[0].recv(1) == b"":
            gone.set()

    server.script_response(ScriptedResponse([peer.partial_answer], then=until_gone))
    stream = peer.driver.stream(build_request(peer, user_message("Hi")), line, Endpoint(server.url, SecretStr(KEY)))
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, line.abort).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert gone.wait(1)


@each_provider
def test_half_a_surrogate_pair_in_a_prompt_does_not_reach_the_provider(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_chunks(peer.text_response())
    collect_pieces(peer, build_request(peer, user_message("a\ud83d")), line, server)
    assert "a?" in json.dumps(server.bodies[0])


@each_provider
def test_r8_after_an_empty_answer_the_next_turn_is_accepted(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    server.script_chunks(peer.text_response(""))
    server.script_chunks(peer.text_response())
    nothing = get_response(peer, build_request(peer, user_message("Hi")), line, server)
    assert nothing.blocks == ()
    collect_pieces(
        peer,
        build_request(peer, user_message("Hi"), message_from_response(nothing), user_message("And now?", turn="t2")),
        line,
        server,
    )
    assert server.refusals == []


def test_pp13_an_ollama_that_reports_2051_tokens_of_a_long_prompt_is_warned_of(
    running: StartServer, line: ProviderConnection
) -> None:
    peer = CASES_BY_PROVIDER["ollama"]
    server = running(peer)
    server.script_chunks(ollama.encode_ndjson(ollama.make_line("What rules?"), ollama.done_line(prompt=2051)))
    warned = get_response(peer, build_request(peer, user_message("word " * 15_000)), line, server).warning
    assert warned is not None
    assert "Ollama read only 2051 of about 15" in warned
    server.script_chunks(ollama.encode_ndjson(ollama.make_line("Yes."), ollama.done_line(prompt=15_100)))
    assert get_response(peer, build_request(peer, user_message("word " * 15_000)), line, server).warning is None


def test_a_prompt_that_does_not_fit_is_a_failure_of_its_own_kind(
    running: StartServer, line: ProviderConnection
) -> None:
    for provider, words in (
        ("ollama", "the prompt is longer than the context length currently available to the model"),
        ("openai-compatible", "the request exceeds the available context size, try increasing it"),
        ("openrouter", "This endpoint's maximum context length is 8192 tokens. Please reduce the length."),
    ):
        peer = CASES_BY_PROVIDER[provider]
        server = running(peer)
        server.script_error(400, "invalid_request_error", words)
        with pytest.raises(ProviderError) as caught:
            collect_pieces(peer, build_request(peer, user_message("a")), line, server)
        assert (caught.value.code, caught.value.retryable) == ("provider_overflow", False)


def test_the_models_of_the_tests_think() -> None:
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
]


@pytest.mark.parametrize(("provider", "body"), WHOLE_ANSWERS, ids=[one[0] for one in WHOLE_ANSWERS])
def test_a_server_that_does_not_stream_is_understood_all_the_same(
    provider: str, body: Any, running: StartServer, line: ProviderConnection
) -> None:
    peer = CASES_BY_PROVIDER[provider]
    server = running(peer)
    server.script_response(
        ScriptedResponse([json.dumps(body).encode()], headers={"content-type": "application/json; charset=utf-8"})
    )
    assert collect_pieces(peer, build_request(peer, user_message("a")), line, server)[0] == TextDelta(text="Hi")


@each_provider
def test_an_error_that_calls_itself_a_success_is_an_error(
    peer: StrictProvider, server: StrictServer, line: ProviderConnection
) -> None:
    body = json.dumps({"error": {"message": "Sorry", "code": 503}}).encode()
    server.script_response(ScriptedResponse([body], headers={"content-type": "application/json"}))
    with pytest.raises(ProviderError, match="stream error: Sorry") as caught:
        collect_pieces(peer, build_request(peer, user_message("a")), line, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
