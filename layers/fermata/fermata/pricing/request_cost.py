"""What one provider request costs: what its provider says, else what the catalogue's price comes to."""

from decimal import Context, Decimal

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.pricing import catalogue
from fermata.pricing.prices import Price, compute_cost

MIN_USD_STEP = Decimal("1e-24")
"""A table holds numbers of 38 digits at most."""


class RequestCost(DomainModel):
    """`known` is False when nobody could say: the cost is then 0, and the tokens are all that is known.

    `price` is the catalogue's, where the cost was computed with it.
    """

    cost: Decimal
    known: bool = True
    price: Price | None = None


def get_request_cost(resources: Resources, provider: str, model: str, tokens: TokenUsage) -> RequestCost:
    """Asks no server: what the catalogue does not hold is unknown, not fetched."""
    if get_model_traits(provider).are_free:
        return RequestCost(cost=Decimal(0))
    if tokens.reported_cost is not None:
        return RequestCost(cost=_round_to_storable(tokens.reported_cost))
    price = find_price(resources, provider, model)
    if price is None:
        _warn_once(resources, provider, model)
        return RequestCost(cost=Decimal(0), known=False)
    return RequestCost(cost=compute_cost(price, tokens), price=price)


def _round_to_storable(cost: Decimal) -> Decimal:
    """As it was said, unless that is finer than anything is priced."""
    rounded = cost.quantize(MIN_USD_STEP, context=Context(prec=38))
    return cost if cost == rounded else rounded


def find_price(resources: Resources, provider: str, model: str) -> Price | None:
    """The catalogue's price of a model, from this process's memory where it can be."""
    known = catalogue.get_catalogue(resources)
    listed = known.find_model(provider, model) if known else None
    return listed.price if listed else None


def _warn_once(resources: Resources, provider: str, model: str) -> None:
    """Once in six hours and process: a turn of fifty rounds is one fact."""

    def tell() -> bool:
        observability.log_warning("pricing.unknown_model", provider=provider, model=model[:200])
        return True

    resources.cache.get_or_load(("unpriced", provider, model), catalogue.CATALOGUE_CACHE_SECONDS, tell)
