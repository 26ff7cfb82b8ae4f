"""Streams as odd servers send them: each is understood, or is an error in words (decisions 0195 to 0197).

Every row is a whole HTTP response, replayed on a socket: what a chat-completions server sent, and what has to come of
it. Rows that other protocols can meet as well are repeated for them below.
"""

import json
import re
from typing import Any

import pytest

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import anthropic, chat, gemini, ollama, openai
from tests.strict.anthropic import StrictAnthropic
from tests.strict.server import ScriptedResponse
from tests.unit.drivers.conversation_builders import (
    message_from_response,
    model_message,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.odd_streams import CALLS, DONE, ODD_STREAMS, STOP, Odd, call_in_one, encode, fragment
from tests.unit.drivers.strict_providers import (
    CASES_BY_PROVIDER,
    StartServer,
    StrictProvider,
    build_request,
    collect_parts,
)

CHAT = CASES_BY_PROVIDER["openai-compatible"]
ANTHROPIC = StrictProvider("anthropic", StrictAnthropic, "/v1/messages", anthropic.text_response, b"", b"")


def replay(odd: Odd, running: StartServer, connection: HttpConnection) -> list[StreamPart]:
    server = running(CHAT)
    server.script_response(ScriptedResponse([odd.stream], headers=odd.headers))
    return collect_parts(CHAT, build_request(CHAT, user_message("Hi")), connection, server)


def replay_chunks(provider: str, stream: bytes, running: StartServer, connection: HttpConnection) -> list[StreamPart]:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    server.script_chunks(stream)
    return collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)


def get_response(parts: list[StreamPart]) -> ModelResponse:
    assert isinstance(parts[-1], ModelResponse)
    return parts[-1]


@pytest.mark.parametrize("odd", ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_an_odd_stream_is_understood(odd: Odd, running: StartServer, connection: HttpConnection) -> None:
    parts = replay(odd, running, connection)
    response = get_response(parts)
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == odd.text
    assert "".join(block.text for block in response.blocks if block.kind == "text") == odd.text
    assert "".join(part.text for part in parts if isinstance(part, ReasoningDelta)) == odd.reasoning
    assert [(call.tool_name, call.input) for call in calls] == list(odd.calls)
    assert not any(call.malformed for call in calls)
    assert len({call.tool_call_id for call in calls}) == len(calls)
    json.dumps(response.to_wire(), ensure_ascii=False).encode()


def test_a_wrapped_error_is_an_error(running: StartServer, connection: HttpConnection) -> None:
    with pytest.raises(ProviderError, match="stream error: Engine gone"):
        replay(Odd(encode({"data": {"error": {"message": "Engine gone"}}}, DONE)), running, connection)


@pytest.mark.parametrize("odd", ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_the_conversation_goes_on_after_an_odd_stream(
    odd: Odd, running: StartServer, connection: HttpConnection
) -> None:
    response = get_response(replay(odd, running, connection))
    results = [tool_result(call.tool_call_id, {}) for call in response.blocks if isinstance(call, ToolCallBlock)]
    rows = (user_message("Hi"), message_from_response(response), *results, user_message("Again", turn="t2"))
    server = running(CHAT)
    server.script_chunks(CHAT.text_response())
    assert get_response(collect_parts(CHAT, build_request(CHAT, *rows), connection, server)).blocks
    assert "<|" not in json.dumps(server.bodies[-1]).replace("`<|im_end|>`", "")


UNREADABLE = {
    "cut off": '{"parentId": "root", "html": "<p>',
    "an apostrophe between apostrophes": "{'parentId': 'it's'}",
    "two different objects": '{"a": 1}{"a": 2}',
    "no JSON": "root, please",
    "a number that JSON does not have": '{"a": NaN}',
}


@pytest.mark.parametrize("arguments", UNREADABLE.values(), ids=UNREADABLE)
def test_arguments_without_a_plain_meaning_are_quoted(
    arguments: str, running: StartServer, connection: HttpConnection
) -> None:
    (call,) = get_response(replay(Odd(call_in_one(arguments)), running, connection)).blocks
    assert isinstance(call, ToolCallBlock)
    assert (call.input, call.malformed) == ({}, True)
    assert arguments in (call.problem or "")


def test_long_unreadable_arguments_are_quoted_with_their_end_and_the_place(
    running: StartServer, connection: HttpConnection
) -> None:
    arguments = '{"html": "' + "é" * 3000 + '" and the end'
    (call,) = get_response(replay(Odd(call_in_one(arguments)), running, connection)).blocks
    assert isinstance(call, ToolCallBlock)
    problem = call.problem or ""
    assert "column 3013" in problem
    assert problem.endswith('" and the end')
    assert 500 < len(problem) < 700


def test_fragments_of_reasoning_details_are_sent_back_in_one_piece_with_their_signature(
    running: StartServer, connection: HttpConnection
) -> None:
    def detail(**members: Any) -> Any:
        return chat.make_chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0} | members]})

    server = running(CHAT)
    sealed = {"type": "reasoning.encrypted", "data": "zzz", "index": 0, "id": "call_a"}
    stream = encode(
        detail(text="Let", format="f-v1"),
        detail(text=" me see.", format="f-v1"),
        detail(signature="EsigAAA="),
        chat.make_chunk({"reasoning_details": [sealed]}),
        detail(text="Another.", index=1),
        fragment("{}", "read_document", "call_a"),
        CALLS,
        DONE,
    )
    response = get_response(replay(Odd(stream), running, connection))
    rows = (user_message("Hi"), message_from_response(response), tool_result("call_a", 1))
    server.script_chunks(CHAT.text_response())
    collect_parts(CHAT, build_request(CHAT, *rows), connection, server)
    assert server.refusals == []
    (sent,) = [message for message in server.bodies[1]["messages"] if message["role"] == "assistant"]
    merged = {"type": "reasoning.text", "index": 0, "text": "Let me see.", "format": "f-v1", "signature": "EsigAAA="}
    assert sent["reasoning_details"] == [merged, sealed, {"type": "reasoning.text", "index": 1, "text": "Another."}]


