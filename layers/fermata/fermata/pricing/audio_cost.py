"""Compute what the transcription of a recording costs. The catalogue has prices of text only (decision 0500)."""

from decimal import Decimal
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.pricing.request_cost import find_price, find_price_of_unpriced_models
from fermata.pricing.token_cost import Price, compute_cost

GEMINI_TOKENS_PER_SECOND = 32
"""Of a recording, as Google documents them."""
_UNKNOWN_TOKENS_PER_SECOND = 50
"""More than any provider documents."""


class AudioPrice(NamedTuple):
    """USD for a minute of a recording, and for its tokens where they are counted."""

    per_minute: Decimal
    tokens: Price | None = None


def _price(per_minute: str, input_: str, output: str) -> AudioPrice:
    return AudioPrice(Decimal(per_minute), Price(input_per_mtok=Decimal(input_), output_per_mtok=Decimal(output)))


AUDIO_PRICES = {
    ("openai", "whisper-1"): AudioPrice(Decimal("0.006")),
    ("openai", "gpt-4o-transcribe"): _price("0.006", "6", "10"),
    ("openai", "gpt-4o-mini-transcribe"): _price("0.003", "3", "5"),
}
"""As the provider publishes them."""
GEMINI_AUDIO_RATES = {
    "gemini-2.0-flash": Decimal("0.7"),
    "gemini-2.5-flash": Decimal(1),
    "gemini-2.5-flash-lite": Decimal("0.3"),
}
"""USD per million tokens of a recording, for models whose rate of text is lower."""


def compute_audio_cost(
    resources: Resources, provider: str, model: str, tokens: TokenUsage, seconds: float
) -> Decimal | None:
    """Return what a transcription has cost; None if that is not known.

    Args:
        resources: The catalogue of prices.
        provider: The `providerId` of the credential.
        model: The provider's name of the model.
        tokens: As the provider has reported them.
        seconds: The same of the length.
    """
    if get_model_traits(provider).are_free:
        return Decimal(0)
    if tokens.reported_cost is not None:
        return tokens.reported_cost
    listed = AUDIO_PRICES.get((provider, model))
    token_price = listed.tokens if listed else _find_token_price(resources, provider, model)
    if token_price and (tokens.prompt or tokens.completion):
        return compute_cost(token_price, tokens)
    return listed.per_minute * Decimal(str(seconds)) / 60 if listed and seconds else None


def compute_max_audio_cost(
    resources: Resources, provider: str, model: str, seconds: float, answer_tokens: int
) -> Decimal | None:
    """Return what a transcription costs at most; None if that is not known.

    Args:
        resources: The catalogue of prices.
        provider: The `providerId` of the credential.
        model: The provider's name of the model.
        seconds: The greatest length of the recording.
        answer_tokens: The greatest length of the transcript.
    """
    if get_model_traits(provider).are_free:
        return Decimal(0)
    if listed := AUDIO_PRICES.get((provider, model)):
        return listed.per_minute * Decimal(str(seconds)) / 60
    price = _find_token_price(resources, provider, model) or find_price_of_unpriced_models(resources)
    per_second = GEMINI_TOKENS_PER_SECOND if provider == "gemini" else _UNKNOWN_TOKENS_PER_SECOND
    tokens = TokenUsage(prompt=int(seconds * per_second), completion=answer_tokens)
    return compute_cost(price, tokens) if price else None


def _find_token_price(resources: Resources, provider: str, model: str) -> Price | None:
    price = find_price(resources, provider, model)
    rate = GEMINI_AUDIO_RATES.get(model.removeprefix("models/")) if provider == "gemini" else None
    return price.model_copy(update={"input_per_mtok": rate}) if price and rate else price
