"""Describe Anthropic: the Messages API."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fermata.domain.model_info import ModelCapabilities, ModelInfo, ModelTier
from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import (
    NINE_CHARACTER_CALL_IDS,
    OMIT_THINKING_BLOCKS,
    Adjustment,
    AppliedAdjustments,
    drop_field,
)
from fermata.drivers.model_list_parsing import build_model_info, get_short_text, iter_model_entries
from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.anthropic_messages.request import (
    NO_THINKING_ADJUSTMENT,
    THINKING_BINDING_BETA,
    build_request_body,
)
from fermata.drivers.protocols.anthropic_messages.thinking import (
    get_anthropic_allowance,
    get_thinking_mode,
    has_bound_thinking,
)
from fermata.drivers.provider import ModelTraits, Provider
from fermata.drivers.provider_options import encode_anthropic_options
from fermata.drivers.sampling_fields import ANTHROPIC_SAMPLING, SamplingFields

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

ANTHROPIC_VERSION = "2023-06-01"
_THINKING_SAMPLING = SamplingFields({"stop_sequences": "stop_sequences"})
_WITHOUT_TOP_P = SamplingFields(
    {name: wire for name, wire in ANTHROPIC_SAMPLING.names.items() if name != "top_p"}, max_temperature=1.0
)


def _get_sampling_fields(request: ModelRequest) -> SamplingFields:
    """Return what may be set: a model that thinks decides by itself, and no model takes temperature and top_p."""
    if not request.forced_tool and get_thinking_mode(request.model, request.thinking_tokens):
        return _THINKING_SAMPLING
    return ANTHROPIC_SAMPLING if request.sampling.temperature is None else _WITHOUT_TOP_P


_MODELS = ModelTraits(
    capabilities=ModelCapabilities(tool_calling=True, vision_input=True, tool_result_images=True, prompt_cache=True),
    are_first_party=True,
    are_in_catalogue=True,
    max_images=20,  # with more, the API refuses any image that is longer than 2,000 pixels
    thinking_allowance=get_anthropic_allowance,
    get_sampling_fields=_get_sampling_fields,
)


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    return build_request_body(
        request,
        applied,
        with_thinking=NO_THINKING_ADJUSTMENT not in applied,
        with_history_thinking=OMIT_THINKING_BLOCKS not in applied,
    )


def _build_headers(model: str, api_key: str) -> dict[str, str]:
    key = {"x-api-key": api_key} if api_key else {}  # a gateway of the customer's own may need none
    beta = {"anthropic-beta": THINKING_BINDING_BETA} if has_bound_thinking(model) else {}
    return {"anthropic-version": ANTHROPIC_VERSION} | key | beta


def _list_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    has_smartest = False
    for entry in iter_model_entries(client.get_json("/v1/models", "?limit=1000")):
        tier = _get_tier(entry["id"], has_smartest=has_smartest)
        has_smartest = has_smartest or tier == "smartest"
        yield build_model_info(
            entry, _MODELS.get_capabilities(entry["id"]), label=get_short_text(entry, "display_name"), tier=tier
        )


def _get_tier(model: str, *, has_smartest: bool) -> ModelTier | None:
    """Return a model's tier. The list begins with the newest model, so the first Opus is the smartest."""
    if "opus" in model:
        return "smart" if has_smartest else "smartest"
    if "sonnet" in model:
        return "balanced"
    return "fast" if "haiku" in model else None


PROVIDER = Provider(
    name="anthropic",
    label="Anthropic",
    default_url="https://api.anthropic.com",
    path="/v1/messages",
    build_body=_build_body,
    encode_options=encode_anthropic_options,
    make_accumulator=lambda request, body: MessagesAccumulator(request.model, body),
    build_headers=_build_headers,
    list_models=_list_models,
    requires_key=False,
    adjustments=(
        NINE_CHARACTER_CALL_IDS,
        drop_field("output_config", r"output_config|output_format|json_schema"),
        drop_field("tool_choice", r"tool_choice"),
        Adjustment(
            OMIT_THINKING_BLOCKS,
            r"invalid.{0,20}signature|thinking.{0,90}(?:cannot be modified|signature)|input tag .{0,300}does not match|"
            r"(?:final|first) block.{0,60}thinking|expected .{0,5}thinking|thinking block must contain",
            is_lasting=False,
        ),
        Adjustment(NO_THINKING_ADJUSTMENT, r"thinking.{0,60}(?:not supported|unsupported)|not support.{0,60}thinking"),
    ),
    models=_MODELS,
)
