"""Describe Google Gemini: the native API, whose path names the model (decision 0345)."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fermata.domain.model_info import ModelCapabilities, ModelInfo, ModelTier
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import (
    ADD_PLACEHOLDER_SIGNATURES,
    MERGE_SYSTEM_INTO_PROMPT,
    NINE_CHARACTER_CALL_IDS,
    OMIT_THINKING_BLOCKS,
    Adjustment,
    AppliedAdjustments,
    drop_field,
)
from fermata.drivers.model_list_parsing import build_model_info, get_short_text, get_texts, iter_model_entries
from fermata.drivers.protocols.gemini_generate.accumulator import GeminiAccumulator
from fermata.drivers.protocols.gemini_generate.model_traits import get_gemini_allowance
from fermata.drivers.protocols.gemini_generate.request import (
    IMAGES_BESIDE_RESULTS,
    OMIT_CALL_IDS,
    OMIT_OUTPUT_LIMIT,
    OMIT_THINKING_CONFIG,
    REDUCE_SCHEMAS,
    build_request_body,
)
from fermata.drivers.provider import ModelTraits, Provider
from fermata.drivers.provider_options import encode_gemini_options
from fermata.drivers.sampling_fields import GEMINI_SAMPLING

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

_NAME = "gemini"
_LABEL = "Google Gemini"
MAX_LIST_PAGES = 10
_OTHER_MODEL = re.compile(r"embedding|imagen|image|veo|tts|audio|live|aqa|robotics|computer-use|lyria", re.IGNORECASE)
"""Matches models that do not answer in words, although they list the method."""
_MODELS = ModelTraits(
    capabilities=ModelCapabilities(tool_calling=True, vision_input=True, tool_result_images=True),
    are_first_party=True,
    are_in_catalogue=True,
    max_images=20,  # the API takes thousands
    thinking_allowance=get_gemini_allowance,
    get_sampling_fields=lambda _request: GEMINI_SAMPLING,
)


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    return build_request_body(request, _NAME, applied)


def _build_headers(_model: str, api_key: str) -> dict[str, str]:
    return {"x-goog-api-key": api_key} if api_key else {}


def _list_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    """List the models that answer in words, page by page."""
    token = ""
    for _ in range(MAX_LIST_PAGES):
        listing = client.get_json("/v1beta/models", f"?pageSize=1000&pageToken={token}" if token else "?pageSize=1000")
        for entry in iter_model_entries(listing, list_fields=("models", "data"), id_fields=("name", "id")):
            name = str(entry["id"]).removeprefix("models/")
            if _answers_in_words(entry, name):
                yield _describe_model(entry, name)
        token = quote(get_short_text(listing, "nextPageToken"), safe="") if isinstance(listing, dict) else ""
        if not token:
            return


def _answers_in_words(entry: Mapping[str, Any], name: str) -> bool:
    methods = get_texts(entry, "supportedGenerationMethods", default=("generateContent",))
    return "generateContent" in methods and not _OTHER_MODEL.search(name)


def _describe_model(entry: Mapping[str, Any], name: str) -> ModelInfo:
    described = {"id": name, "context_window": entry.get("inputTokenLimit")}
    capabilities = _MODELS.get_capabilities(name)
    if name.startswith("gemma"):
        capabilities = capabilities.model_copy(update={"tool_calling": False})
    return build_model_info(described, capabilities, label=get_short_text(entry, "displayName"), tier=_get_tier(name))


def _get_tier(model: str) -> ModelTier | None:
    if "lite" in model:
        return "cheap"
    if "flash" in model:
        return "fast"
    return "smartest" if "pro" in model else None


PROVIDER = Provider(
    name=_NAME,
    label=_LABEL,
    default_url="https://generativelanguage.googleapis.com",
    path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    build_body=_build_body,
    encode_options=encode_gemini_options,
    make_accumulator=lambda request, body: GeminiAccumulator(_NAME, _LABEL, request.model, body),
    build_headers=_build_headers,
    list_models=_list_models,
    adjustments=(
        drop_field("toolConfig", r"tool_?config|function_?calling_?config"),
        NINE_CHARACTER_CALL_IDS,
        Adjustment(ADD_PLACEHOLDER_SIGNATURES, r"missing an? `?thought_?signature"),
        Adjustment(OMIT_THINKING_BLOCKS, r"thought_?signature|thought signature", is_lasting=False),
        Adjustment(
            MERGE_SYSTEM_INTO_PROMPT,
            r"(?:developer|system).?instruction.{0,40}(?:not (?:enabled|supported)|cannot find field)",
        ),
        Adjustment(REDUCE_SCHEMAS, r"parameters_?json_?schema"),
        Adjustment(
            IMAGES_BESIDE_RESULTS, r"(?:parts|inline_?data)\W{1,3}at .{0,60}function_?response|multimodal function"
        ),
        Adjustment(OMIT_CALL_IDS, r"unknown name .{0,3}id.{0,3} at"),
        Adjustment(OMIT_THINKING_CONFIG, r"thinking.?(?:config|budget|level)|thinking is not|thinking_?config"),
        Adjustment(OMIT_OUTPUT_LIMIT, r"max_?output_?tokens"),
    ),
    models=_MODELS,
)
