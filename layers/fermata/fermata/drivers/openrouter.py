"""OpenRouter: its Responses API, and what it says a request cost."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from fermata.drivers.responses import fold
from fermata.drivers.responses.request import WITHOUT_REASONING, body_of
from fermata.drivers.speaker import LIMIT_REFUSED, Adjusted, Speaker, adjustment
from fermata.drivers.thinking import effort
from fermata.words.model import Ask, Tokens

PROVIDER = "openrouter"
MOST_USD = 1_000_000


class Draft(fold.Draft):
    """OpenRouter prices each request itself."""

    @property
    def tokens(self) -> Tokens:
        counted = super().tokens
        return counted.model_copy(update={"reported_cost": reported_cost(counted.raw or {})})


def reported_cost(usage: Mapping[str, Any]) -> Decimal | None:
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
    return usd if usd.is_finite() and 0 <= usd < MOST_USD else None


def _body(ask: Ask, adjusted: Adjusted) -> dict[str, Any]:
    body = body_of(ask, PROVIDER, adjusted, named=True)
    body["include"] = ["reasoning.encrypted_content"]
    if ask.thinking_tokens > 0:
        body["reasoning"] = {"effort": effort(ask.thinking_tokens), "summary": "auto"}
    return body


OPENROUTER = Speaker(
    provider=PROVIDER,
    label="OpenRouter",
    path="/v1/responses",
    body_of=_body,
    draft_of=lambda ask, sent: Draft(PROVIDER, ask.model, sent),
    adjustments=(
        adjustment("include", r"encrypted content is not supported|['\"]include"),
        adjustment(
            WITHOUT_REASONING, r"encrypted.content|invalid.{0,20}signature|thinking.{0,40}modified", lasting=False
        ),
        adjustment("max_output_tokens", LIMIT_REFUSED),
        adjustment("reasoning", r"reasoning[._ ](?:summar|effort)"),
    ),
)
