"""Servers entered as Ollama that know only chat completions are spoken to in that protocol, and remembered."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.errors import ProviderError
from fermata.domain.messages import Message
from fermata.domain.model_io import StreamPart
from fermata.drivers.model_listing import list_models
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict import chat, ollama
from tests.strict.model_lists import ModelListServer, run_model_list_server
from tests.strict.server import ScriptedResponse, StrictServer
from tests.unit.drivers.conversation_builders import (
    model_message,
    model_request,
    tool_call,
    tool_result,
    user_message,
)
from tests.unit.drivers.stream_helpers import get_response, join_text

JSON = {"content-type": "application/json"}
UNKNOWN_PATHS = {
    "vllm": ScriptedResponse([b'{"detail":"Not Found"}'], 404, JSON),
    "llama.cpp": ScriptedResponse(
        [b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}'], 404, JSON
    ),
    "lm studio": ScriptedResponse(
        [b'{"error":"Unexpected endpoint or method. (POST /api/chat). Returning 200 anyway"}'], 200, JSON
    ),
    "gateway": ScriptedResponse([b'{"detail":"Method Not Allowed"}'], 405, JSON),
    "plain": ScriptedResponse([b"404 page not found"], 404, {"content-type": "text/plain"}),
    "web page": ScriptedResponse([b"<!doctype html><title>Chat</title>"], 200, {"content-type": "text/html"}),
    "imitation": ScriptedResponse(
        [chat.text_response("In another protocol.")], 200, {"content-type": "text/event-stream"}
    ),
}


class ChatOnlyServer(chat.StrictChat):
    """Speaks chat completions, and answers another path as `unknown_path` says."""

    unknown_path = UNKNOWN_PATHS["vllm"]

    def respond(self, path: str, headers: dict[str, str], raw: bytes) -> ScriptedResponse:
        if path == "/v1/chat/completions":
            return super().respond(path, headers, raw)
        self.paths.append(path)
        return self.unknown_path


@pytest.fixture
def server() -> Iterator[ChatOnlyServer]:
    with ChatOnlyServer.run() as running:
        yield running


@pytest.fixture
def model_lists() -> Iterator[ModelListServer]:
    with run_model_list_server() as running:
        yield running


def stream(server: StrictServer, connection: HttpConnection, *messages: Message, path: str = "") -> list[StreamPart]:
    endpoint = AuthenticatedEndpoint(server.url + path, SecretStr(""))
    request = model_request(*(messages or [user_message("Hello")]), model="qwen3")
    return list(get_provider("ollama").stream(request, connection, endpoint))


@pytest.mark.parametrize("kind", UNKNOWN_PATHS)
@pytest.mark.parametrize("path", ["", "/v1", "/v1/"])
def test_a_server_without_ollamas_path_is_asked_for_chat_completions_and_remembered(
    server: ChatOnlyServer, connection: HttpConnection, kind: str, path: str
) -> None:
    server.unknown_path = UNKNOWN_PATHS[kind]
    server.script_chunks(chat.text_response("Good ", "morning."))
    server.script_chunks(chat.text_response("Again."))
    parts = stream(server, connection, path=path)
    assert (join_text(parts), get_response(parts).tokens.prompt > 0) == ("Good morning.", True)
    assert join_text(stream(server, connection, path=path)) == "Again."
    assert [path.removeprefix("/v1") for path in server.paths[:1]] == ["/api/chat"]
    assert server.paths[1:] == ["/v1/chat/completions"] * 2


def test_calls_and_results_are_sent_in_the_servers_protocol(server: ChatOnlyServer, connection: HttpConnection) -> None:
    server.script_chunks(chat.text_response("Done."))
    rows = (user_message("a"), model_message(tool_call("call_1")), tool_result("call_1"))
    assert join_text(stream(server, connection, *rows)) == "Done."
    assert server.refusals == []
    assert isinstance(server.bodies[0]["messages"][-2]["tool_calls"][0]["function"]["arguments"], str)


def test_an_ollama_that_lacks_the_model_is_not_asked_in_another_protocol(connection: HttpConnection) -> None:
    with ollama.StrictOllama.run() as server:
        server.script_json(404, {"error": "model 'qwen3' not found"})
        with pytest.raises(ProviderError, match="not found"):
            stream(server, connection)
        assert server.paths == ["/api/chat"]
        server.script_chunks(ollama.text_response("Here."))
        assert join_text(stream(server, connection)) == "Here."
        assert server.paths == ["/api/chat"] * 2


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_another_failure_is_reported_as_it_is(server: ChatOnlyServer, connection: HttpConnection, status: int) -> None:
    server.unknown_path = ScriptedResponse([json.dumps({"error": "no"}).encode()], status, JSON)
    with pytest.raises(ProviderError):
        stream(server, connection)
    assert server.paths == ["/api/chat"]


@pytest.mark.parametrize(
    "tags",
    [
        (404, {"detail": "Not Found"}),
        (405, {"detail": "Method Not Allowed"}),
        (200, {"error": "Unexpected endpoint or method. (GET /api/tags)"}),
        (200, {"models": [{"name": "qwen", "model": "qwen"}], "object": "list", "data": [{"id": "qwen"}]}),
    ],
)
def test_its_models_are_listed_from_the_path_it_has(
    model_lists: ModelListServer, connection: HttpConnection, tags: tuple[int, Any]
) -> None:
    model_lists.accepts_any_key = True
    model_lists.set_error("/api/tags", *tags)
    model_lists.set_model_details("qwen", {"capabilities": ["completion"]})
    model_lists.set_response("/v1/models", {"object": "list", "data": [{"id": "qwen3-8b", "max_model_len": 8192}]})
    endpoint = AuthenticatedEndpoint(model_lists.url, SecretStr(""))
    (model,) = list_models("ollama", connection, endpoint)
    assert (model.id, model.label, model.context_window) == ("qwen3-8b", "Qwen 3 8B", 8192)
    assert model.capabilities.tool_calling
