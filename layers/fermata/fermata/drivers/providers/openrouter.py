"""OpenRouter: its Responses API, and what it says a request cost."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from fermata.domain.model_io import ModelRequest, TokenUsage
from fermata.drivers.protocols.openai_responses import accumulator
from fermata.drivers.protocols.openai_responses.request import OMIT_REASONING_ITEMS, build_request_body
from fermata.drivers.provider import OUTPUT_LIMIT_REFUSAL, AppliedAdjustments, Provider, make_adjustment
from fermata.drivers.thinking_budget import effort_from_tokens

_NAME = "openrouter"
MAX_REPORTED_USD = 1_000_000


class OpenRouterAccumulator(accumulator.ResponsesAccumulator):
    """OpenRouter prices each request itself."""

    @property
    def tokens(self) -> TokenUsage:
        counted = super().tokens
        return counted.model_copy(update={"reported_cost": get_reported_cost(counted.raw or {})})


def get_reported_cost(usage: Mapping[str, Any]) -> Decimal | None:
    """What a request cost, in USD, exact.

    With a key of one's own at the maker (`is_byok`), `cost` is OpenRouter's fee alone, and the maker's bill comes on
    top. Without one, the maker's bill is in `cost` already.
    """
    fee = _usd(usage.get("cost"))
    if fee is None or usage.get("is_byok") is not True:
        return fee
    details = usage.get("cost_details")
    return fee + (_usd(details.get("upstream_inference_cost")) or 0 if isinstance(details, Mapping) else 0)


def _usd(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        usd = Decimal(str(value))
    except InvalidOperation:
        return None
    return usd if usd.is_finite() and 0 <= usd < MAX_REPORTED_USD else None


def _body(ask: ModelRequest, adjusted: AppliedAdjustments) -> dict[str, Any]:
    body = build_request_body(ask, _NAME, adjusted, named=True)
    body["include"] = ["reasoning.encrypted_content"]
    if ask.thinking_tokens > 0:
        body["reasoning"] = {"effort": effort_from_tokens(ask.thinking_tokens), "summary": "auto"}
    return body


OPENROUTER = Provider(
    name=_NAME,
    label="OpenRouter",
    path="/v1/responses",
    build_body=_body,
    make_accumulator=lambda ask, sent: OpenRouterAccumulator(_NAME, ask.model, sent),
    adjustments=(
        make_adjustment("include", r"encrypted content is not supported|['\"]include"),
        make_adjustment(
            OMIT_REASONING_ITEMS, r"encrypted.content|invalid.{0,20}signature|thinking.{0,40}modified", is_lasting=False
        ),
        make_adjustment("max_output_tokens", OUTPUT_LIMIT_REFUSAL),
        make_adjustment("reasoning", r"reasoning[._ ](?:summar|effort)"),
    ),
)
