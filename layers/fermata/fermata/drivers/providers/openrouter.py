"""Describe OpenRouter: its Responses API, and what it reports a request to cost."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.domain.model_io import ModelRequest, TokenUsage
from fermata.drivers.adjustments import (
    AppliedAdjustments,
    drop_field,
)
from fermata.drivers.model_list_parsing import (
    build_model_info,
    get_object,
    get_short_text,
    get_texts,
    iter_model_entries,
)
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from fermata.drivers.protocols.openai_responses.adjustments import make_responses_adjustments
from fermata.drivers.protocols.openai_responses.request import build_request_body
from fermata.drivers.provider import ModelTraits, Provider
from fermata.drivers.provider_options import encode_openrouter_options
from fermata.drivers.sampling_fields import OPENROUTER_SAMPLING
from fermata.drivers.thinking_allowance import default_thinking_allowance, effort_from_tokens

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient

_NAME = "openrouter"
MAX_REPORTED_USD = 1_000_000


class OpenRouterAccumulator(ResponsesAccumulator):
    """The fold of a Responses stream whose usage holds the request's price."""

    @property
    def tokens(self) -> TokenUsage:
        tokens = super().tokens
        return tokens.model_copy(update={"reported_cost": get_reported_cost(tokens.raw or {})})


def get_reported_cost(usage: Mapping[str, Any]) -> Decimal | None:
    """Return what a request cost, in USD, exact; None if the usage does not say (decision 0074).

    With the customer's own key at the maker (`is_byok`), `cost` is OpenRouter's fee alone, and the maker's bill is
    added. Otherwise the maker's bill is part of `cost`.
    """
    fee = _parse_usd(usage.get("cost"))
    if fee is None or usage.get("is_byok") is not True:
        return fee
    details = usage.get("cost_details")
    bill = _parse_usd(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
    return fee + (bill or 0)


def _parse_usd(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        usd = Decimal(str(value))
    except InvalidOperation:
        return None
    return usd if usd.is_finite() and 0 <= usd < MAX_REPORTED_USD else None


def _build_body(request: ModelRequest, applied: AppliedAdjustments) -> dict[str, Any]:
    allowance = default_thinking_allowance(request.model, request.thinking_tokens)
    body = build_request_body(request, _NAME, applied, with_item_ids=True, thinking_allowance=allowance)
    body["include"] = ["reasoning.encrypted_content"]
    if request.thinking_tokens > 0:
        body["reasoning"] = {"effort": effort_from_tokens(request.thinking_tokens), "summary": "auto"}
    return body


def _list_models(client: "ModelListClient") -> Iterator[ModelInfo]:
    """List the models with what their entries say: price, context size, images and tools."""
    for entry in iter_model_entries(client.get_json("/v1/models")):
        architecture, pricing = get_object(entry, "architecture"), get_object(entry, "pricing")
        if "text" not in get_texts(architecture, "output_modalities", default=("text",)):
            continue
        capabilities = ModelCapabilities(
            tool_calling="tools" in get_texts(entry, "supported_parameters", default=("tools",)),
            vision_input="image" in get_texts(architecture, "input_modalities"),
        )
        model = build_model_info(entry, capabilities, label=get_short_text(entry, "name"))
        yield model.model_copy(update={"per_token": (pricing.get("prompt"), pricing.get("completion"))})


PROVIDER = Provider(
    name=_NAME,
    label="OpenRouter",
    default_url="https://openrouter.ai/api",
    path="/v1/responses",
    build_body=_build_body,
    encode_options=encode_openrouter_options,
    make_accumulator=lambda request, body: OpenRouterAccumulator(_NAME, request.model, body),
    list_models=_list_models,
    key_check_path="/v1/key",
    adjustments=(
        *make_responses_adjustments(r"encrypted.content|invalid.{0,20}signature|thinking.{0,40}modified"),
        drop_field("tool_choice", r"tool_choice"),
    ),
    models=ModelTraits(are_in_catalogue=True, get_sampling_fields=lambda _request: OPENROUTER_SAMPLING),
)
