"""The whole way for the providers that are asked with a bearer key: an ask out, pieces in, over HTTP."""

import json
import threading
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.drivers.driver import Endpoint
from fermata.drivers.line import Line
from fermata.words.blocks import ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, Reply, Stop, TextDelta
from local.demo_model.strict_responses import thinks
from tests.strict import ollama, openai
from tests.strict.serving import Said, StrictServer
from tests.unit.drivers.asks import replied, result, user
from tests.unit.drivers.histories import MODELS
from tests.unit.drivers.peers import BY_NAME, EACH, KEY, Peer, Running, heard, reply, said


@pytest.fixture
def server(peer: Peer, running: Running) -> StrictServer:
    return running(peer)


@EACH
def test_text_arrives_as_pieces_and_ends_with_the_reply(peer: Peer, server: StrictServer, line: Line) -> None:
    server.say(peer.answer("Hel", "lo"))
    pieces = heard(peer, said(peer, user("Hi")), line, server)
    assert pieces[:2] == [TextDelta(text="Hel"), TextDelta(text="lo")]
    assert isinstance(pieces[2], Reply)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["content-type"] == "application/json"
    assert server.refusals == []


@EACH
@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "//"])
def test_the_address_may_be_given_with_or_without_its_version(
    peer: Peer, server: StrictServer, line: Line, path: str
) -> None:
    server.say(peer.answer())
    assert heard(peer, said(peer, user("Hi")), line, server, path)
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
    assert Endpoint(base, SecretStr("")).at(path) == address


@EACH
def test_a_key_pasted_with_a_line_end_is_still_the_key(peer: Peer, server: StrictServer, line: Line) -> None:
    server.say(peer.answer())
    heard(peer, said(peer, user("Hi")), line, server, key=f" {KEY}\n")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@EACH
def test_a_key_no_header_can_hold_is_a_wrong_key(peer: Peer, server: StrictServer, line: Line) -> None:
    with pytest.raises(ProviderError) as caught:
        heard(peer, said(peer, user("Hi")), line, server, key="schlüssel")
    assert caught.value.code == "provider_auth"
    assert server.bodies == []


@EACH
def test_a_server_of_ones_own_needs_no_key(peer: Peer, server: StrictServer, line: Line) -> None:
    if peer.provider in ("openai", "openrouter"):
        with pytest.raises(ProviderError) as caught:
            heard(peer, said(peer, user("Hi")), line, server, key="")
        assert caught.value.code == "provider_auth"
    else:
        server.say(peer.answer())
        heard(peer, said(peer, user("Hi")), line, server, key="")
        assert "authorization" not in server.headers[0]


@EACH
def test_rounds_share_a_connection(peer: Peer, server: StrictServer, line: Line) -> None:
    for _ in range(3):
        server.say(peer.answer())
        heard(peer, said(peer, user("Hi")), line, server)
    assert len({id(one) for one in server.connections}) == 1


@EACH
def test_r9_and_r11_the_second_round_gives_back_what_the_provider_wants_to_remember(
    peer: Peer, server: StrictServer, line: Line
) -> None:
    server.say(peer.calls)
    server.say(peer.answer())
    first = reply(peer, said(peer, user("Hi")), line, server)
    (called,) = [block for block in first.blocks if isinstance(block, ToolCallBlock)]
    rows = (user("Hi"), replied(first), result(called.tool_call_id, 1))
    assert reply(peer, said(peer, *rows), line, server).stop is Stop.END
    assert server.refusals == []
    sent = json.dumps(server.bodies[1])
    assert {"openai": "gAAAA", "openrouter": "rs_0"}.get(peer.provider, "Hm.") in sent


@EACH
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
    status: int, code: str, retryable: bool, peer: Peer, server: StrictServer, line: Line
) -> None:
    server.fail(status, "x", f"no, {KEY}", retry_after="7")
    with pytest.raises(ProviderError) as caught:
        heard(peer, said(peer, user("Hi")), line, server)
    error = caught.value
    assert (error.code, error.retryable, error.retry_after, error.status) == (code, retryable, 7.0, status)
    assert KEY not in error.message + error.detail
    assert error.tokens is None


@EACH
def test_a_connection_lost_in_mid_stream_is_an_error_and_what_was_said_stays_said(
    peer: Peer, server: StrictServer, line: Line
) -> None:
    server.do(Said([peer.begun], cut=True))
    pieces: list[Piece] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(peer.driver.stream(said(peer, user("Hi")), line, Endpoint(server.url, SecretStr(KEY))))
    assert pieces == [TextDelta(text="Partial")]
    assert (caught.value.retryable, caught.value.tokens) == (True, None)