def test_thinking_that_only_a_closing_tag_ends_is_not_stored(running: StartServer, connection: HttpConnection) -> None:
    """Some chat templates open the tag themselves, so that the model only closes it."""
    stream = encode(*chat.text_chunks("The user says hi.\n</think>\n\nHel", "lo!"), STOP, DONE)
    parts = replay(Odd(stream), running, connection)
    assert "</think>" not in "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert get_response(parts).blocks == (TextBlock(text="Hello!"),)


def test_thinking_between_tags_is_not_sent_back(running: StartServer, connection: HttpConnection) -> None:
    server = running(CHAT)
    response = get_response(replay(ODD_STREAMS["thinking between tags"], running, connection))
    server.script_chunks(CHAT.text_response())
    rows = (user_message("Hi"), message_from_response(response), user_message("Again", turn="t2"))
    collect_parts(CHAT, build_request(CHAT, *rows), connection, server)
    assert "The user says" not in json.dumps(server.bodies[1])


def test_a_prompt_count_without_its_cached_part_is_completed(running: StartServer, connection: HttpConnection) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 4495}}
    for usage in (chat.usage_chunk(5, 4, **details), chat.usage_chunk(5000, 4, total_tokens=9499, **details)):
        stream = encode(*chat.text_chunks("Hi"), STOP, usage, DONE)
        tokens = get_response(replay(Odd(stream), running, connection)).tokens
        assert tokens.context_tokens == tokens.prompt + 4495
        assert tokens.uncached_prompt_tokens == tokens.prompt


def anthropic_stream(*events: Any) -> bytes:
    return anthropic.encode_sse(anthropic.message_start(input_tokens=5), *events)


