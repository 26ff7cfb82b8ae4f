"""Prices per million tokens, and the exact cost of one provider request."""

from decimal import Decimal

from fermata.aws.desk import Desk
from fermata.words.base import Word
from fermata.words.model import Tokens

MEMORY_SECONDS = 6 * 3600
MILLION = Decimal(1_000_000)


class Price(Word):
    """USD per million tokens, exact; a missing cache rate is the input rate (contract instatic.md §5.12)."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cache_read_per_mtok: Decimal | None = None
    cache_write_per_mtok: Decimal | None = None


def pricing_key(model: str) -> str:
    """The name a model has in the price table: lower case, without its provider's prefix, dots as dashes."""
    name = model.lower()
    for prefix in ("anthropic/", "openai/", "openrouter/"):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return name.replace(".", "-")


def price_of(desk: Desk, model: str) -> Price | None:
    """The known price of a model, remembered for six hours in this process; None costs nothing."""
    key = pricing_key(model)

    def load() -> tuple[Price | None]:
        row = desk.tables.get(desk.settings.pricing_table, "price", key, consistent=False)
        return (Price.model_validate(row) if row else None,)

    return desk.memory.recall(("price", key), MEMORY_SECONDS, load)[0]


def cost(price: Price | None, tokens: Tokens) -> Decimal:
    """USD of one request, exact: nothing is rounded here."""
    if price is None:
        return Decimal(0)
    read = price.input_per_mtok if price.cache_read_per_mtok is None else price.cache_read_per_mtok
    write = price.input_per_mtok if price.cache_write_per_mtok is None else price.cache_write_per_mtok
    total = (
        tokens.prompt * price.input_per_mtok
        + tokens.cache_read * read
        + tokens.cache_creation * write
        + tokens.completion * price.output_per_mtok
    )
    return total / MILLION
