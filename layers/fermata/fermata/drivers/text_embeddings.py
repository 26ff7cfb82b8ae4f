"""Ask a provider's model to turn texts into vectors (decision 0461).

Chat completions' servers have `/v1/embeddings`, Ollama has `/api/embed`, Gemini `batchEmbedContents`. Anthropic has no
such models.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.drivers.model_listing import ModelListClient
from fermata.drivers.provider import Provider
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection

MAX_EMBEDDED_TEXTS = 50
"""Of one request. Gemini takes a hundred."""


class EmbeddedTexts(NamedTuple):
    """The vectors of texts in their order, and the tokens that the provider has counted; None if it says nothing."""

    vectors: list[list[float]]
    tokens: int | None


class _EmbeddingProtocol(NamedTuple):
    build_path: Callable[[str], str]
    build_body: Callable[[str, Sequence[str]], dict[str, Any]]
    read: Callable[[Any], EmbeddedTexts]


def request_text_embeddings(
    provider: Provider,
    connection: ProviderConnection,
    endpoint: AuthenticatedEndpoint,
    model: str,
    texts: Sequence[str],
) -> EmbeddedTexts:
    """Send texts in one request.

    Args:
        provider: Whose protocol is spoken.
        connection: Sends the request, limits its time and guards the address.
        endpoint: The server and the API key.
        model: The provider's name of the model.
        texts: 1 to MAX_EMBEDDED_TEXTS.

    Raises:
        InvalidRequest: The provider has no such models.
        ProviderError: It refused, failed, or answered with something else than a vector for each text.
    """
    protocol = _PROTOCOLS.get(provider.name)
    if protocol is None:
        raise InvalidRequest(f"{provider.label} has no models for search. Choose a credential of another provider.")
    client = ModelListClient(provider, connection, endpoint)
    answer = client.post_json(protocol.build_path(model), protocol.build_body(model, texts))
    try:
        found = protocol.read(answer)
        is_whole = len(found.vectors) == len(texts) and all(map(_is_vector, found.vectors))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        is_whole = False
    if not is_whole:
        message = f"{provider.label} did not answer with a vector for each text. Is {model} a model for embeddings?"
        raise ProviderError(Failure.UNUSABLE_RESPONSE.code, message, retryable=False)
    return found


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(number, int | float) and math.isfinite(number) for number in value)
    )


def _read_openai(answer: Any) -> EmbeddedTexts:
    data = sorted(answer["data"], key=lambda one: one.get("index", 0))
    tokens = (answer.get("usage") or {}).get("prompt_tokens")
    return EmbeddedTexts([one["embedding"] for one in data], _read_count(tokens))


def _read_ollama(answer: Any) -> EmbeddedTexts:
    return EmbeddedTexts(answer["embeddings"], _read_count(answer.get("prompt_eval_count")))


def _read_gemini(answer: Any) -> EmbeddedTexts:
    tokens = (answer.get("usageMetadata") or {}).get("promptTokenCount")
    return EmbeddedTexts([one["values"] for one in answer["embeddings"]], _read_count(tokens))


def _read_count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= 10_000_000 else None


def _build_gemini_body(model: str, texts: Sequence[str]) -> dict[str, Any]:
    name = f"models/{model.removeprefix('models/')}"
    return {"requests": [{"model": name, "content": {"parts": [{"text": text}]}} for text in texts]}


_OPENAI = _EmbeddingProtocol(
    lambda _model: "/v1/embeddings",
    lambda model, texts: {"model": model, "input": list(texts), "encoding_format": "float"},
    _read_openai,
)
_PROTOCOLS = {
    "openai": _OPENAI,
    "openai-compatible": _OPENAI,
    "openrouter": _OPENAI,
    "ollama": _EmbeddingProtocol(
        lambda _model: "/api/embed", lambda model, texts: {"model": model, "input": list(texts)}, _read_ollama
    ),
    "gemini": _EmbeddingProtocol(
        lambda model: f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:batchEmbedContents",
        _build_gemini_body,
        _read_gemini,
    ),
}