ERROR_FRAMES: dict[str, tuple[str, bool]] = {
    'data: {"object": "error", "message": "Engine gone", "type": "InternalServerError", "code": 500}\n\n': (
        "provider_error", True),
    'event: error\ndata: {"message": "Engine gone", "code": 429}\n\n': ("provider_quota", True),
    "event: error\ndata: Engine gone\n\n": ("provider_error", False),
    'data: {"detail": "Engine gone", "status": 503}\n\n': ("provider_overloaded", True),
    'data: [{"error": {"code": 503, "message": "Engine gone", "status": "UNAVAILABLE"}}]\n\n': (
        "provider_overloaded", True),
    'event: error\ndata: {"type": "error", "message": "Engine gone", "code": "401"}\n\n': ("provider_auth", False),
    'data: {"choices": [], "message": "Engine gone", "code": 503}\n\n': ("provider_overloaded", True),
    'data: {"choices": null, "base_resp": {"status_code": 1000, "status_msg": "Engine gone"}}\n\n': (
        "provider_error", False),
    'data: {"errors": [{"message": "Engine gone", "code": 500}]}\n\n': ("provider_error", True),
    'data: {"fault": {"faultstring": "Engine gone", "detail": {"errorcode": "x"}}}\n\n': ("provider_error", False),
    'data: {"error_code": 429, "error_msg": "Engine gone"}\n\n': ("provider_quota", True),
    'data: {"detail": [{"loc": ["body"], "msg": "Engine gone"}], "status": 422}\n\n': ("provider_request", False),
    'data: {"title": "Engine gone", "status": 503, "type": "about:blank"}\n\n': ("provider_overloaded", True),
}  # fmt: skip
PARTIAL = {
    "openai-compatible": encode(*chat.text_chunks("Par")),
    "openai": openai.encode_sse(openai.response_created(), openai.message_events(0, "Par")[:-1]),
    "anthropic": anthropic_stream(anthropic.text_block(0, "Par")[:-1]),
}


