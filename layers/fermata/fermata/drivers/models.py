"""Asks a provider which models it offers to a key: one function for each family of providers."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fermata.drivers import anthropic, failures
from fermata.drivers.capabilities import OLLAMA_USUAL, usual_capabilities
from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Answer, Line
from fermata.drivers.ollama import OLLAMA
from fermata.drivers.openai import OPENAI
from fermata.drivers.openai_compatible import OPENAI_COMPATIBLE
from fermata.drivers.openrouter import OPENROUTER
from fermata.words.errors import ProviderError
from fermata.words.offered import Capabilities, Offered, Tier

MOST_BYTES = 8 * 1024 * 1024
MOST_MODELS = 2_000
MOST_CHARS = 300
MOST_SHOWN = 40
"""Ollama tells what a model can do one model at a time."""
LABELS = {
    "anthropic": anthropic.LABEL,
    **{speaker.provider: speaker.label for speaker in (OPENAI, OPENROUTER, OLLAMA, OPENAI_COMPATIBLE)},
}
_OPENAI_CHATS = re.compile(r"gpt-|chatgpt-|o[1-9]")
_OPENAI_OTHERS = re.compile(
    r"embedding|whisper|tts|audio|realtime|image|transcribe|moderation|search|dall-e", re.IGNORECASE
)
_WINDOWS = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
_UNREACHABLE = {"provider_unreachable", "provider_stalled"}


def offered(provider: str, line: Line, endpoint: Endpoint) -> tuple[Offered, ...]:
    """Live, in the order to show them. Raises ProviderError."""
    with line.call():
        return tuple(itertools.islice(_FAMILIES[provider](line, endpoint), MOST_MODELS))


def fallback(provider: str, error: ProviderError | None) -> tuple[Offered, ...]:
    """What to show of a provider that listed nothing, or (with `error`) did not answer: for Ollama what is usual."""
    if provider != "ollama" or (error is not None and error.code not in _UNREACHABLE):
        return ()
    return tuple(
        Offered(id=name, label=name, capabilities=usual_capabilities(provider, name), catalogue_source="fallback")
        for name in OLLAMA_USUAL
    )


def check_key(provider: str, line: Line, endpoint: Endpoint) -> None:
    """For the one provider that lists its models to anybody. Raises ProviderError when the key opens nothing."""
    if provider == "openrouter":
        try:
            _read(line, "openrouter", endpoint, endpoint.at("/v1/key"))
        except ProviderError as error:
            if error.status != 404:  # a gateway in front of it may not have this path
                raise


def _anthropic(line: Line, endpoint: Endpoint) -> Iterator[Offered]:
    has_smartest = False
    for model in _entries(_read(line, "anthropic", endpoint, endpoint.at("/v1/models") + "?limit=1000")):
        tier = _anthropic_tier(model["id"], has_smartest)
        has_smartest = has_smartest or tier == "smartest"
        yield _offered("anthropic", model, label=_text(model, "display_name"), tier=tier)


def _anthropic_tier(model: str, has_smartest: bool) -> Tier | None:
    """The list begins with the newest."""
    if "opus" in model:
        return "smart" if has_smartest else "smartest"
    if "sonnet" in model:
        return "balanced"
    return "fast" if "haiku" in model else None


def _openai(line: Line, endpoint: Endpoint) -> Iterator[Offered]:
    models = [
        model
        for model in _entries(_read(line, "openai", endpoint, endpoint.at("/v1/models")))
        if _OPENAI_CHATS.match(model["id"]) and not _OPENAI_OTHERS.search(model["id"])
    ]
    models.sort(key=lambda model: str(model["id"]), reverse=True)
    for tier in ("smartest", "fast", "cheap"):
        for model in models:
            if _openai_tier(model["id"]) == tier:
                yield _offered("openai", model, tier=tier)


def _openai_tier(model: str) -> Tier:
    if "nano" in model:
        return "cheap"
    return "fast" if "mini" in model else "smartest"


def _openrouter(line: Line, endpoint: Endpoint) -> Iterator[Offered]:
    """Each model says itself what it costs, holds, sees and calls."""
    for model in _entries(_read(line, "openrouter", endpoint, endpoint.at("/v1/models"))):
        modalities, parameters = _members(model, "architecture"), model.get("supported_parameters")
        if "text" not in _words(modalities.get("output_modalities"), ["text"]):
            continue
        abilities = Capabilities(
            tool_calling="tools" in _words(parameters, ["tools"]),
            vision_input="image" in _words(modalities.get("input_modalities"), []),
        )
        prices = _members(model, "pricing")
        per_token = (prices.get("prompt"), prices.get("completion"))
        found = _offered("openrouter", model, label=_text(model, "name"), capabilities=abilities)
        yield found.model_copy(update={"per_token": per_token})


def _compatible(line: Line, endpoint: Endpoint) -> Iterator[Offered]:
    for model in _entries(_read(line, "openai-compatible", endpoint, endpoint.at("/v1/models"))):
        abilities = usual_capabilities("openai-compatible", model["id"])
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


def _ollama(line: Line, endpoint: Endpoint) -> Iterator[Offered]:
    tags = _read(line, "ollama", endpoint, endpoint.at("/api/tags"))
    for place, tag in enumerate(_entries(tags, names=("models",), identity=("model", "name"))):
        told = _shown(line, endpoint, tag["id"]) if place < MOST_SHOWN else None
        if told is not None and "completion" not in told and "tools" not in told:
            continue  # it makes embeddings
        abilities = usual_capabilities("ollama", tag["id"])
        if told is not None:
            abilities = Capabilities(tool_calling="tools" in told, vision_input="vision" in told)
        yield Offered(id=tag["id"], label=_text(tag, "name") or tag["id"], capabilities=abilities)


def _shown(line: Line, endpoint: Endpoint, model: str) -> list[str] | None:
    """What Ollama says a model can do; None when it does not say."""
    body = json.dumps({"model": model}).encode()
    headers = _headers("ollama", endpoint) | {"content-type": "application/json"}
    try:
        with line.post(LABELS["ollama"], endpoint.at("/api/show"), headers, body) as answer:
            told = _parsed("ollama", endpoint, answer)
    except ProviderError:
        return None
    abilities = told.get("capabilities") if isinstance(told, dict) else None
    return _words(abilities, []) if isinstance(abilities, list) else None


_FAMILIES: dict[str, Callable[[Line, Endpoint], Iterator[Offered]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openrouter": _openrouter,
    "ollama": _ollama,
    "openai-compatible": _compatible,
}


def _offered(provider: str, model: Mapping[str, Any], *, label: str = "", **known: Any) -> Offered:
    known.setdefault("capabilities", usual_capabilities(provider, model["id"]))
    windows = (model.get(name) for name in _WINDOWS)
    window = next((size for size in windows if type(size) is int and size > 0), None)
    return Offered(id=model["id"], label=label or model["id"], context_window=window, **known)


def _read(line: Line, provider: str, endpoint: Endpoint, url: str) -> Any:
    with line.get(LABELS[provider], url, _headers(provider, endpoint)) as answer:
        return _parsed(provider, endpoint, answer)


def _parsed(provider: str, endpoint: Endpoint, answer: Answer) -> Any:
    label = LABELS[provider]
    if answer.status != 200:
        raise failures.refused(label, answer.status, answer.headers, answer.read(), endpoint.secret)
    try:
        return json.loads(answer.read(MOST_BYTES))
    except (ValueError, RecursionError) as error:
        message = f"{label} error: what it answers is not JSON. Check its address in /admin/ai/providers."
        raise ProviderError("provider_error", message, retryable=False) from error


def _headers(provider: str, endpoint: Endpoint) -> dict[str, str]:
    if not endpoint.secret.isascii():
        raise failures.refused(LABELS[provider], 401, {}, b"", endpoint.secret)
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    if provider == "anthropic":
        return headers | {"x-api-key": endpoint.secret, "anthropic-version": anthropic.VERSION}
    return headers | ({"authorization": f"Bearer {endpoint.secret}"} if endpoint.secret else {})


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
    return found if isinstance(found, str) and len(found) <= MOST_CHARS else ""


def _members(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _words(value: Any, otherwise: list[str]) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else otherwise