@EACH
def test_a_hang_up_in_mid_text_stops_the_answer_and_the_provider_feels_it(
    peer: Peer, server: StrictServer, line: Line
) -> None:
    gone = threading.Event()

    def until_gone() -> None:
        server.connections[0].settimeout(5)
        if server.connections[0].recv(1) == b"":
            gone.set()

    server.do(Said([peer.begun], then=until_gone))
    stream = peer.driver.stream(said(peer, user("Hi")), line, Endpoint(server.url, SecretStr(KEY)))
    assert next(stream) == TextDelta(text="Partial")
    threading.Timer(0.05, line.hang_up).start()
    with pytest.raises(ProviderError) as caught:
        next(stream)
    assert caught.value.code == "provider_closed"
    assert gone.wait(1)


@EACH
def test_half_a_surrogate_pair_in_a_prompt_does_not_reach_the_provider(
    peer: Peer, server: StrictServer, line: Line
) -> None:
    server.say(peer.answer())
    heard(peer, said(peer, user("a\ud83d")), line, server)
    assert "a?" in json.dumps(server.bodies[0])


@EACH
def test_r8_after_an_empty_answer_the_next_turn_is_accepted(peer: Peer, server: StrictServer, line: Line) -> None:
    server.say(peer.answer(""))
    server.say(peer.answer())
    nothing = reply(peer, said(peer, user("Hi")), line, server)
    assert nothing.blocks == ()
    heard(peer, said(peer, user("Hi"), replied(nothing), user("And now?", turn="t2")), line, server)
    assert server.refusals == []


def test_pp13_an_ollama_that_reports_2051_tokens_of_a_long_prompt_is_warned_of(running: Running, line: Line) -> None:
    peer = BY_NAME["ollama"]
    server = running(peer)
    server.say(ollama.ndjson(ollama.line("What rules?"), ollama.done(prompt=2051)))
    warned = reply(peer, said(peer, user("word " * 15_000)), line, server).warning
    assert warned is not None
    assert "Ollama read only 2051 of about 15" in warned
    server.say(ollama.ndjson(ollama.line("Yes."), ollama.done(prompt=15_100)))
    assert reply(peer, said(peer, user("word " * 15_000)), line, server).warning is None


def test_a_prompt_that_does_not_fit_is_a_failure_of_its_own_kind(running: Running, line: Line) -> None:
    for provider, words in (
        ("ollama", "the prompt is longer than the context length currently available to the model"),
        ("openai-compatible", "the request exceeds the available context size, try increasing it"),
        ("openrouter", "This endpoint's maximum context length is 8192 tokens. Please reduce the length."),
    ):
        peer = BY_NAME[provider]
        server = running(peer)
        server.fail(400, "invalid_request_error", words)
        with pytest.raises(ProviderError) as caught:
            heard(peer, said(peer, user("a")), line, server)
        assert (caught.value.code, caught.value.retryable) == ("provider_overflow", False)


def test_the_models_of_the_tests_think() -> None:
    assert all(thinks(MODELS[provider]) for provider in ("openai", "openrouter"))


WHOLE_ANSWERS = [
    (
        "openai",
        {"object": "response", "status": "completed", "output": [openai.message(0, "Hi")[-1]["item"]], "usage": None},
    ),
    ("openai-compatible", {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": None}),
    ("ollama", {"message": {"content": "Hi"}, "done": True}),
]


@pytest.mark.parametrize(("provider", "body"), WHOLE_ANSWERS, ids=[one[0] for one in WHOLE_ANSWERS])
def test_a_server_that_does_not_stream_is_understood_all_the_same(
    provider: str, body: Any, running: Running, line: Line
) -> None:
    peer = BY_NAME[provider]
    server = running(peer)
    server.do(Said([json.dumps(body).encode()], headers={"content-type": "application/json; charset=utf-8"}))
    assert heard(peer, said(peer, user("a")), line, server)[0] == TextDelta(text="Hi")


@EACH
def test_an_error_that_calls_itself_a_success_is_an_error(peer: Peer, server: StrictServer, line: Line) -> None:
    body = json.dumps({"error": {"message": "Sorry", "code": 503}}).encode()
    server.do(Said([body], headers={"content-type": "application/json"}))
    with pytest.raises(ProviderError, match="stream error: Sorry") as caught:
        heard(peer, said(peer, user("a")), line, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
