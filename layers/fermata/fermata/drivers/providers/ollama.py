"""Describe Ollama: its own chat protocol, the only one in which a request chooses its context window (decision 0072).

A server under this name that knows only chat completions is spoken to in that protocol (decision 0213).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fermata.domain.errors import ProviderError
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import NINE_CHARACTER_CALL_IDS, AppliedAdjustments, drop_field
from fermata.drivers.model_list_parsing import get_short_text, get_texts, iter_model_entries
from fermata.drivers.protocol_mismatch import is_unknown_path
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.ollama_chat.accumulator import OllamaAccumulator
from fermata.drivers.protocols.ollama_chat.request import build_request_body
from fermata.drivers.protocols.token_usage import estimate_request_tokens
from fermata.drivers.provider import VISION_AND_TOOLS, ModelTraits, Provider
from fermata.drivers.provider_options import encode_ollama_options
from fermata.drivers.providers.openai_compatible import (
    CHAT_ADJUSTMENTS,
    CHAT_PATH,
    build_chat_body,
    list_chat_models,
)
from fermata.drivers.retry_policy import Failure
from fermata.drivers.sampling_fields import CHAT_SAMPLING, OLLAMA_SAMPLING
from fermata.drivers.thinking_allowance import default_thinking_allowance
from fermata.drivers.transport.stream_decoders import NdjsonDecoder

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

_NAME = "ollama"
_LABEL = "Ollama"
_CHAT_REASONING = "ollama-chat-completions"
"""Marks reasoning of the other protocol, which writes it in another form than Ollama."""
MAX_DESCRIBED_MODELS = 40
"""Models of a list that are asked for their capabilities; each costs a request."""
_MODELS = ModelTraits(
    capabilities_by_model={"llama4": VISION_AND_TOOLS},
    fallback_models=("llama4", "llama3.3", "qwen3"),
    are_free=True,
    window_is_requested=True,
    get_sampling_fields=lambda _request: OLLAMA_SAMPLING,
    are_calls_forceable=False,
)
_CHAT_MODELS = replace(_MODELS, get_sampling_fields=lambda _request: CHAT_SAMPLING, are_calls_forceable=True)


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = default_thinking_allowance(request.model, request.thinking_tokens)
    return build_request_body(request, _NAME, applied, thinking_allowance=allowance)


def _make_accumulator(request: ModelRequest, body: bytes) -> OllamaAccumulator:
    return OllamaAccumulator(_NAME, _LABEL, request.model, body, estimate_request_tokens(request, body))


def _build_chat_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = default_thinking_allowance(request.model, request.thinking_tokens)
    return build_chat_body(request, _CHAT_REASONING, applied, thinking_allowance=allowance)


def _make_chat_accumulator(request: ModelRequest, body: bytes) -> ChatAccumulator:
    return ChatAccumulator(_CHAT_REASONING, _LABEL, request.model, body, estimate_request_tokens(request, body))


def _list_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    """List what Ollama has pulled, or the models of a server that only speaks chat completions."""
    try:
        listing = client.get_json("/api/tags")
    except ProviderError as error:
        if not is_unknown_path(error) and error.code != Failure.UNUSABLE_RESPONSE.code:
            raise
        listing = None
    # Ollama's list is in `models` only; a server that has both is one that imitates this path.
    if isinstance(listing, dict) and isinstance(listing.get("models"), list) and "data" not in listing:
        yield from _list_pulled_models(client, listing)
    else:
        yield from list_chat_models(client)


def _list_pulled_models(client: "ModelListClient", listing: Any) -> Iterator[ModelInfo]:
    entries = iter_model_entries(listing, list_fields=("models",), id_fields=("model", "name"))
    for index, entry in enumerate(entries):
        declared = _describe_model(client, entry["id"]) if index < MAX_DESCRIBED_MODELS else None
        if declared is not None and "completion" not in declared and "tools" not in declared:
            continue  # it makes embeddings
        capabilities = _MODELS.get_capabilities(entry["id"])
        if declared is not None:
            capabilities = ModelCapabilities(tool_calling="tools" in declared, vision_input="vision" in declared)
        label = get_short_text(entry, "name") or entry["id"]
        yield ModelInfo(id=entry["id"], label=label, capabilities=capabilities)


def _describe_model(client: "ModelListClient", model: str) -> list[str] | None:
    """Return the capabilities the server declares for a model; None if it declares none."""
    try:
        description = client.post_json("/api/show", {"model": model})
    except ProviderError:
        return None
    if not isinstance(description, dict) or not isinstance(description.get("capabilities"), list):
        return None
    return get_texts(description, "capabilities")


_CHAT_COMPLETIONS = Provider(
    name=_NAME,
    label=_LABEL,
    path=CHAT_PATH,
    build_body=_build_chat_body,
    make_accumulator=_make_chat_accumulator,
    list_models=list_chat_models,
    requires_key=False,
    adjustments=CHAT_ADJUSTMENTS,
    models=_CHAT_MODELS,
)
PROVIDER = Provider(
    name=_NAME,
    label=_LABEL,
    path="/api/chat",
    build_body=_build_body,
    encode_options=encode_ollama_options,
    make_accumulator=_make_accumulator,
    make_decoder=NdjsonDecoder,
    list_models=_list_models,
    requires_key=False,
    adjustments=(NINE_CHARACTER_CALL_IDS, drop_field("think", r"does not support thinking|think value")),
    models=_MODELS,
    fallback=_CHAT_COMPLETIONS,
)
