"""Encode a scripted response as the chunks of a provider's stream, and check requests as its strict fake does."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from local.demo_model.request_checks import (
    anthropic_messages,
    chat_completions,
    gemini_generate,
    ollama_chat,
    openai_responses,
)
from tests.strict import anthropic, chat, gemini, ollama, openai

ToolCall = tuple[str, str, dict[str, Any]]
"""Call id, tool name, input."""


@dataclass(frozen=True)
class ScriptedResponse:
    words: Sequence[str]
    calls: Sequence[ToolCall]
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Protocol:
    """How a provider's requests are checked and its responses are encoded.

    Attributes:
        check: Raises RequestRejected for what the provider would refuse.
        encode: Returns the chunks of a response. The first ones hold one word each, the last ones what ends it.
        encode_error: Returns an error in the middle of a stream.
    """

    check: Callable[[Mapping[str, str], Any], None]
    encode: Callable[[ScriptedResponse], list[bytes]]
    encode_error: Callable[[str], bytes]


def encode_anthropic(response: ScriptedResponse) -> list[bytes]:
    text = anthropic.text_block(0, *response.words)
    start = anthropic.message_start(input_tokens=response.prompt_tokens, output_tokens=1)
    calls = [
        event
        for index, (call_id, name, given) in enumerate(response.calls, 1)
        for event in anthropic.tool_use_block(index, call_id, name, json.dumps(given))
    ]
    stop = anthropic.message_stop("tool_use" if calls else "end_turn", output_tokens=response.completion_tokens)
    first = anthropic.encode_sse(start, text[0])
    words = [anthropic.encode_sse(event) for event in text[1:-1]]
    return [first + words[0], *words[1:], anthropic.encode_sse(text[-1], calls), anthropic.encode_sse(stop)]


def encode_responses(response: ScriptedResponse) -> list[bytes]:
    text = openai.message_events(0, *response.words)
    calls = [
        event
        for index, (call_id, name, given) in enumerate(response.calls, 1)
        for event in openai.function_call_events(index, call_id, name, json.dumps(given))
    ]
    usage = openai.make_usage(response.prompt_tokens, response.completion_tokens)
    words = [openai.encode_sse(event) for event in text[1:-1]]
    first = openai.encode_sse(openai.response_created(), text[0])
    end = openai.encode_sse(openai.response_ended(usage=usage))
    return [first + words[0], *words[1:], openai.encode_sse(text[-1], calls), end]


def encode_chat(response: ScriptedResponse) -> list[bytes]:
    first, *words = (chat.encode_sse(chunk, done=False) for chunk in chat.text_chunks(*response.words))
    calls = [
        chunk
        for index, (call_id, name, given) in enumerate(response.calls)
        for chunk in chat.tool_call_chunks(index, call_id, name, json.dumps(given))
    ]
    usage = chat.usage_chunk(response.prompt_tokens, response.completion_tokens)
    end = chat.encode_sse(chat.make_chunk({}, "tool_calls" if calls else "stop"), usage)
    return [first + words[0], *words[1:], chat.encode_sse(calls, done=False), end]


def encode_ollama(response: ScriptedResponse) -> list[bytes]:
    words = [ollama.encode_ndjson(ollama.make_line(word)) for word in response.words]
    calls = [ollama.tool_call_line(name, given) for _, name, given in response.calls]
    done = ollama.done_line(prompt=response.prompt_tokens, completion=response.completion_tokens)
    return [*words, ollama.encode_ndjson(*calls), ollama.encode_ndjson(done)]


def encode_gemini(response: ScriptedResponse) -> list[bytes]:
    """Only the first call of a response has a signature, as those of the real API."""
    words = [gemini.encode_sse(gemini.make_chunk(gemini.text_part(word))) for word in response.words]
    calls = [
        gemini.call_part(name, given, call_id=call_id, signature="" if index else gemini.SIGNATURE)
        for index, (call_id, name, given) in enumerate(response.calls)
    ]
    usage = {"promptTokenCount": response.prompt_tokens, "candidatesTokenCount": response.completion_tokens}
    end = gemini.end_chunk(**usage, totalTokenCount=sum(usage.values()))
    called = [gemini.encode_sse(gemini.make_chunk(*calls))] if calls else []
    return [*words, *called, gemini.encode_sse(end)]


def _encode_anthropic_error(message: str) -> bytes:
    error = {"type": "overloaded_error", "message": message}
    return anthropic.encode_sse(anthropic.make_event("error", error=error))


def _encode_responses_error(message: str) -> bytes:
    return openai.encode_sse(
        openai.response_ended("failed", error={"code": "server_error", "message": message}, usage=None)
    )


def _encode_chat_error(message: str) -> bytes:
    return f"data: {json.dumps({'error': {'message': message, 'code': 503}})}\n\n".encode()


def _encode_ollama_error(message: str) -> bytes:
    return f"{json.dumps({'error': message})}\n".encode()


def _encode_gemini_error(message: str) -> bytes:
    error = {"code": 503, "message": message, "status": "UNAVAILABLE"}
    return f"data: {json.dumps({'error': error})}\r\n\r\n".encode()


PROTOCOLS: dict[str, Protocol] = {
    "anthropic": Protocol(anthropic_messages.check_request, encode_anthropic, _encode_anthropic_error),
    "openai": Protocol(openai_responses.check_request, encode_responses, _encode_responses_error),
    "openrouter": Protocol(
        partial(openai_responses.check_request, is_openrouter=True), encode_responses, _encode_responses_error
    ),
    "openai-compatible": Protocol(chat_completions.check_request, encode_chat, _encode_chat_error),
    "ollama": Protocol(ollama_chat.check_request, encode_ollama, _encode_ollama_error),
    "gemini": Protocol(gemini_generate.check_request, encode_gemini, _encode_gemini_error),
}
HOSTS = {f"{name}.example": name for name in PROTOCOLS}
"""The host of each provider in a simulation."""
