"""What one provider request costs: what its provider says, else what the catalogue's price comes to."""

from decimal import Context, Decimal

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.pricing import catalogue
from fermata.pricing.prices import Price, cost
from fermata.words.base import Word
from fermata.words.model import Tokens

FREE = "ollama"
FINEST = Decimal("1e-24")
"""A table holds numbers of 38 digits at most."""


class Charge(Word):
    """`known` is False when nobody could say: the cost is then 0, and the tokens are all that is known.

    `price` is the catalogue's, where the cost was computed with it.
    """

    cost: Decimal
    known: bool = True
    price: Price | None = None


def price_usage(desk: Desk, provider: str, model: str, tokens: Tokens) -> Charge:
    """Asks no server: what the catalogue does not hold is unknown, not fetched."""
    if provider == FREE:
        return Charge(cost=Decimal(0))
    if tokens.reported_cost is not None:
        return Charge(cost=_storable(tokens.reported_cost))
    price = price_of(desk, provider, model)
    if price is None:
        _tell_once(desk, provider, model)
        return Charge(cost=Decimal(0), known=False)
    return Charge(cost=cost(price, tokens), price=price)


def _storable(cost: Decimal) -> Decimal:
    """As it was said, unless that is finer than anything is priced."""
    rounded = cost.quantize(FINEST, context=Context(prec=38))
    return cost if cost == rounded else rounded


def price_of(desk: Desk, provider: str, model: str) -> Price | None:
    """The catalogue's price of a model, from this process's memory where it can be."""
    known = catalogue.known(desk)
    listed = known.listed(provider, model) if known else None
    return listed.price if listed else None


def _tell_once(desk: Desk, provider: str, model: str) -> None:
    """Once in six hours and process: a turn of fifty rounds is one fact."""

    def tell() -> bool:
        signals.warn("pricing.unknown_model", provider=provider, model=model[:200])
        return True

    desk.memory.recall(("unpriced", provider, model), catalogue.MEMORY_SECONDS, tell)
