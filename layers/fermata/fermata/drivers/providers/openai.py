"""Describe OpenAI: the Responses API, stateless (decision 0071)."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fermata.domain.model_info import ModelInfo, ModelTier
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import (
    AppliedAdjustments,
)
from fermata.drivers.model_list_parsing import build_model_info, iter_model_entries
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.openai_responses.adjustments import make_responses_adjustments
from fermata.drivers.protocols.openai_responses.request import build_request_body
from fermata.drivers.provider import VISION_AND_TOOLS, ModelTraits, Provider
from fermata.drivers.provider_options import encode_responses_options
from fermata.drivers.sampling_fields import NO_SAMPLING, RESPONSES_SAMPLING, SamplingFields
from fermata.drivers.thinking_allowance import OPENAI_THINKING_TOKENS, effort_from_tokens, is_openai_reasoning_model

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

_NAME = "openai"
_CHAT_MODEL = re.compile(r"gpt-|chatgpt-|o[1-9]")
_OTHER_MODEL = re.compile(
    r"embedding|whisper|tts|audio|realtime|image|transcribe|moderation|search|dall-e", re.IGNORECASE
)
_BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def make_prompt_cache_key(scope: str, tool_names: Iterable[str]) -> str:
    """Name the prompt cache: requests of one scope with the same tools begin alike, and share it."""
    return f"instatic:{scope}:{_to_base36(_fnv1a(','.join(sorted(tool_names))))}"


def _get_thinking_allowance(model: str, tokens: int) -> int:
    return (tokens or OPENAI_THINKING_TOKENS) if is_openai_reasoning_model(model) else 0


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = _get_thinking_allowance(request.model, request.thinking_tokens)
    body = build_request_body(request, _NAME, applied, with_item_ids=False, thinking_allowance=allowance)
    if request.scope:
        body["prompt_cache_key"] = make_prompt_cache_key(request.scope, (spec.name for spec in request.tools))
    if is_openai_reasoning_model(request.model):
        body["include"] = ["reasoning.encrypted_content"]
        if request.thinking_tokens > 0:
            body["reasoning"] = {"effort": effort_from_tokens(request.thinking_tokens), "summary": "auto"}
    return body


def _get_sampling_fields(request: ModelRequest) -> SamplingFields:
    return NO_SAMPLING if is_openai_reasoning_model(request.model) else RESPONSES_SAMPLING


def _fnv1a(text: str) -> int:
    """Compute the 32-bit FNV-1a hash of the UTF-16 units."""
    units = text.encode("utf-16-le")
    value = 0x811C9DC5
    for start in range(0, len(units), 2):
        value = ((value ^ int.from_bytes(units[start : start + 2], "little")) * 0x01000193) & 0xFFFFFFFF
    return value


def _to_base36(number: int) -> str:
    digits = _BASE36_DIGITS[number % 36]
    while number := number // 36:
        digits = _BASE36_DIGITS[number % 36] + digits
    return digits


def _list_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    """List only models that chat, by tier; within a tier by name, the newest first."""
    entries = [
        entry
        for entry in iter_model_entries(client.get_json("/v1/models"))
        if _CHAT_MODEL.match(entry["id"]) and not _OTHER_MODEL.search(entry["id"])
    ]
    entries.sort(key=lambda entry: str(entry["id"]), reverse=True)
    for tier in ("smartest", "fast", "cheap"):
        for entry in entries:
            if _get_tier(entry["id"]) == tier:
                yield build_model_info(entry, VISION_AND_TOOLS, tier=tier)


def _get_tier(model: str) -> ModelTier:
    if "nano" in model:
        return "cheap"
    return "fast" if "mini" in model else "smartest"


PROVIDER = Provider(
    name=_NAME,
    label="OpenAI",
    default_url="https://api.openai.com",
    path="/v1/responses",
    build_body=_build_body,
    encode_options=encode_responses_options,
    make_accumulator=lambda request, body: ResponsesAccumulator(_NAME, request.model, body),
    list_models=_list_models,
    adjustments=make_responses_adjustments(r"encrypted.content|reasoning.{0,80}required following"),
    models=ModelTraits(
        capabilities=VISION_AND_TOOLS,
        are_first_party=True,
        are_in_catalogue=True,
        max_images=20,  # the API takes hundreds
        thinking_allowance=_get_thinking_allowance,
        get_sampling_fields=_get_sampling_fields,
    ),
)
