"""Compute the exact cost of a provider request from prices per million tokens."""

from decimal import Decimal

from fermata.domain.base import StoredModel
from fermata.domain.model_io import TokenUsage


class Price(StoredModel, defer_build=False):
    """Exact USD per million tokens. Without a cache rate, cached tokens cost the input rate."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cache_read_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None


def compute_cost(price: Price | None, tokens: TokenUsage) -> Decimal:
    """Return the USD of one request, not rounded; 0 without a price."""
    if price is None:
        return Decimal(0)
    read_rate = price.input_per_mtok if price.cache_read_per_mtok is None else price.cache_read_per_mtok
    write_rate = price.input_per_mtok if price.cache_write_per_mtok is None else price.cache_write_per_mtok
    total = (
        tokens.uncached_prompt_tokens * price.input_per_mtok
        + tokens.cache_read * read_rate
        + tokens.cache_creation * write_rate
        + tokens.completion * price.output_per_mtok
    )
    return total.scaleb(-6)


def compute_max_cost(price: Price, prompt: int, completion: int) -> Decimal:
    """Return the USD that a request costs at most (decision 0055).

    Before the request it is unknown how much of the prompt is read from a cache or written to one. Writing it may cost
    more than sending it, so the highest of the three rates counts.

    Args:
        price: The model's rates, in USD per million tokens.
        prompt: The tokens of the prompt.
        completion: The greatest number of tokens of the response.
    """
    rates = (price.input_per_mtok, price.cache_read_per_mtok, price.cache_write_per_mtok)
    highest = max(rate for rate in rates if rate is not None)
    return (prompt * highest + completion * price.output_per_mtok).scaleb(-6)
