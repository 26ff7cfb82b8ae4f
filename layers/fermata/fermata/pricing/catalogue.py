"""The catalogue: what each model costs and how much it holds, as OpenRouter publishes it.

One item holds all of it. Whoever reads it sees one whole catalogue, and replacing it is one write.
"""

import json
import zlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from fermata.aws import observability
from fermata.aws.dynamodb import Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.pricing.model_names import normalize_model_name, undated_model_name
from fermata.pricing.prices import Price

PRICED_MAKER_PREFIXES = ("anthropic/", "openai/")
OPENROUTER_NAME = "openrouter"
CATALOGUE_KEY = ("catalogue", "current")
CATALOGUE_CACHE_SECONDS = 6 * 3600
MISSING_CATALOGUE_CACHE_SECONDS = 60
MAX_USD_PER_MILLION_TOKENS = Decimal(1_000_000)
MIN_USD_PER_MILLION_TOKENS = Decimal("1e-12")
"""Of a million tokens; what is given away costs 0."""
MAX_CONTEXT_WINDOW_TOKENS = 10**9
MAX_PRICE_DIGITS = 20
MAX_CATALOGUE_NAME_CHARS = 300
"""Of a model's name."""
MAX_STORED_CATALOGUE_BYTES = 350_000
"""An item of DynamoDB holds 400 KB."""


class InvalidCatalogue(ValueError):
    """What was read is not a list of priced models."""


class CatalogueModel(DomainModel):
    """One model of the catalogue. `sees` and `calls` are None where the catalogue does not say."""

    price: Price | None = None
    context_window: int | None = None
    sees: bool | None = None
    calls: bool | None = None


class PricedModel(CatalogueModel):
    """One that has a price, for everybody who has it from its maker."""

    price: Price


_offers: TypeAdapter[dict[str, PricedModel]] = TypeAdapter(dict[str, PricedModel])
_routed: TypeAdapter[dict[str, CatalogueModel]] = TypeAdapter(dict[str, CatalogueModel])


class PriceCatalogue(DomainModel):
    """`offers`, of the makers in KEPT: by exact name, and by pricing key, where the release without a date speaks for
    all. `routed`: every model that OpenRouter has, of any maker, by its id there and by nothing else.
    """

    refreshed: int
    """Epoch seconds."""
    offers: dict[str, PricedModel]
    routed: dict[str, CatalogueModel] = Field(default_factory=dict)

    def find_priced_model(self, model: str) -> PricedModel | None:
        return self.offers.get(normalize_model_name(model)) or self.offers.get(undated_model_name(model))

    def find_model(self, provider: str, model: str) -> CatalogueModel | None:
        """A model as this provider names it."""
        exact = self.routed.get(model) if provider == OPENROUTER_NAME else None
        return exact or self.find_priced_model(model)


def parse_catalogue(text: str | bytes, refreshed: int) -> PriceCatalogue:
    """OpenRouter's answer to GET /api/v1/models. Without both prices a model is no offer."""
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidCatalogue("it is not JSON") from error
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise InvalidCatalogue("it has no list 'data'")
    routed = {
        model["id"]: _parse_model(model)
        for model in models
        if isinstance(model, dict) and _is_model_id(model.get("id"))
    }
    offers = _index_offers(routed)
    if not offers:
        raise InvalidCatalogue(
            "it prices no model of " + " or ".join(prefix.strip("/") for prefix in PRICED_MAKER_PREFIXES)
        )
    return PriceCatalogue(refreshed=refreshed, offers=offers, routed=routed)


def read_stored_catalogue(resources: Resources) -> PriceCatalogue | None:
    """One that cannot be understood is as good as none: turns go on unpriced, and the next refresh replaces it."""
    item = resources.tables.get_item(resources.settings.pricing_table, *CATALOGUE_KEY)
    if item is None:
        return None
    try:
        offers = _offers.validate_json(item["offers"])
        routed = _routed.validate_json(zlib.decompress(bytes(item["routed"]))) if "routed" in item else {}
        return PriceCatalogue(refreshed=item["refreshed"], offers=offers, routed=routed)
    except (KeyError, TypeError, ValidationError, zlib.error):
        observability.log_exception("pricing.unreadable")
        return None


