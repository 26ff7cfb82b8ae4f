"""The demo model on the wire: its protocol, its scripts, and what it remembers."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelRequest, ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.drivers.protocols.anthropic_messages.request import build_request_body
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.pricing.catalogue import parse_catalogue
from tests.unit.drivers.conversation_builders import (
    TOOLS,
    message_from_response,
    model_request,
    tool_result,
    user_message,
)
from tests.waiting import BACKSTOP_SECONDS, wait_until

ROOT = Path(__file__).parents[3]
HEADERS = {"anthropic-version": "2023-06-01"}


def set_script(http: httpx.Client, key: str, *steps: dict[str, Any], **members: Any) -> None:
    posted = http.post("/demo/script", json={"key": key, "steps": steps, **members})
    assert posted.status_code == 200, posted.text


def heard(asked: ModelRequest, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> list[StreamPart]:
    return list(get_provider("anthropic").stream(asked, line, endpoint))


def reply(asked: ModelRequest, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> ModelResponse:
    last = heard(asked, line, endpoint)[-1]
    assert isinstance(last, ModelResponse)
    return last


def seen(http: httpx.Client, key: str) -> list[dict[str, Any]]:
    requests: list[dict[str, Any]] = http.get("/demo/requests", params={"key": key}).json()["requests"]
    return requests


# The protocol


def test_the_stream_has_the_shape_of_the_real_one(http: httpx.Client, key: str) -> None:
    set_script(http, key, {"text": "Hi you", "toolCalls": [{"name": "read_document", "input": {"a": 1}}]})
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    response = http.post("/v1/messages", json=body, headers=HEADERS | {"x-api-key": key})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["request-id"].startswith("req_")
    frames = [frame.split("\n") for frame in response.text.strip().split("\n\n")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in events]
    assert [event["type"] for event in events] == [
        "message_start",
        "ping",
        "content_block_start",
        *["content_block_delta"] * 2,
        "content_block_stop",
        "content_block_start",
        *["content_block_delta"] * 2,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["usage"]["output_tokens"] == 1
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_without_stream_the_answer_comes_in_one_piece(http: httpx.Client, key: str) -> None:
    set_script(http, key, {"text": "Hi"})
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    message = http.post("/v1/messages", json=body, headers=HEADERS | {"x-api-key": key}).json()
    assert message["content"] == [{"type": "text", "text": "Hi"}]
    assert (message["role"], message["stop_reason"], message["model"]) == ("assistant", "end_turn", "m")
    assert message["usage"].keys() >= {"input_tokens", "output_tokens"}


def test_what_the_real_api_refuses_is_refused(http: httpx.Client, key: str) -> None:
    good = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    for body, headers, status, words in (
        (good, {}, 401, "x-api-key header is required"),
        (good, {"x-api-key": key}, 400, "anthropic-version"),
        (good | {"prompt": 1}, HEADERS | {"x-api-key": key}, 400, "prompt: Extra inputs are not permitted"),
        (good | {"messages": []}, HEADERS | {"x-api-key": key}, 400, "at least one message"),
    ):
        response = http.post("/v1/messages", json=body, headers=headers)
        assert response.status_code == status
        assert response.json()["type"] == "error"
        assert words in response.json()["error"]["message"]
    assert http.post("/v1/messages", content=b"{", headers=HEADERS | {"x-api-key": key}).status_code == 400


def test_models_are_listed_to_who_has_a_key(http: httpx.Client) -> None:
    assert http.get("/v1/models").status_code == 401
    models = http.get("/v1/models", headers={"x-api-key": "k"}).json()["data"]
    assert [model["id"] for model in models] == ["fermata-demo"]
    assert "not an AI" in models[0]["display_name"]


def test_usage_counts_what_an_earlier_request_left_in_the_cache(
    line: HttpConnection, endpoint: AuthenticatedEndpoint, http: httpx.Client
) -> None:
    calls = [{"name": "read_document", "input": {}}]
    set_script(http, endpoint.plain_key, {"toolCalls": calls}, {"text": "Done"})
    asked = model_request(user_message("A prompt that is long enough to be counted" * 20), volatile="Now")
    first = reply(asked, line, endpoint)
    assert isinstance(first.blocks[0], ToolCallBlock)
    rows = (*asked.messages, message_from_response(first), tool_result(first.blocks[0].tool_call_id, "x" * 400))
    second = reply(asked.model_copy(update={"messages": rows}), line, endpoint)
    assert (first.tokens.cache_read, second.tokens.cache_read) == (0, first.tokens.cache_creation)
    assert second.tokens.cache_creation > 100
    assert second.tokens.completion > 0


# Scripts


def test_a_script_is_followed_step_by_step_and_then_the_rules_answer(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    set_script(http, endpoint.plain_key, {"text": "One"}, {"text": "Two", "stop": "max_tokens"})
    said = [reply(model_request(user_message("Hi")), line, endpoint) for _ in range(3)]
    assert [one.blocks[0] for one in said[:2]] == [TextBlock(text="One"), TextBlock(text="Two")]
    assert [one.stop for one in said] == [FinishReason.END, FinishReason.MAX_TOKENS, FinishReason.END]
    assert "not an AI" in said[2].model_dump_json()


def test_a_script_is_found_by_key_by_marker_and_by_words(
    http: httpx.Client, url: str, line: HttpConnection, key: str
) -> None:
    set_script(http, key, {"text": "Mine"}, repeat_last=True, match=f"words of {key}")
    other = AuthenticatedEndpoint(url, SecretStr("another key"))
    for prompt, endpoint in (
        ("Hi", AuthenticatedEndpoint(url, SecretStr(key))),
        (f"Hi [[script:{key}]]", other),
        (f"Some words of {key}, please", other),
    ):
        assert reply(model_request(user_message(prompt)), line, endpoint).blocks == (TextBlock(text="Mine"),)
    assert "not an AI" in reply(model_request(user_message("Hi")), line, other).model_dump_json()
    http.delete("/demo/script", params={"key": key})
    assert (
        "not an AI"
        in reply(model_request(user_message("Hi")), line, AuthenticatedEndpoint(url, SecretStr(key))).model_dump_json()
    )


def test_many_turns_can_follow_one_script_by_their_rounds(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    set_script(http, endpoint.plain_key, {"toolCalls": [{"name": "read_document"}]}, {"text": "Done"}, by="round")
    opened = [reply(model_request(user_message("Hi")), line, endpoint) for _ in range(2)]
    for one in opened:
        assert isinstance(one.blocks[0], ToolCallBlock)
        rows = (user_message("Hi"), message_from_response(one), tool_result(one.blocks[0].tool_call_id))
        assert reply(model_request(*rows), line, endpoint).blocks == (TextBlock(text="Done"),)


def test_a_script_with_a_mistake_is_refused_with_its_place(http: httpx.Client) -> None:
    posted = http.post("/demo/script", json={"key": "k", "steps": [{"txet": "Hi"}]})
    assert posted.status_code == 400
    assert "txet" in posted.json()["error"]


@pytest.mark.parametrize(
    ("step", "code", "retry_after"),
    [
        ({"status": 401}, "provider_auth", None),
        ({"status": 429, "retryAfter": 7}, "provider_quota", 7.0),
        ({"status": 529}, "provider_overloaded", None),
        ({"status": 500, "error": {"type": "api_error", "message": "Down"}}, "provider_error", None),
    ],
)
def test_a_step_can_be_a_status(
    step: dict[str, Any],
    code: str,
    retry_after: float | None,
    http: httpx.Client,
    line: HttpConnection,
    endpoint: AuthenticatedEndpoint,
) -> None:
    set_script(http, endpoint.plain_key, step)
    with pytest.raises(ProviderError) as caught:
        heard(model_request(user_message("Hi")), line, endpoint)
    assert (caught.value.code, caught.value.retry_after) == (code, retry_after)


@pytest.mark.parametrize(
    ("fault", "code"),
    [({"error": {"type": "overloaded_error", "message": "Overloaded"}}, "provider_overloaded"), ({"cut": True}, None)],
    ids=["error event", "cut"],
)
def test_a_step_can_fail_after_so_many_characters(
    fault: dict[str, Any], code: str | None, http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    set_script(http, endpoint.plain_key, {"text": "Partial answer", "after": 7, "chunks": 1, **fault})
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(get_provider("anthropic").stream(model_request(user_message("Hi")), line, endpoint))
    assert pieces == [TextDelta(text="Partial")]
    assert caught.value.code == (code or "provider_unreachable")


def test_a_step_can_stall(http: httpx.Client, endpoint: AuthenticatedEndpoint) -> None:
    set_script(http, endpoint.plain_key, {"text": "Partial answer", "after": 7, "stall": 3600})
    line = HttpConnection(stall_seconds=0.3)
    with pytest.raises(ProviderError) as caught:
        heard(model_request(user_message("Hi")), line, endpoint)
    line.close()
    assert caught.value.code == "provider_stalled"


def test_a_short_stall_is_only_a_delay(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    set_script(http, endpoint.plain_key, {"text": "Whole answer", "after": 5, "stall": 0.1})
    assert reply(model_request(user_message("Hi")), line, endpoint).blocks == (TextBlock(text="Whole answer"),)


def test_a_step_can_send_byte_by_byte(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    calls = [{"name": "read_document", "input": {"city": "杭州"}}]
    set_script(http, endpoint.plain_key, {"text": "那个你好🦀", "toolCalls": calls, "singleBytes": True})
    said, called = reply(model_request(user_message("Hi")), line, endpoint).blocks
    assert said == TextBlock(text="那个你好🦀")
    assert isinstance(called, ToolCallBlock)
    assert called.input == {"city": "杭州"}


def test_a_step_can_send_arguments_that_are_cut_off(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    calls = [{"name": "insertHtml", "raw": '{"html":"<p'}]
    set_script(http, endpoint.plain_key, {"toolCalls": calls, "stop": "max_tokens"})
    cut = reply(model_request(user_message("Hi")), line, endpoint)
    assert isinstance(cut.blocks[0], ToolCallBlock)
    assert (cut.blocks[0].malformed, cut.stop) == (True, FinishReason.MAX_TOKENS)


def test_a_step_can_say_what_was_used(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    usage = {"input_tokens": 4, "output_tokens": 23, "cache_read_input_tokens": 2455, "cache_creation_input_tokens": 0}
    set_script(http, endpoint.plain_key, {"text": "Hi", "usage": usage})
    tokens = reply(model_request(user_message("Hi")), line, endpoint).tokens
    assert (tokens.prompt, tokens.completion, tokens.cache_read) == (4, 23, 2455)


def test_thinking_is_signed_and_comes_back_only_as_it_was(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    calls = [{"name": "read_document"}]
    set_script(http, endpoint.plain_key, {"thinking": "Look first.", "toolCalls": calls}, {"text": "Done"})
    pieces = heard(model_request(user_message("Hi"), thinking_tokens=2000), line, endpoint)
    assert isinstance(pieces[0], ReasoningDelta)
    first = pieces[-1]
    assert isinstance(first, ModelResponse)
    thought, called = first.blocks
    assert isinstance(thought, ReasoningBlock)
    assert isinstance(called, ToolCallBlock)

    def again(block: ReasoningBlock) -> httpx.Response:
        row = message_from_response(first.model_copy(update={"blocks": (block, called)}))
        body = build_request_body(
            model_request(user_message("Hi"), row, tool_result(called.tool_call_id), thinking_tokens=2000)
        )
        return http.post("/v1/messages", json=body, headers=HEADERS | {"x-api-key": endpoint.plain_key})

    forged = again(thought.model_copy(update={"payload": thought.payload | {"thinking": "Look later."}}))
    assert (forged.status_code, "Invalid `signature`" in forged.text) == (400, True)
    assert "Done" in again(thought).text


# What it remembers


def test_requests_are_kept_with_their_bodies_and_moments(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    before = time.monotonic_ns()
    set_script(http, endpoint.plain_key, {"text": "a b c d", "firstMs": 20, "chunkMs": 10, "chunks": 4})
    heard(model_request(user_message("Hi")), line, endpoint)
    after = time.monotonic_ns()
    (record,) = seen(http, endpoint.plain_key)
    assert record["body"]["tools"][0]["name"] == TOOLS[0].name
    assert before < record["arrivedNs"] < record["firstByteNs"] < record["lastByteNs"] < after
    assert record["firstByteNs"] - record["arrivedNs"] >= 20_000_000
    assert record["lastByteNs"] - record["firstByteNs"] >= 30_000_000
    assert (record["status"], record["closedByPeerNs"]) == (200, None)
    assert (
        "body" not in http.get("/demo/requests", params={"bodies": 0, "key": endpoint.plain_key}).json()["requests"][0]
    )
    http.delete("/demo/requests", params={"key": endpoint.plain_key})
    assert seen(http, endpoint.plain_key) == []


def test_it_notices_when_its_reader_hangs_up(
    http: httpx.Client, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    set_script(http, endpoint.plain_key, {"text": "Partial answer", "after": 7, "stall": 3600})
    stream = get_provider("anthropic").stream(model_request(user_message("Hi")), line, endpoint)
    next(stream)
    threading.Timer(0.05, line.abort).start()
    with pytest.raises(ProviderError):
        list(stream)
    wait_until(lambda: seen(http, endpoint.plain_key)[0]["closedByPeerNs"], "the closed connection is recorded")


def test_the_command_prints_its_address_and_listens_on_this_machine_only() -> None:
    command = [sys.executable, "-m", "local.demo_model", "--port", "0", "--chunks", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        posted = json.loads(process.stdout.readline())
        assert posted["url"] == f"http://127.0.0.1:{posted['port']}"
        assert httpx.get(posted["url"] + "/healthz").json()["ok"] is True
    finally:
        process.terminate()
        process.communicate(timeout=BACKSTOP_SECONDS)


def test_the_command_explains_itself() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "local.demo_model", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert "not an AI" in shown
    assert "--first-ms" in shown


def test_it_serves_a_recorded_catalogue_in_which_it_has_a_price_itself(http: httpx.Client) -> None:
    listed = http.get("/api/v1/models")
    catalogue = parse_catalogue(listed.content, 0)
    assert len(catalogue.priced_models) == len(listed.json()["data"]) - 1
    assert catalogue.find_priced_model("fermata-demo")
    old, new = (catalogue.find_priced_model(name) for name in ("gpt-4o-2024-05-13", "gpt-4o"))
    assert old != new