@pytest.mark.parametrize("provider", PARTIAL)
@pytest.mark.parametrize("error", ERROR_FRAMES)
def test_an_error_frame_needs_no_member_of_that_name(
    provider: str, error: str, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    server.script_chunks(PARTIAL[provider] + error.encode() + DONE.encode())
    with pytest.raises(ProviderError, match="stream error: Engine gone") as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ERROR_FRAMES[error]


@pytest.mark.parametrize("line", [{"message": "Engine gone"}, {"error": "Engine gone"}, {"detail": "Engine gone"}])
def test_an_error_line_of_ollama_needs_no_member_of_that_name(
    line: Any, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER["ollama"]
    server = running(peer)
    server.script_chunks(ollama.encode_ndjson(ollama.make_line("Par")) + json.dumps(line).encode() + b"\n")
    with pytest.raises(ProviderError, match="stream error: Engine gone"):
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)


def thought(text: str = "Hm.") -> Any:
    deltas = ({"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "c2ln"})
    return anthropic.content_block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


WITHOUT_ANSWER = {
    "only [DONE]": ("openai-compatible", DONE.encode()),
    "empty content": ("openai-compatible", encode(*chat.text_chunks(""), STOP, chat.usage_chunk(8412, 0), DONE)),
    "blank content": ("openai-compatible", encode(*chat.text_chunks(" \n"), STOP, DONE)),
    "an unreadable call": (
        "openai-compatible",
        encode(chat.make_chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL"), chat.usage_chunk(8412, 0), DONE),
    ),
    "only thinking between tags": (
        "openai-compatible",
        encode(chat.make_chunk({"content": "<think>Hm.</think>"}), STOP, DONE),
    ),
    "an empty response": ("openai", openai.encode_sse(openai.response_created(), openai.response_ended())),
    "an unreadable call of a gateway": (
        "openai",
        openai.encode_sse(
            openai.response_created(),
            openai.response_ended("incomplete", incomplete_details={"reason": "MALFORMED_FUNCTION_CALL"}),
        ),
    ),
    "an empty line": ("ollama", ollama.encode_ndjson(ollama.make_line(""), ollama.done_line())),
    "a model that is being loaded": ("ollama", ollama.encode_ndjson(ollama.done_line("load"))),
    "an empty message": ("anthropic", anthropic_stream(anthropic.message_stop("end_turn", output_tokens=2))),
    "only thinking": ("anthropic", anthropic_stream(thought(), anthropic.message_stop("end_turn", output_tokens=2))),
    "thinking and blanks": (
        "anthropic",
        anthropic_stream(thought(), anthropic.text_block(1, "\n\n"), anthropic.message_stop("end_turn")),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("provider", "stream"), WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
def test_silence_is_no_success(provider: str, stream: bytes, running: StartServer, connection: HttpConnection) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    server.script_chunks(stream)
    with pytest.raises(ProviderError) as caught:
        collect_parts(peer, build_request(peer, user_message("Hi")), connection, server)
    assert (caught.value.code, caught.value.retryable) == ("provider_empty", True)
    assert "without a word" in caught.value.message or "MALFORMED_FUNCTION_CALL" in caught.value.message


@pytest.mark.parametrize(
    ("reason", "stop", "warning"),
    [
        ("stop", FinishReason.END, False),
        ("eos_token", FinishReason.END, False),
        ("MAX_TOKENS", FinishReason.MAX_TOKENS, False),
        ("SAFETY", FinishReason.REFUSAL, False),
        ("RECITATION", FinishReason.REFUSAL, False),
        ("abort", FinishReason.END, True),
        ("MALFORMED_FUNCTION_CALL", FinishReason.END, True),
        ("of tomorrow", FinishReason.END, True),
    ],
)
def test_an_unusual_end_is_told_in_words(
    reason: str, stop: FinishReason, warning: bool, running: StartServer, connection: HttpConnection
) -> None:
    stream = encode(*chat.text_chunks("Par"), chat.make_chunk({}, reason), DONE)
    response = get_response(replay(Odd(stream), running, connection))
    assert (response.stop, reason in (response.warning or "")) == (stop, warning)


def test_the_id_of_a_call_is_not_taken_by_an_id_that_is_made_up(
    running: StartServer, connection: HttpConnection
) -> None:
    stream = encode(
        *(fragment("{}", "read_document", name, index) for index, name in enumerate(("a", "a", "a_2"))),
        CALLS,
        DONE,
    )
    response = get_response(replay(Odd(stream), running, connection))
    ids = [block.tool_call_id for block in response.blocks if isinstance(block, ToolCallBlock)]
    assert (ids[0], ids[2], len(set(ids))) == ("a", "a_2", 3)


def test_reasoning_blocks_of_tags_do_not_exist(running: StartServer, connection: HttpConnection) -> None:
    response = get_response(replay(ODD_STREAMS["thinking between tags"], running, connection))
    assert not any(isinstance(block, ReasoningBlock) for block in response.blocks)


def test_an_error_in_a_choice_is_told_in_its_own_words(running: StartServer, connection: HttpConnection) -> None:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "Gone"}}
    with pytest.raises(ProviderError, match="stream error: Gone") as caught:
        replay(Odd(encode({"choices": [choice]}, DONE)), running, connection)
    assert caught.value.retryable


@pytest.mark.parametrize("headers", [{"content-type": "text/html"}, {"content-type": "text/event-stream"}, {}])
def test_a_web_page_is_no_answer(headers: dict[str, str], running: StartServer, connection: HttpConnection) -> None:
    with pytest.raises(ProviderError, match="answered with a web page") as caught:
        replay(Odd(b"\n<!doctype html><title>Sign in</title>", headers=headers), running, connection)
    assert not caught.value.retryable


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_an_error_status_counts_although_its_body_is_not_readable(
    encoding: str, running: StartServer, connection: HttpConnection
) -> None:
    server = running(CHAT)
    body = b"\x1f\x8b\x08broken" if encoding == "gzip" else b"\x1b\x00\x00"
    server.script_response(ScriptedResponse([body], status=401, headers={"content-encoding": encoding}))
    with pytest.raises(ProviderError) as caught:
        collect_parts(CHAT, build_request(CHAT, user_message("Hi")), connection, server)
    assert caught.value.code == "provider_auth"


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
USAGES: dict[str, tuple[Any, ...]] = {
    "in the choice": ({"choices": [{"delta": {}, "usage": USAGE}]},),
    "in a vendor's member": ({"choices": [], "x_groq": {"usage": USAGE}},),
    "under the names of another protocol": ({"choices": [], "usage": {"input_tokens": 10, "output_tokens": 5}},),
    "twice": (
        {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 1}},
        {"choices": [], "usage": USAGE},
    ),
    "and then nothing": ({"choices": [], "usage": USAGE}, {"choices": [], "usage": NO_USAGE}),
    "and then null": ({"choices": [], "usage": USAGE}, {"choices": [], "usage": None}),
}


@pytest.mark.parametrize("chunks", USAGES.values(), ids=USAGES)
def test_usage_is_found_wherever_it_is(chunks: Any, running: StartServer, connection: HttpConnection) -> None:
    response = get_response(replay(Odd(encode(*chat.text_chunks("Hi"), STOP, *chunks, DONE)), running, connection))
    assert (response.tokens.prompt, response.tokens.completion, response.tokens_known) == (10, 5, True)


def get_calls(response: ModelResponse) -> list[tuple[str, Any]]:
    return [(block.tool_name, block.input) for block in response.blocks if isinstance(block, ToolCallBlock)]


def with_index(events: Any, index: int) -> list[Any]:
    return [{**event, "output_index": index} if "output_index" in event else event for event in events]


OTHER_PROTOCOLS: dict[str, tuple[str, bytes]] = {
    "Responses, all items with one index": (
        "openai",
        openai.encode_sse(
            openai.response_created(),
            with_index(openai.message_events(0, "Hi."), 0),
            with_index(openai.function_call_events(1, "call_a", "insertHtml", '{"a":', " 1}"), 0),
            with_index(openai.function_call_events(2, "call_b", "insertHtml", '{"a":', " 2}"), 0),
            openai.response_ended(),
        ),
    ),
    "Responses, the last event repeats items that had one index": (
        "openai",
        openai.encode_sse(
            openai.response_created(),
            with_index(openai.message_events(0, "Hi."), 0),
            with_index(openai.function_call_events(1, "call_a", "insertHtml", '{"a": 1}'), 0),
            with_index(openai.function_call_events(2, "call_b", "insertHtml", '{"a": 2}'), 0),
            openai.response_ended(
                output=[
                    openai.message_events(0, "Hi.")[-1]["item"],
                    openai.function_call_events(1, "call_a", "insertHtml", '{"a": 1}')[-1]["item"],
                    openai.function_call_events(2, "call_b", "insertHtml", '{"a": 2}')[-1]["item"],
                ]
            ),
        ),
    ),
    "Messages, all blocks with one index": (
        "anthropic",
        anthropic_stream(
            anthropic.text_block(0, "Hi."),
            anthropic.tool_use_block(0, "toolu_a", "insertHtml", '{"a":', " 1}"),
            anthropic.tool_use_block(0, "toolu_b", "insertHtml", '{"a":', '{"a": 2}'),
            anthropic.message_stop("tool_use", output_tokens=5),
        ),
    ),
    "Messages, in one value": (
        "anthropic",
        json.dumps({
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "text", "text": "Hi."},
                {"type": "tool_use", "id": "toolu_a", "name": "insertHtml", "input": {"a": 1}},
                {"type": "tool_use", "id": "toolu_b", "name": "insertHtml", "input": {"a": 2}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "output_tokens": 5},
        }).encode(),
    ),
    "Ollama, the last line repeats the whole": (
        "ollama",
        b"\xef\xbb\xbf"
        + ollama.encode_ndjson(
            ollama.make_line("H"),
            ollama.make_line("i."),
            ollama.tool_call_line("insertHtml", {"a": 1}),
            ollama.tool_call_line("insertHtml", {"a": 2}),
            ollama.done_line()
            | {
                "message": {
                    "content": "Hi.",
                    "tool_calls": [
                        {"function": {"name": "insertHtml", "arguments": {"a": 1}}},
                        {"function": {"name": "insertHtml", "arguments": {"a": 2}}},
                    ],
                }
            },
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("provider", "stream"), OTHER_PROTOCOLS.values(), ids=OTHER_PROTOCOLS)
def test_other_protocols_are_understood_as_well(
    provider: str, stream: bytes, running: StartServer, connection: HttpConnection
) -> None:
    parts = replay_chunks(provider, stream, running, connection)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hi."
    assert get_calls(get_response(parts)) == [("insertHtml", {"a": 1}), ("insertHtml", {"a": 2})]


def messages_call(*deltas: Any, **start: Any) -> bytes:
    block = {"type": "tool_use", "id": "toolu_a", "name": "insertHtml", "input": {}} | start
    return anthropic_stream(anthropic.content_block(0, block, *deltas), anthropic.message_stop("tool_use"))


def responses_call(*deltas: Any, **members: Any) -> bytes:
    item = {"type": "function_call", "id": "fc_a", "call_id": "call_a", "name": "insertHtml", "arguments": ""}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    fragments = [
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta} for delta in deltas
    ]
    done = {"type": "response.output_item.done", "output_index": 0, "item": item | members}
    return openai.encode_sse(openai.response_created(), added, fragments, done, openai.response_ended())


def gemini_part(part: Any) -> bytes:
    return gemini.encode_sse(gemini.make_chunk(part, finish="STOP"))


def ollama_call(call: Any) -> bytes:
    return ollama.encode_ndjson(ollama.make_line(tool_calls=call), ollama.done_line())


OTHER_FORMS_OF_ARGUMENTS: dict[str, tuple[str, bytes]] = {
    "Messages, a delta without its type": ("anthropic", messages_call({"partial_json": '{"a": 1}'})),
    "Messages, pieces in a list": (
        "anthropic",
        messages_call({"type": "input_json_delta", "partial_json": ['{"a":', " 1}"]}),
    ),
    "Messages, as text at the start": ("anthropic", messages_call(input='{"a": 1}')),
    "Responses, a value as delta": ("openai", responses_call({"a": 1})),
    "Responses, pieces in a list": ("openai", responses_call(arguments=['{"a":', " 1}"])),
    "Responses, another member": ("openai", responses_call(arguments=None, parameters={"a": 1})),
    "Ollama, another member": (
        "ollama",
        ollama_call([{"function": {"name": "insertHtml", "parameters": {"a": 1}}}]),
    ),
    "Ollama, without wrapping": ("ollama", ollama_call([{"name": "insertHtml", "arguments": {"a": 1}}])),
    "Gemini, another member": ("gemini", gemini_part({"functionCall": {"name": "insertHtml", "arguments": {"a": 1}}})),
    "Gemini, as text": ("gemini", gemini_part({"functionCall": {"name": "insertHtml", "args": '{"a": 1}'}})),
    "Ollama, no list": ("ollama", ollama_call({"function": {"name": "insertHtml", "arguments": '{"a": 1}'}})),
}


@pytest.mark.parametrize(("provider", "stream"), OTHER_FORMS_OF_ARGUMENTS.values(), ids=OTHER_FORMS_OF_ARGUMENTS)
def test_no_form_of_arguments_becomes_a_call_without_arguments(
    provider: str, stream: bytes, running: StartServer, connection: HttpConnection
) -> None:
    response = get_response(replay_chunks(provider, stream, running, connection))
    assert get_calls(response) == [("insertHtml", {"a": 1})]


NINE_CHARACTERS = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."


@pytest.mark.parametrize("provider", ["openai-compatible", "openai", "openrouter", "anthropic"])
@pytest.mark.parametrize("code", [None, 400, "invalid_request_error"])
def test_a_wish_for_other_call_ids_is_met_although_it_comes_as_a_stream(
    provider: str, code: Any, running: StartServer, connection: HttpConnection
) -> None:
    peer = CASES_BY_PROVIDER.get(provider, ANTHROPIC)
    server = running(peer)
    error = {"message": "Provider returned error", "code": code, "metadata": {"raw": NINE_CHARACTERS}}
    server.script_chunks(encode({"type": "error", "error": error}))
    server.script_chunks(peer.text_response())
    rows = (user_message("Hi"), model_message(tool_call("call_1")), tool_result("call_1", 1))
    assert get_response(collect_parts(peer, build_request(peer, *rows), connection, server)).blocks
    refused, accepted = map(json.dumps, server.bodies[-2:])
    assert "call_1" in refused
    assert "call_1" not in accepted


def without_types(stream: bytes) -> bytes:
    """Return the events with their type in the line `event:` only."""
    events = [json.loads(data) for line in stream.splitlines() if (data := line.partition(b"data: ")[2])]
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event.pop("type").encode(), json.dumps(event).encode()) for event in events
    )


def name_behind_data(stream: bytes) -> bytes:
    return re.sub(rb"(event: .*\n)(data: .*\n)", rb"\2\1", stream)


NAMED_EVENTS = {
    "Messages": (
        "anthropic",
        without_types(anthropic_stream(thought(), anthropic.text_block(1, "Hi."), anthropic.message_stop("end_turn"))),
    ),
    "Responses": (
        "openai",
        without_types(
            openai.encode_sse(openai.response_created(), openai.message_events(0, "Hi."), openai.response_ended())
        ),
    ),
}
SHOWN_AT_ONCE = {
    **{f"{name}, types as names of events": stream for name, stream in NAMED_EVENTS.items()},
    **{
        f"{name}, types as names behind the data": (provider, name_behind_data(stream))
        for name, (provider, stream) in NAMED_EVENTS.items()
    },
    **{
        f"{name}, types as names of events without blank lines": (provider, stream.replace(b"\n\n", b"\n"))
        for name, (provider, stream) in NAMED_EVENTS.items()
    },
    "Gemini, a list in place of a stream": (
        "gemini",
        json.dumps([gemini.make_chunk(gemini.text_part("Hi.")), gemini.end_chunk()], indent=2).encode(),
    ),
    "Ollama, indented": (
        "ollama",
        b"".join(
            json.dumps(json.loads(line), indent=2).encode() + b"\r\n"
            for line in ollama.text_response("H", "i", ".").splitlines()
        ),
    ),
    "Ollama, text in parts": (
        "ollama",
        ollama.encode_ndjson(
            ollama.make_line(content=[{"type": "text", "text": "H"}]),  # type: ignore[arg-type]
            ollama.make_line(content={"type": "text", "text": {"value": "i."}}),  # type: ignore[arg-type]
            ollama.done_line(),
        ),
    ),
    "Messages, deltas without their type": (
        "anthropic",
        anthropic_stream(
            anthropic.content_block(0, {"type": "thinking", "thinking": "", "signature": ""}, {"thinking": "Hm."}),
            anthropic.content_block(1, {"type": "text", "text": ""}, {"text": "Hi."}),
            anthropic.message_stop("end_turn"),
        ),
    ),
    "Responses, an item whose content is a text": (
        "openai",
        openai.encode_sse(
            openai.response_created(), openai.response_ended(output=[{"type": "message", "content": "Hi."}])
        ),
    ),
    "Messages, text in parts": (
        "anthropic",
        anthropic_stream(
            anthropic.content_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": {"value": "Hi."}}),
            anthropic.message_stop("end_turn"),
        ),
    ),
    "Responses, text in parts": (
        "openai",
        openai.encode_sse(
            openai.response_created(),
            {"type": "response.output_text.delta", "output_index": 0, "delta": {"text": "Hi."}},
            openai.response_ended(),
        ),
    ),
    "Ollama, as events": (
        "ollama",
        b"".join(b"data: %b\n\n" % line for line in ollama.text_response("Hi.").splitlines()),
    ),
    "Ollama, without line ends": ("ollama", ollama.text_response("Hi.").replace(b"\n", b"")),
    "Messages, thinking at the start of its block": (
        "anthropic",
        anthropic_stream(
            anthropic.content_block(0, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}),
            anthropic.text_block(1, "Hi."),
            anthropic.message_stop("end_turn", output_tokens=2),
        ),
    ),
}


@pytest.mark.parametrize(("provider", "stream"), SHOWN_AT_ONCE.values(), ids=SHOWN_AT_ONCE)
def test_text_and_thinking_are_shown_however_they_are_framed(
    provider: str, stream: bytes, running: StartServer, connection: HttpConnection
) -> None:
    parts = replay_chunks(provider, stream, running, connection)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hi."
    thinking = "".join(part.text for part in parts if isinstance(part, ReasoningDelta))
    assert thinking == ("Hm." if b"Hm." in stream else "")
    assert get_response(parts).stop is FinishReason.END


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize("odd", ODD_STREAMS.values(), ids=ODD_STREAMS)
def test_an_odd_stream_means_the_same_wherever_it_is_cut(odd: Odd, size: int) -> None:
    parts = odd.decode(size)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == odd.text
    assert "".join(part.text for part in parts if isinstance(part, ReasoningDelta)) == odd.reasoning
    assert get_calls(get_response(parts)) == list(odd.calls)
