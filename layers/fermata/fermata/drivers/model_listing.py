"""Asks a provider which models it offers to a key: one function for each family of providers."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fermata.domain.errors import ProviderError
from fermata.domain.model_info import ModelCapabilities, ModelInfo, ModelTier
from fermata.drivers import anthropic, error_mapping
from fermata.drivers.capabilities import OLLAMA_USUAL_MODELS, get_usual_capabilities
from fermata.drivers.ollama import OLLAMA
from fermata.drivers.providers.openai import OPENAI
from fermata.drivers.providers.openai_compatible import OPENAI_COMPATIBLE
from fermata.drivers.providers.openrouter import OPENROUTER
from fermata.drivers.transport.connection import ProviderConnection, ProviderResponse
from fermata.drivers.transport.endpoint import Endpoint

MAX_LISTING_BYTES = 8 * 1024 * 1024
MAX_LISTED_MODELS = 2_000
MAX_MODEL_NAME_CHARS = 300
MAX_DESCRIBED_MODELS = 40
"""Ollama tells what a model can do one model at a time."""
PROVIDER_LABELS = {
    "anthropic": anthropic.ANTHROPIC_LABEL,
    **{speaker.name: speaker.label for speaker in (OPENAI, OPENROUTER, OLLAMA, OPENAI_COMPATIBLE)},
}
_OPENAI_CHATS = re.compile(r"gpt-|chatgpt-|o[1-9]")
_OPENAI_OTHERS = re.compile(
    r"embedding|whisper|tts|audio|realtime|image|transcribe|moderation|search|dall-e", re.IGNORECASE
)
_WINDOWS = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
_UNREACHABLE = {"provider_unreachable", "provider_stalled"}


def list_models(provider: str, line: ProviderConnection, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
    """Live, in the order to show them. Raises ProviderError."""
    with line.call_scope():
        return tuple(itertools.islice(_FAMILIES[provider](line, endpoint), MAX_LISTED_MODELS))


def get_fallback_models(provider: str, error: ProviderError | None) -> tuple[ModelInfo, ...]:
    """What to show of a provider that listed nothing, or (with `error`) did not answer: for Ollama what is usual."""
    if provider != "ollama" or (error is not None and error.code not in _UNREACHABLE):
        return ()
    return tuple(
        ModelInfo(id=name, label=name, capabilities=get_usual_capabilities(provider, name), catalogue_source="fallback")
        for name in OLLAMA_USUAL_MODELS
    )


def check_api_key(provider: str, line: ProviderConnection, endpoint: Endpoint) -> None:
    """For the one provider that lists its models to anybody. Raises ProviderError when the key opens nothing."""
    if provider == "openrouter":
        try:
            _read(line, "openrouter", endpoint, endpoint.url_for("/v1/key"))
        except ProviderError as error:
            if error.status != 404:  # a gateway in front of it may not have this path
                raise


def _anthropic(line: ProviderConnection, endpoint: Endpoint) -> Iterator[ModelInfo]:
    has_smartest = False
    for model in _entries(_read(line, "anthropic", endpoint, endpoint.url_for("/v1/models") + "?limit=1000")):
        tier = _anthropic_tier(model["id"], has_smartest)
        has_smartest = has_smartest or tier == "smartest"
        yield _offered("anthropic", model, label=_text(model, "display_name"), tier=tier)


def _anthropic_tier(model: str, has_smartest: bool) -> ModelTier | None:
    """The list begins with the newest."""
    if "opus" in model:
        return "smart" if has_smartest else "smartest"
    if "sonnet" in model:
        return "balanced"
    return "fast" if "haiku" in model else None


def _openai(line: ProviderConnection, endpoint: Endpoint) -> Iterator[ModelInfo]:
    models = [
        model
        for model in _entries(_read(line, "openai", endpoint, endpoint.url_for("/v1/models")))
        if _OPENAI_CHATS.match(model["id"]) and not _OPENAI_OTHERS.search(model["id"])
    ]
    models.sort(key=lambda model: str(model["id"]), reverse=True)
    for tier in ("smartest", "fast", "cheap"):
        for model in models:
            if _openai_tier(model["id"]) == tier:
                yield _offered("openai", model, tier=tier)


def _openai_tier(model: str) -> ModelTier:
    if "nano" in model:
        return "cheap"
    return "fast" if "mini" in model else "smartest"


def _openrouter(line: ProviderConnection, endpoint: Endpoint) -> Iterator[ModelInfo]:
    """Each model says itself what it costs, holds, sees and calls."""
    for model in _entries(_read(line, "openrouter", endpoint, endpoint.url_for("/v1/models"))):
        modalities, parameters = _members(model, "architecture"), model.get("supported_parameters")
        if "text" not in _words(modalities.get("output_modalities"), ["text"]):
            continue
        abilities = ModelCapabilities(
            tool_calling="tools" in _words(parameters, ["tools"]),
            vision_input="image" in _words(modalities.get("input_modalities"), []),
        )
        prices = _members(model, "pricing")
        per_token = (prices.get("prompt"), prices.get("completion"))
        found = _offered("openrouter", model, label=_text(model, "name"), capabilities=abilities)
        yield found.model_copy(update={"per_token": per_token})


def _compatible(line: ProviderConnection, endpoint: Endpoint) -> Iterator[ModelInfo]:
    for model in _entries(_read(line, "openai-compatible", endpoint, endpoint.url_for("/v1/models"))):
        abilities = get_usual_capabilities("openai-compatible", model["id"])
        if _declares_vision(model):
            abilities = abilities.model_copy(update={"vision_input": True})
        yield _offered("openai-compatible", model, label=_text(model, "name"), capabilities=abilities)


def _declares_vision(model: Mapping[str, Any]) -> bool:
    """The ways in which servers say so."""
    modalities = _words(_members(model, "architecture").get("input_modalities"), [])
    listed = _words(model.get("capabilities"), []) + _words(model.get("input_modalities"), []) + modalities
    return (
        bool({"vision", "multimodal", "image"} & set(listed)) or _members(model, "capabilities").get("vision") is True
    )


def _ollama(line: ProviderConnection, endpoint: Endpoint) -> Iterator[ModelInfo]:
    tags = _read(line, "ollama", endpoint, endpoint.url_for("/api/tags"))
    for place, tag in enumerate(_entries(tags, names=("models",), identity=("model", "name"))):
        told = _shown(line, endpoint, tag["id"]) if place < MAX_DESCRIBED_MODELS else None
        if told is not None and "completion" not in told and "tools" not in told:
            continue  # it makes embeddings
        abilities = get_usual_capabilities("ollama", tag["id"])
        if told is not None:
            abilities = ModelCapabilities(tool_calling="tools" in told, vision_input="vision" in told)
        yield ModelInfo(id=tag["id"], label=_text(tag, "name") or tag["id"], capabilities=abilities)


def _shown(line: ProviderConnection, endpoint: Endpoint, model: str) -> list[str] | None:
    """What Ollama says a model can do; None when it does not say."""
    body = json.dumps({"model": model}).encode()
    headers = _headers("ollama", endpoint) | {"content-type": "application/json"}
    try:
        with line.post(PROVIDER_LABELS["ollama"], endpoint.url_for("/api/show"), headers, body) as answer:
            told = _parsed("ollama", endpoint, answer)
    except ProviderError:
        return None
    abilities = told.get("capabilities") if isinstance(told, dict) else None
    return _words(abilities, []) if isinstance(abilities, list) else None


_FAMILIES: dict[str, Callable[[ProviderConnection, Endpoint], Iterator[ModelInfo]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openrouter": _openrouter,
    "ollama": _ollama,
    "openai-compatible": _compatible,
}


def _offered(provider: str, model: Mapping[str, Any], *, label: str = "", **known: Any) -> ModelInfo:
    known.setdefault("capabilities", get_usual_capabilities(provider, model["id"]))
    windows = (model.get(name) for name in _WINDOWS)
    window = next((size for size in windows if type(size) is int and size > 0), None)
    return ModelInfo(id=model["id"], label=label or model["id"], context_window=window, **known)


def _read(line: ProviderConnection, provider: str, endpoint: Endpoint, url: str) -> Any:
    with line.get(PROVIDER_LABELS[provider], url, _headers(provider, endpoint)) as answer:
        return _parsed(provider, endpoint, answer)


def _parsed(provider: str, endpoint: Endpoint, answer: ProviderResponse) -> Any:
    label = PROVIDER_LABELS[provider]
    if answer.status != 200:
        raise error_mapping.error_from_response(
            label, answer.status, answer.headers, answer.read_body(), endpoint.plain_key
        )
    try:
        return json.loads(answer.read_body(MAX_LISTING_BYTES))
    except (ValueError, RecursionError) as error:
        message = f"{label} error: what it answers is not JSON. Check its address in /admin/ai/providers."
        raise ProviderError("provider_error", message, retryable=False) from error


def _headers(provider: str, endpoint: Endpoint) -> dict[str, str]:
    if not endpoint.plain_key.isascii():
        raise error_mapping.error_from_response(PROVIDER_LABELS[provider], 401, {}, b"", endpoint.plain_key)
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    if provider == "anthropic":
        return headers | {"x-api-key": endpoint.plain_key, "anthropic-version": anthropic.ANTHROPIC_VERSION}
    return headers | ({"authorization": f"Bearer {endpoint.plain_key}"} if endpoint.plain_key else {})


def _entries(
    listing: Any, names: tuple[str, ...] = ("data", "models"), identity: tuple[str, ...] = ("id",)
) -> Iterator[dict[str, Any]]:
    """The models of a list that have a name, under `id`; a bare list will do."""
    found = listing
    if isinstance(listing, dict):
        found = next((listing[name] for name in names if isinstance(listing.get(name), list)), None)
    for entry in found if isinstance(found, list) else ():
        if isinstance(entry, dict) and (name := next((_text(entry, key) for key in identity if _text(entry, key)), "")):
            yield entry | {"id": name}


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) and len(found) <= MAX_MODEL_NAME_CHARS else ""


def _members(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _words(value: Any, otherwise: list[str]) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else otherwise
