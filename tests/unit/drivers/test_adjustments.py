"""Requests that a server refuses are repeated with an adjustment, before anything was streamed."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from fermata.domain.blocks import ReasoningBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import TextDelta
from fermata.drivers.adjustments import Adjustment
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.anthropic import StrictAnthropic, content_block, encode_sse, text_response
from tests.unit.drivers.conversation_builders import (
    model_message,
    model_request,
    thinking_block,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.strict_providers import (
    CASES_BY_PROVIDER,
    STRICT_PROVIDERS,
    StartServer,
    build_request,
    collect_parts,
)


def refuses(words: str, when: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], str | None]:
    return lambda body: words if when(body) else None


ROWS = (user_message("a"), model_message(tool_call("toolu_01")), tool_result("toolu_01"))
ADJUSTMENTS = [
    (
        "openai-compatible",
        "Tool call id was toolu_01 but must be a-z, A-Z, 0-9, with a length of 9.",
        lambda body: any(len(call["id"]) != 9 for m in body["messages"] for call in m.get("tool_calls", ())),
    ),
    (
        "openai-compatible",
        "Function call is missing a thought_signature in functionCall parts.",
        lambda body: any("extra_content" not in call for m in body["messages"] for call in m.get("tool_calls", ())),
    ),
    (
        "openai-compatible",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        lambda body: any("reasoning_content" not in m for m in body["messages"] if "tool_calls" in m),
    ),
    (
        "openai-compatible",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        lambda body: any("reasoning_content" not in m for m in body["messages"] if m["role"] == "assistant"),
    ),
    (
        "openai-compatible",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (808 in the messages, "
        "8192 in the completion).",
        lambda body: "max_tokens" in body,
    ),
    ("openai-compatible", "Extra inputs are not permitted: stream_options", lambda body: "stream_options" in body),
    ("openai", "Encrypted content is not supported with this model.", lambda body: "include" in body),
    (
        "openai",
        "Your organization must be verified to generate reasoning summaries.",
        lambda body: "summary" in body.get("reasoning", {}),
    ),
    ("openai", "max_output_tokens is too large: 33192.", lambda body: "max_output_tokens" in body),
    ("openrouter", "max_tokens: 16384 > 8192, which is the maximum.", lambda body: "max_output_tokens" in body),
    ("ollama", '"qwen3" does not support thinking', lambda body: "think" in body),
]


@pytest.mark.parametrize(
    ("provider", "words", "when"), ADJUSTMENTS, ids=[f"{case[0]}: {case[1][:40]}" for case in ADJUSTMENTS]
)
def test_a_refused_request_is_repeated_as_the_server_wants_it_and_that_is_remembered(
    provider: str, words: str, when: Any, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER[provider]
    server = running(peer)
    server.rules.append(refuses(words, when))
    for _ in range(2):
        server.script_chunks(peer.text_response("Fine."))
        rows = build_request(peer, *ROWS, thinking_tokens=3000, model=f"{peer.model}-{len(words)}")
        assert TextDelta(text="Fine.") in collect_parts(peer, rows, connection, server)
    assert server.refusals == [words]
    assert len(server.bodies) == 3


def test_an_adjustment_for_one_account_does_not_apply_to_another(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER["openai"]
    server = running(peer)
    words = "Your organization must be verified to generate reasoning summaries."
    server.rules.append(refuses(words, lambda body: "reasoning" in body))
    request = build_request(peer, user_message("a"), model="gpt-5.9", thinking_tokens=3000)
    for key in ("sk-one-0123456789", "sk-one-0123456789", "sk-two-0123456789"):
        server.script_chunks(peer.text_response("Fine."))
        collect_parts(peer, request, connection, server, key=key)
    assert ["reasoning" in body for body in server.bodies] == [True, False, False, True, False]


def test_reasoning_that_cannot_be_decrypted_is_left_out_and_the_conversation_goes_on(
    running: StartServer, connection: HttpConnection
) -> None:
    """The refusal is about this conversation, so the next one is asked without the adjustment."""
    peer = CASES_BY_PROVIDER["openai"]
    server = running(peer)
    foreign = ReasoningBlock(
        provider="openai", model=peer.model, payload={"type": "reasoning", "encrypted_content": "of another account"}
    )
    rows = (user_message("a"), model_message(foreign, tool_call("t1")), tool_result("t1"))
    for _ in range(2):
        server.script_chunks(peer.text_response())
        collect_parts(peer, build_request(peer, *rows), connection, server)
    assert ["encrypted_content" in json.dumps(body["input"]) for body in server.bodies] == [True, False] * 2


def test_a_refusal_without_an_adjustment_is_raised_after_one_request(
    running: StartServer, connection: HttpConnection
) -> None:
    for peer in STRICT_PROVIDERS:
        server = running(peer)
        server.rules.append(refuses("Invalid tool schema", lambda body: True))
        with pytest.raises(ProviderError, match="Invalid tool schema"):
            collect_parts(peer, build_request(peer, user_message("a")), connection, server)
        assert len(server.bodies) == 1


def test_a_server_that_always_refuses_is_asked_a_limited_number_of_times(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER["openai-compatible"]
    server = running(peer)
    words = "stream_options max_tokens tool_choice thought_signature reasoning_content is not tool call id length of 9"
    server.rules.append(refuses(words, lambda body: True))
    with pytest.raises(ProviderError):
        collect_parts(peer, build_request(peer, user_message("a"), model="stubborn"), connection, server)
    assert len(server.bodies) <= 10


def test_an_openai_model_at_another_address_is_asked_without_reasoning_effort_if_that_is_refused(
    running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER["openai-compatible"]
    server = running(peer)
    words = "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions."
    server.rules.append(refuses(words, lambda body: "reasoning_effort" in body))
    server.script_chunks(peer.text_response("Fine."))
    assert collect_parts(peer, build_request(peer, *ROWS, thinking_tokens=3000, model="gpt-5.4"), connection, server)[
        0
    ] == TextDelta(text="Fine.")
    assert server.refusals == [words]


@pytest.mark.parametrize(
    "words",
    [
        '"thinking.type.enabled" is not supported for this model.',
        "adaptive thinking is not supported on this model",
        "This model does not support thinking.",
    ],
)
def test_a_model_that_refuses_thinking_is_asked_without_it(
    words: str, provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.rules.append(refuses(words, lambda body: "thinking" in body))
    request = model_request(user_message("a"), model="some-model", thinking_tokens=3000)
    for _ in range(2):
        provider.script_chunks(text_response("Fine."))
        assert TextDelta(text="Fine.") in list(get_provider("anthropic").stream(request, connection, endpoint))
    assert provider.refusals == [words]
    assert [body["max_tokens"] for body in provider.bodies] == [11_192, 8192, 8192]


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.0: Input tag 'x' found using 'type' does not match any of the expected tags: 'text'",
        "messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ],
)
@pytest.mark.parametrize("name", ["claude-opus-4-5", "claude-opus-5"])
def test_thinking_that_another_account_signed_is_left_out_and_the_conversation_goes_on(
    words: str, name: str, provider: StrictAnthropic, connection: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    provider.rules.append(refuses(words, lambda body: "Hm." in json.dumps(body)))
    provider.record_stream(encode_sse(content_block(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})))
    rows = [
        user_message("a"),
        model_message(thinking_block("Hm.", of=name), "One moment.", tool_call("toolu_1")),
        tool_result("toolu_1"),
    ]
    request = model_request(*rows, model=name, thinking_tokens=3000)
    for _ in range(2):
        provider.script_chunks(text_response("Fine."))
        assert TextDelta(text="Fine.") in list(get_provider("anthropic").stream(request, connection, endpoint))
    assert provider.refusals == [words, words], "this is about the conversation, and not remembered of the server"
    assert "toolu_1" in json.dumps(provider.bodies[1])


def test_adjustments_are_remembered_by_the_connection_that_learned_them(running: StartServer) -> None:
    peer = CASES_BY_PROVIDER["openai"]
    server = running(peer)
    server.rules.append(refuses("max_output_tokens is too large", lambda body: "max_output_tokens" in body))
    request = build_request(peer, user_message("a"))
    for _ in range(2):
        with closing(HttpConnection(stall_seconds=5)) as connection:
            for _ in range(2):
                server.script_chunks(peer.text_response("Fine."))
                collect_parts(peer, request, connection, server)
    assert len(server.refusals) == 2


def test_only_the_field_that_an_adjustment_names_is_dropped() -> None:
    """The name of an adjustment says nothing about fields."""
    adjustment = Adjustment("model", r"refused", drops="stream")
    assert (adjustment.name, adjustment.drops) == ("model", "stream")
    provider = replace(get_provider("ollama"), adjustments=(adjustment,))
    body = json.loads(provider._encode_body(model_request(user_message("a")), frozenset({"model"})))
    assert "model" in body
    assert "stream" not in body
