"""Prices per million tokens, and the exact cost of one provider request."""

from decimal import Decimal

from fermata.domain.base import DomainModel
from fermata.domain.model_io import TokenUsage


class Price(DomainModel):
    """USD per million tokens, exact; a missing cache rate is the input rate (contract instatic.md §5.12)."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cache_read_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None


def compute_cost(price: Price | None, tokens: TokenUsage) -> Decimal:
    """USD of one request, exact: nothing is rounded here. Without a price it is 0."""
    if price is None:
        return Decimal(0)
    read = price.input_per_mtok if price.cache_read_per_mtok is None else price.cache_read_per_mtok
    write = price.input_per_mtok if price.cache_write_per_mtok is None else price.cache_write_per_mtok
    total = (
        tokens.uncached_prompt_tokens * price.input_per_mtok
        + tokens.cache_read * read
        + tokens.cache_creation * write
        + tokens.completion * price.output_per_mtok
    )
    return total.scaleb(-6)


def compute_max_cost(price: Price, prompt: int, completion: int) -> Decimal:
    """USD that so many tokens cost at most: nobody knows beforehand which of the prompt is read, or written, or
    neither. To write it into a cache may cost more than to send it.
    """
    rates = (price.input_per_mtok, price.cache_read_per_mtok, price.cache_write_per_mtok)
    highest = max(rate for rate in rates if rate is not None)
    return (prompt * highest + completion * price.output_per_mtok).scaleb(-6)