def store_catalogue(resources: Resources, catalogue: PriceCatalogue) -> None:
    """Replace the stored catalogue, wholly."""
    offers = _offers.dump_json(catalogue.offers, exclude_none=True)
    routed = zlib.compress(_routed.dump_json(catalogue.routed, exclude_none=True))
    if len(offers) + len(routed) > MAX_STORED_CATALOGUE_BYTES:
        models = max(len(catalogue.offers), len(catalogue.routed))
        raise InvalidCatalogue(f"its {models:,} models are more than one item holds")
    item = {"pk": CATALOGUE_KEY[0], "sk": CATALOGUE_KEY[1], "v": 1, "refreshed": catalogue.refreshed}
    item |= {"offers": offers.decode(), "routed": routed}
    resources.tables.write_items(Put(resources.settings.pricing_table, item))
    resources.cache.invalidate("catalogue")
    resources.cache.invalidate("catalogue, if any")


def get_catalogue(resources: Resources) -> PriceCatalogue | None:
    """What this process knows: read at most every six hours, never fetched. While there is none, every minute."""

    def look() -> tuple[PriceCatalogue | None]:
        return (read_stored_catalogue(resources),)

    return resources.cache.get_or_load(
        "catalogue",
        CATALOGUE_CACHE_SECONDS,
        lambda: resources.cache.get_or_load("catalogue, if any", MISSING_CATALOGUE_CACHE_SECONDS, look)[0],
    )


def price_per_million_tokens(per_token: Any) -> Decimal | None:
    """A price per token as a price per million. None for what is no price: blank, not a number, below zero, absurd."""
    try:
        usd = Decimal(str(per_token)) * 1_000_000
    except ArithmeticError:
        return None
    if (
        isinstance(per_token, bool)
        or not usd.is_finite()
        or (usd and not MIN_USD_PER_MILLION_TOKENS <= usd <= MAX_USD_PER_MILLION_TOKENS)
    ):
        return None
    usd = usd.normalize()
    return None if len(usd.as_tuple().digits) > MAX_PRICE_DIGITS else usd + 0


def _is_model_id(identity: Any) -> bool:
    return (
        isinstance(identity, str)
        and 0 < len(identity) <= MAX_CATALOGUE_NAME_CHARS
        and identity.isascii()
        and identity.isprintable()
    )


def _index_offers(routed: Mapping[str, CatalogueModel]) -> dict[str, PricedModel]:
    """Every offer under both of its names. A name that is somebody's exact one is never lent to another release."""
    exact: dict[str, PricedModel] = {}
    lent: dict[str, PricedModel] = {}
    for name, listed in routed.items():
        if listed.price and name.startswith(PRICED_MAKER_PREFIXES):
            offer = PricedModel(**listed.model_dump(exclude={"price"}), price=listed.price)
            exact[normalize_model_name(name)] = offer
            lent.setdefault(undated_model_name(name), offer)
    return lent | exact


def _parse_model(model: Mapping[str, Any]) -> CatalogueModel:
    window = model.get("context_length")
    return CatalogueModel(
        price=_parse_price(_get_dict(model, "pricing")),
        context_window=window if type(window) is int and 0 < window <= MAX_CONTEXT_WINDOW_TOKENS else None,
        sees=_list_contains(_get_dict(model, "architecture"), "input_modalities", "image"),
        calls=_list_contains(model, "supported_parameters", "tools"),
    )


def _parse_price(pricing: Mapping[str, Any]) -> Price | None:
    price_in, price_out = (
        price_per_million_tokens(pricing.get("prompt")),
        price_per_million_tokens(pricing.get("completion")),
    )
    if price_in is None or price_out is None:
        return None
    return Price(
        input_per_mtok=price_in,
        output_per_mtok=price_out,
        cache_read_per_mtok=price_per_million_tokens(pricing.get("input_cache_read")),
        cache_write_per_mtok=price_per_million_tokens(pricing.get("input_cache_write")),
    )


def _get_dict(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list_contains(value: Mapping[str, Any], name: str, word: str) -> bool | None:
    found = value.get(name)
    return word in found if isinstance(found, list) else None
