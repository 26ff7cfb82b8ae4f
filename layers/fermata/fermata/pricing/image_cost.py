"""Compute what the request of a generated image costs. The catalogue has prices of text only (decision 0400)."""

from decimal import Decimal

from fermata.domain.model_io import TokenUsage
from fermata.pricing.request_cost import RequestCost
from fermata.pricing.token_cost import Price, compute_cost

IMAGE_PRICES = {
    ("openai", "gpt-image-1"): Price(input_per_mtok=Decimal(5), output_per_mtok=Decimal(40)),
    ("openai", "gpt-image-1-mini"): Price(input_per_mtok=Decimal(2), output_per_mtok=Decimal(8)),
    ("gemini", "gemini-2.5-flash-image"): Price(input_per_mtok=Decimal("0.3"), output_per_mtok=Decimal(30)),
}
"""USD per million tokens of a prompt and of an image, as their providers publish them."""


def get_image_cost(provider: str, model: str, tokens: TokenUsage) -> RequestCost:
    """Return what an image has cost; 0 and not known for another model, or if the provider has reported no tokens.

    Args:
        provider: `openai` or `gemini`.
        model: The provider's name of the model.
        tokens: As the provider has reported them.
    """
    price = IMAGE_PRICES.get((provider, model))
    if price is None or not tokens.completion:
        return RequestCost(cost=Decimal(0), is_known=False)
    return RequestCost(cost=compute_cost(price, tokens), price=price)
