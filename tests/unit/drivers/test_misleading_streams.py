"""Streams whose obvious reading would be a wrong one: empty arguments, a call run twice, silence, lost usage.

What each protocol's servers send is decided in 0195 and 0196. Chat completions have more rows in odd_streams.py.
"""

import json
from typing import Any

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelResponse, StreamPart, TextDelta
from fermata.drivers.protocols.cumulative_text import CumulativeText
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import anthropic, chat, ollama, openai
from tests.strict.anthropic import StrictAnthropic
from tests.strict.server import ScriptedResponse
from tests.unit.drivers.conversation_builders import message_from_response, tool_result, user_message
from tests.unit.drivers.odd_streams import CALLS, DONE, PARENT, STOP, encode
from tests.unit.drivers.strict_providers import (
    CASES_BY_PROVIDER,
    StartServer,
    StrictProvider,
    build_request,
    collect_parts,
)

ANTHROPIC = StrictProvider("anthropic", StrictAnthropic, "/v1/messages", anthropic.text_response, b"", b"")
ARGUMENTS = json.dumps(PARENT)


def ask(
    provider: str,
    stream: bytes,
    running: StartServer,
    connection: HttpConnection,
    headers: dict[str, str] | None = None,
) -> tuple[str, ModelResponse]:
    """Return what was shown, and the response."""
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    server.script_response(ScriptedResponse([stream], headers=headers or {}))
    parts: list[StreamPart] = collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert isinstance(parts[-1], ModelResponse)
    return "".join(part.text for part in parts if isinstance(part, TextDelta)), parts[-1]


def call_item(**members: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "insertHtml", "arguments": ""} | members


def responses_stream(*events: dict[str, Any]) -> bytes:
    return openai.encode_sse(openai.response_created(), *events, openai.response_ended())


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": 0, **members}


ADDED = event("output_item.added", item=call_item())
DELTA = event("function_call_arguments.delta", item_id="fc_1", delta=ARGUMENTS)
ONE_CALL = {
    "arguments only when they are done": (
        "openai",
        responses_stream(ADDED, event("function_call_arguments.done", item_id="fc_1", arguments=ARGUMENTS)),
    ),
    "arguments as an object when they are done": (
        "openai",
        responses_stream(ADDED, event("function_call_arguments.done", item_id="fc_1", arguments=PARENT)),
    ),
    "arguments only in the announcement": (
        "openrouter",
        responses_stream(event("output_item.added", item=call_item(arguments=ARGUMENTS))),
    ),
    "an empty object at the end": (
        "openai",
        responses_stream(ADDED, DELTA, event("output_item.done", item=call_item(arguments="{}"))),
    ),
    "the call under other ids at the end": (
        "openai",
        openai.encode_sse(
            openai.response_created(),
            ADDED,
            DELTA,
            event("output_item.done", item=call_item(arguments=ARGUMENTS)),
            openai.response_ended(output=[call_item(id="fc_9", call_id="call_9", arguments=ARGUMENTS)]),
        ),
    ),
    "an empty object behind the announced arguments": (
        "anthropic",
        anthropic.encode_sse(
            anthropic.message_start(input_tokens=5),
            anthropic.content_block(
                0,
                {"type": "tool_use", "id": "toolu_1", "name": "insertHtml", "input": PARENT},
                {"type": "input_json_delta", "partial_json": "{}"},
            ),
            anthropic.message_stop("tool_use"),
        ),
    ),
    "arguments as an object in a delta": (
        "anthropic",
        anthropic.encode_sse(
            anthropic.message_start(input_tokens=5),
            anthropic.content_block(
                0,
                {"type": "tool_use", "id": "toolu_1", "name": "insertHtml", "input": {}},
                {"type": "input_json_delta", "partial_json": PARENT},
            ),
            anthropic.message_stop("tool_use"),
        ),
    ),
    "a call without its wrapping": (
        "openai-compatible",
        encode(
            chat.make_chunk({"tool_calls": [{"index": 0, "id": "a", "name": "insertHtml", "arguments": ARGUMENTS}]}),
            CALLS,
            DONE,
        ),
    ),
    "one call in two lines under one id": (
        "ollama",
        ollama.encode_ndjson(
            *[
                {
                    "message": {
                        "content": "",
                        "tool_calls": [{"id": "call_1", "function": {"name": "insertHtml", "arguments": PARENT}}],
                    },
                    "done": False,
                }
            ]
            * 2,
            ollama.done_line(),
        ),
    ),
    "the same block twice": (
        "anthropic",
        anthropic.encode_sse(
            anthropic.message_start(input_tokens=5),
            anthropic.tool_use_block(0, "toolu_1", "insertHtml", ARGUMENTS),
            anthropic.tool_use_block(0, "toolu_1", "insertHtml", ARGUMENTS),
            anthropic.message_stop("tool_use"),
        ),
    ),
}


