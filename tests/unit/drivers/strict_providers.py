"""Pair each provider with bearer authentication with its strict server."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart
from fermata.drivers.registry import Driver, get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import chat, gemini, ollama, openai
from tests.strict.server import StrictServer
from tests.unit.drivers.conversation_builders import model_request
from tests.unit.drivers.history_strategies import MODELS

KEY = "sk-test-0123456789"


@dataclass(frozen=True)
class StrictProvider:
    """A provider, its strict server, and simple scripted responses."""

    provider: str
    server_class: type[StrictServer]
    path: str
    text_response: Callable[..., bytes]
    partial_answer: bytes
    """The beginning of a response: `Partial`."""
    tool_call_answer: bytes
    """A response that calls `read_document`."""

    @property
    def model(self) -> str:
        return MODELS[self.provider]

    @property
    def driver(self) -> Driver:
        return get_provider(self.provider)


RESPONSES_PARTIAL_ANSWER = openai.encode_sse(openai.response_created(), openai.message_events(0, "Partial")[:-1])
RESPONSES_TOOL_CALL_ANSWER = openai.encode_sse(
    openai.response_created(),
    openai.reasoning_events(0, "Hm."),
    openai.function_call_events(1, "call_1", "read_document", "{}"),
    openai.response_ended(),
)
STRICT_PROVIDERS = (
    StrictProvider(
        "openai",
        openai.StrictOpenAI,
        "/v1/responses",
        openai.text_response,
        RESPONSES_PARTIAL_ANSWER,
        RESPONSES_TOOL_CALL_ANSWER,
    ),
    StrictProvider(
        "openrouter",
        openai.StrictOpenRouter,
        "/v1/responses",
        openai.text_response,
        RESPONSES_PARTIAL_ANSWER,
        RESPONSES_TOOL_CALL_ANSWER,
    ),
    StrictProvider(
        "gemini",
        gemini.StrictGemini,
        f"/v1beta/models/{MODELS['gemini']}:streamGenerateContent?alt=sse",
        gemini.text_response,
        gemini.encode_sse(gemini.make_chunk(gemini.text_part("Partial"))),
        gemini.encode_sse(
            gemini.make_chunk(gemini.thought_part("Hm.")),
            gemini.make_chunk(gemini.call_part("read_document", call_id="call_1", signature=gemini.SIGNATURE)),
            gemini.end_chunk(),
        ),
    ),
    StrictProvider(
        "ollama",
        ollama.StrictOllama,
        "/api/chat",
        ollama.text_response,
        ollama.encode_ndjson(ollama.make_line("Partial")),
        ollama.encode_ndjson(
            ollama.make_line(thinking="Hm."), ollama.tool_call_line("read_document"), ollama.done_line()
        ),
    ),
    StrictProvider(
        "openai-compatible",
        chat.StrictChat,
        "/v1/chat/completions",
        chat.text_response,
        chat.encode_sse(chat.text_chunks("Partial"), done=False),
        chat.encode_sse(
            chat.make_chunk({"reasoning_content": "Hm."}),
            chat.tool_call_chunks(0, "call_1", "read_document", "{}"),
            chat.make_chunk({}, "tool_calls"),
        ),
    ),
)
each_provider = pytest.mark.parametrize("peer", STRICT_PROVIDERS, ids=[peer.provider for peer in STRICT_PROVIDERS])
CASES_BY_PROVIDER = {peer.provider: peer for peer in STRICT_PROVIDERS}


StartServer = Callable[[StrictProvider], StrictServer]
"""Return the server that a module's tests share, reset."""


def collect_parts(
    peer: StrictProvider,
    request: ModelRequest,
    connection: HttpConnection,
    server: StrictServer,
    path: str = "",
    key: str = KEY,
) -> list[StreamPart]:
    return list(peer.driver.stream(request, connection, AuthenticatedEndpoint(server.url + path, SecretStr(key))))


def get_response(
    peer: StrictProvider, request: ModelRequest, connection: HttpConnection, server: StrictServer
) -> ModelResponse:
    last = collect_parts(peer, request, connection, server)[-1]
    assert isinstance(last, ModelResponse)
    return last


def build_request(peer: StrictProvider, *rows: Any, **members: Any) -> ModelRequest:
    return model_request(*rows, **{"model": peer.model} | members)
