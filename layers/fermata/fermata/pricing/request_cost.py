"""Determine what one provider request costs: what its provider reports, or else the catalogue's price."""

from decimal import Context, Decimal

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.model_io import TokenUsage
from fermata.drivers.registry import get_model_traits
from fermata.pricing import catalogue
from fermata.pricing.token_cost import Price, compute_cost

MIN_USD_STEP = Decimal("1e-24")
"""DynamoDB holds numbers of 38 digits at most."""


class RequestCost(DomainModel, defer_build=False):
    """The cost of one request.

    Attributes:
        cost: In USD, exact; 0 if it is unknown (decision 0085).
        known: Whether the provider or the catalogue has said it.
        price: The catalogue's, if the cost was computed with it.
    """

    cost: Decimal
    is_known: bool = True
    price: Price | None = None


def get_request_cost(resources: Resources, provider: str, model: str, tokens: TokenUsage) -> RequestCost:
    """Return what a request cost. Asks no provider.

    Args:
        provider: The `providerId` of the credential.
        model: The provider's name of the model.
        tokens: The tokens that the provider reported, or an estimate of them. A cost that the provider reported itself
            comes before the catalogue's price.

    Returns:
        The cost in USD; 0 and not `known` for a model without a price.
    """
    if get_model_traits(provider).are_free:
        return RequestCost(cost=Decimal(0))
    if tokens.reported_cost is not None:
        return RequestCost(cost=_round_to_storable(tokens.reported_cost))
    price = find_price(resources, provider, model)
    if price is None:
        _warn_once(resources, provider, model)
        return RequestCost(cost=Decimal(0), is_known=False)
    return RequestCost(cost=compute_cost(price, tokens), price=price)


def _round_to_storable(cost: Decimal) -> Decimal:
    """Return the cost unchanged, unless it has more decimals than can be stored."""
    rounded = cost.quantize(MIN_USD_STEP, context=Context(prec=38))
    return cost if cost == rounded else rounded


def find_price(resources: Resources, provider: str, model: str) -> Price | None:
    """Return the catalogue's price of a model, or None if it is not listed. The catalogue is cached in the process.

    Args:
        provider: The `providerId` of the credential.
        model: The provider's name of the model.
    """
    prices = catalogue.get_catalogue(resources)
    listed = prices.find_model(provider, model) if prices else None
    return listed.price if listed else None


def find_price_of_unpriced_models(resources: Resources) -> Price | None:
    """Return what models without a price count for in budgets: the dearest of each rate in the catalogue, or nothing.

    It is None if the deployment refuses such models under a budget, or if nothing has a price (decision 0243).
    """
    if resources.settings.unpriced_models != "dearest":
        return None
    prices = catalogue.get_catalogue(resources)
    if prices is None:
        return None
    return resources.cache.get_or_load(
        ("dearest price", prices.refreshed_at), catalogue.CATALOGUE_CACHE_SECONDS, prices.find_dearest_price
    )


def _warn_once(resources: Resources, provider: str, model: str) -> None:
    """Log one warning in six hours and process, so that a turn of fifty rounds logs one."""

    def warn() -> bool:
        observability.log_warning("pricing.unknown_model", provider=provider, model=model[:200])
        return True

    resources.cache.get_or_load(("unpriced", provider, model), catalogue.CATALOGUE_CACHE_SECONDS, warn)