@pytest.mark.parametrize(("provider", "stream"), ONE_CALL.values(), ids=ONE_CALL)
def test_a_call_is_read_once_with_its_arguments(
    provider: str, stream: bytes, running: StartServer, connection: HttpConnection
) -> None:
    _, response = ask(provider, stream, running, connection)
    (call,) = response.blocks
    assert isinstance(call, ToolCallBlock)
    assert (call.tool_name, call.input, call.malformed) == ("insertHtml", PARENT, None)


def test_of_a_message_that_begins_anew_only_the_second_is_kept(
    running: StartServer, connection: HttpConnection
) -> None:
    """A gateway turned to another server in the middle. The calls of both would be the same one twice."""
    again = anthropic.message_start(input_tokens=5)
    again["message"]["id"] = "msg_2"
    stream = anthropic.encode_sse(
        anthropic.message_start(input_tokens=5),
        anthropic.text_block(0, "I inse"),
        anthropic.tool_use_block(1, "toolu_1", "insertHtml", ARGUMENTS),
        again,
        anthropic.text_block(0, "I insert it."),
        anthropic.tool_use_block(1, "toolu_2", "insertHtml", ARGUMENTS),
        anthropic.message_stop("tool_use"),
    )
    shown, response = ask("anthropic", stream, running, connection)
    assert shown == "I inse\n\nI insert it."
    assert [block.kind for block in response.blocks] == ["text", "toolCall"]


def test_lines_of_ollama_that_hold_the_whole_text_so_far_are_shown_once(
    running: StartServer, connection: HttpConnection
) -> None:
    lines = (ollama.make_line(text) for text in ("I", "I read", "I read it."))
    stream = ollama.encode_ndjson(*lines, ollama.done_line())
    assert ask("ollama", stream, running, connection)[0] == "I read it."


MESSAGE = event("output_item.added", item={"type": "message", "id": "msg_1", "content": []})
TEXTS = {
    "a text only when it is done": responses_stream(MESSAGE, event("output_text.done", item_id="msg_1", text="Hello.")),
    "a text only when its part is done": responses_stream(
        MESSAGE, event("content_part.done", item_id="msg_1", part={"type": "output_text", "text": "Hello."})
    ),
    "an end under another name": openai.encode_sse(
        openai.response_created(),
        openai.message_events(0, "Hello."),
        {"type": "response.done", "response": {"status": "completed", "output": []}},
    ),
}


@pytest.mark.parametrize("stream", TEXTS.values(), ids=TEXTS)
def test_a_text_is_shown_once_however_it_comes(stream: bytes, running: StartServer, connection: HttpConnection) -> None:
    shown, response = ask("openai", stream, running, connection)
    assert shown == "Hello."
    assert [block.text for block in response.blocks if block.kind == "text"] == ["Hello."]


def test_reasoning_that_is_only_done_is_not_shown_as_text(running: StartServer, connection: HttpConnection) -> None:
    part = {"type": "reasoning_text", "text": "Hm."}
    stream = responses_stream(event("content_part.done", part=part), *openai.message_events(1, "Hello."))
    assert ask("openai", stream, running, connection)[0] == "Hello."


def test_a_response_that_is_completed_as_failed_has_failed(running: StartServer, connection: HttpConnection) -> None:
    failed = {"status": "failed", "error": {"code": "server_error", "message": "Gone"}, "output": []}
    stream = openai.encode_sse(openai.response_created(), {"type": "response.completed", "response": failed})
    with pytest.raises(ProviderError, match="stream error: Gone"):
        ask("openai", stream, running, connection)


WRITTEN_CALLS = (
    '<tool_call>\n{"name": "insertHtml", "arguments": {}}\n</tool_call>',
    "<function=insertHtml><parameter=html>x</parameter></function>",
    'court\n<invoke name="insertHtml">\n<parameter name="html">x</parameter>\n</invoke>',
    '[TOOL_CALLS][{"name": "insertHtml", "arguments": {}}]',
    "<\uff5ctool\u2581calls\u2581begin\uff5c>insertHtml",
    '<\uff5c\uff5cDSML\uff5c\uff5cinvoke name="insertHtml">',
    '<|DSML|invoke name="insertHtml">',
    '{"name": "insertHtml", "parameters": {"html": "<p>x</p>"}}',
)


