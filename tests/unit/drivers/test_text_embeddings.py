"""Vectors of texts in each provider's protocol, over real sockets; what is no such answer is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.drivers.registry import get_provider
from fermata.drivers.text_embeddings import EmbeddedTexts, request_text_embeddings
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.model_lists import ModelListServer, run_model_list_server

OPENAI_ANSWER = {
    "data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}],
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}
OLLAMA_ANSWER = {"embeddings": [[1, 0.5], [0, 1]], "prompt_eval_count": 7}
GEMINI_ANSWER = {"embeddings": [{"values": [1, 0.5]}, {"values": [0, 1]}]}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        yield server


def embed(server: ModelListServer, provider: str, model: str = "m") -> EmbeddedTexts:
    connection = HttpConnection(stall_seconds=5, total_seconds=5)
    endpoint = AuthenticatedEndpoint(server.url, SecretStr(server.key))
    try:
        with connection.call_scope():
            return request_text_embeddings(get_provider(provider), connection, endpoint, model, ["rye", "oats"])
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("provider", "path", "answer", "tokens"),
    [
        ("openai", "/v1/embeddings", OPENAI_ANSWER, 7),
        ("openai-compatible", "/v1/embeddings", OPENAI_ANSWER, 7),
        ("openrouter", "/v1/embeddings", OPENAI_ANSWER, 7),
        ("ollama", "/api/embed", OLLAMA_ANSWER, 7),
        ("gemini", "/v1beta/models/m:batchEmbedContents", GEMINI_ANSWER, None),
    ],
)
def test_each_provider_is_asked_in_its_own_protocol(
    server: ModelListServer, provider: str, path: str, answer: Any, tokens: int | None
) -> None:
    server.set_response(path, answer)
    found = embed(server, provider, "models/m" if provider == "gemini" else "m")
    assert found == EmbeddedTexts([[1, 0.5], [0, 1]], tokens)
    sent = server.requests[-1].body
    texts = [one["content"]["parts"][0]["text"] for one in sent["requests"]] if "requests" in sent else sent["input"]
    assert texts == ["rye", "oats"]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"data": [{"embedding": [1]}]},
        {"data": [{"embedding": []}, {"embedding": [1]}]},
        {"data": [{"embedding": ["x"]}, {"embedding": [1]}]},
        {"data": [{"embedding": "AACAPw=="}, {"embedding": "AACAPw=="}]},
    ],
)
def test_an_answer_without_a_vector_for_each_text_is_refused(server: ModelListServer, answer: Any) -> None:
    server.set_response("/v1/embeddings", answer)
    with pytest.raises(ProviderError, match="Is m a model for embeddings"):
        embed(server, "openai")


def test_a_refusal_says_what_the_server_says(server: ModelListServer) -> None:
    server.set_error("/v1/embeddings", 404, {"error": {"message": "The model m does not exist"}})
    with pytest.raises(ProviderError, match="does not exist"):
        embed(server, "openai")


def test_a_provider_without_such_models_is_named(server: ModelListServer) -> None:
    with pytest.raises(InvalidRequest, match="Anthropic has no models for search"):
        embed(server, "anthropic")