@pytest.mark.parametrize("words", WRITTEN_CALLS)
@pytest.mark.parametrize("provider", ["openai-compatible", "ollama", "anthropic"])
def test_a_call_that_is_written_as_text_is_told(
    provider: str, words: str, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    shown, response = ask(provider, peer.text_response(f"Let me see.\n{words}"[12 * words.startswith("{") :]),
                          running, connection)  # fmt: skip
    assert words in shown
    assert "wrote a tool call as text, so nothing was done" in (response.warning or "")


@pytest.mark.parametrize(
    "words",
    [
        "Write `<tool_call>{}</tool_call>` there.",
        'So:\n```xml\n<invoke name="x">\n</invoke>\n```',
        '{"name": "Bakery", "title": "Bread"}',
        "Use <function> and [tools].",
    ],
)
def test_an_answer_about_calls_is_none(words: str, running: StartServer, connection: HttpConnection) -> None:
    peer = CASES_BY_PROVIDER["openai-compatible"]
    assert ask("openai-compatible", peer.text_response(words), running, connection)[1].warning is None


@pytest.mark.parametrize(
    "state",
    [
        {"status": "queued", "message": "You are third in the queue"},
        {"type": "status", "detail": "Loading the model"},
        {"state": "processing", "reason": "warm-up"},
        {"id": "c1", "title": "A new chat"},
    ],
)
@pytest.mark.parametrize("provider", ["openai-compatible", "ollama", "anthropic"])
def test_words_about_the_progress_are_no_error(
    provider: str, state: dict[str, Any], running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    beat = json.dumps(state).encode() + b"\n" if provider == "ollama" else encode(state)
    assert ask(provider, beat + peer.text_response("Hello."), running, connection)[0] == "Hello."


def test_a_call_without_a_name_is_sent_back_to_ollama_with_one(
    running: StartServer, connection: HttpConnection
) -> None:
    nameless = ollama.encode_ndjson(ollama.tool_call_line("", PARENT), ollama.done_line())
    _, response = ask("ollama", nameless, running, connection)
    (call,) = response.blocks
    assert isinstance(call, ToolCallBlock)
    peer = CASES_BY_PROVIDER["ollama"]
    server = running(peer)
    server.script_chunks(peer.text_response())
    rows = (user_message("Hi"), message_from_response(response), tool_result(call.tool_call_id, 1))
    collect_parts(peer, build_request(peer, *rows), connection, server)
    assert server.refusals == []


ANNOUNCED = {
    "openai-compatible": encode(*chat.text_chunks("I look."), CALLS, DONE),
    "anthropic": anthropic.text_response("I look.", stop="tool_use"),
}


@pytest.mark.parametrize("provider", ANNOUNCED)
def test_a_call_that_is_announced_only_is_told_and_the_conversation_goes_on(
    provider: str, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    _, response = ask(provider, ANNOUNCED[provider], running, connection)
    assert "announced a tool call, but sent none" in (response.warning or "")
    server = running(peer)
    server.script_chunks(peer.text_response())
    rows = (user_message("Hi"), message_from_response(response), user_message("Go on", turn="t2"))
    collect_parts(peer, build_request(peer, *rows), connection, server)
    assert server.refusals == []


@pytest.mark.parametrize(
    ("usage", "completion"),
    [
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            103,
        ),
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 103,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            103,
        ),
        ({"prompt_tokens": 20, "completion_tokens": 424, "total_tokens": 1016}, 996),
        (
            {
                "prompt_tokens": 20,
                "completion_tokens": 4,
                "total_tokens": 99,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            4,
        ),
        ({"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 0}, 4),
    ],
)
def test_thinking_that_is_counted_apart_is_part_of_the_completion(
    usage: dict[str, Any], completion: int, running: StartServer, connection: HttpConnection
) -> None:
    stream = encode(*chat.text_chunks("Hi"), STOP, {"choices": [], "usage": usage}, DONE)
    tokens = ask("openai-compatible", stream, running, connection)[1].tokens
    assert (tokens.completion, tokens.raw) == (completion, usage)


def test_zeros_at_the_end_take_nothing_back(running: StartServer, connection: HttpConnection) -> None:
    stream = anthropic.encode_sse(
        anthropic.message_start(input_tokens=500, cache_read_input_tokens=300, output_tokens=0),
        anthropic.text_block(0, "Hi"),
        anthropic.message_stop("end_turn", input_tokens=0, cache_read_input_tokens=0, output_tokens=7),
    )
    tokens = ask("anthropic", stream, running, connection)[1].tokens
    assert (tokens.prompt, tokens.cache_read, tokens.completion) == (500, 300, 7)


@pytest.mark.parametrize(
    ("body", "headers", "name"),
    [
        (b"\x1b\x0f\x00\xf8\xa5[\xca\xe8\x01\x02\x03\x04\x05", {"content-encoding": "br"}, "br"),
        (b"[\x0f\x00\xf8", {"content-encoding": "br"}, "br"),
        (b"\x28\xb5\x2f\xfd\x04\x00abcdefgh", {"content-encoding": "zstd"}, "zstd"),
        (b"\x28\xb5\x2f\xfd\x04\x00abcdefgh", {}, "zstd"),
    ],
)
@pytest.mark.parametrize("provider", ["openai-compatible", "ollama", "anthropic"])
def test_a_compression_that_is_not_read_is_named(
    provider: str, body: bytes, headers: dict[str, str], name: str, running: StartServer, connection: HttpConnection
) -> None:
    with pytest.raises(ProviderError, match=rf"compressed \({name}\), although that was not asked for") as caught:
        ask(provider, body, running, connection, headers)
    assert not caught.value.retryable


def test_whole_texts_are_compared_once() -> None:
    """Each delta of the stream is as long as all before it, so what is read grows with the bytes that arrive."""
    text = CumulativeText()
    shown = [text.add("word " * count) for count in range(1, 50)]
    assert "".join(shown) + text.flush() == "word " * 49
