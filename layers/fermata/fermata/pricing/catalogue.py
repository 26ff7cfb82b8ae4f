"""Store and read the price catalogue: what each model costs and holds, as OpenRouter publishes it (decision 0040).

One item holds all of it, so that a reader sees one whole catalogue, and replacing it is one write.
"""

import contextlib
import json
import re
import zlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel, StoredModel, StoredNames
from fermata.pricing.model_names import normalize_model_name, undated_model_name
from fermata.pricing.token_cost import Price

PRICED_MAKER_PREFIXES = ("anthropic/", "openai/")
OPENROUTER_PREFIXES = {"openrouter": "", "gemini": "google/"}
"""What OpenRouter's ids have before the names that these providers use."""
_REVISION = re.compile(r"-\d{3}\Z")
"""The number at the end of Google's names for one revision of a model."""
CATALOGUE_KEY = ("catalogue", "current")
CATALOGUE_CACHE_SECONDS = 6 * 3600
MISSING_CATALOGUE_CACHE_SECONDS = 60
MAX_USD_PER_MILLION_TOKENS = Decimal(1_000_000)
MIN_USD_PER_MILLION_TOKENS = Decimal("1e-12")
"""Above zero; a free model costs 0."""
MAX_CONTEXT_WINDOW_TOKENS = 10**9
MAX_PRICE_DIGITS = 20
MAX_CATALOGUE_NAME_CHARS = 300
MAX_STORED_CATALOGUE_BYTES = 350_000
"""An item of DynamoDB holds 400 KB."""


class InvalidCatalogue(ValueError):
    """The text is not a list of priced models."""


class CatalogueModel(StoredModel, alias_generator=StoredNames({"can_read_images": "sees", "can_call_tools": "calls"})):
    """One model of the catalogue. None means that the catalogue does not say.

    Attributes:
        context_window: In tokens.
        can_read_images: Whether it reads images.
        can_call_tools: Whether it calls tools.
    """

    price: Price | None = None
    context_window: int | None = None
    can_read_images: bool | None = None
    can_call_tools: bool | None = None


class PricedModel(CatalogueModel):
    """A model whose price counts for everybody who uses it at its maker."""

    price: Price


_priced_models: TypeAdapter[dict[str, PricedModel]] = TypeAdapter(dict[str, PricedModel])
_openrouter_models: TypeAdapter[dict[str, CatalogueModel]] = TypeAdapter(dict[str, CatalogueModel])


class PriceCatalogue(DomainModel, defer_build=False):
    """One version of the catalogue.

    Attributes:
        refreshed_at: Epoch seconds.
        priced_models: Those of the makers in `PRICED_MAKER_PREFIXES`, by normalized name and by undated name. Under an
            undated name, the release without a date counts if there is one.
        openrouter_models: Every model of OpenRouter, of any maker, by its exact id there (decision 0087).
    """

    refreshed_at: int
    priced_models: dict[str, PricedModel]
    openrouter_models: dict[str, CatalogueModel] = Field(default_factory=dict)

    def find_priced_model(self, model: str) -> PricedModel | None:
        """Return a model's entry by its provider's name for it, with or without a date; None if it is not listed."""
        return self.priced_models.get(normalize_model_name(model)) or self.priced_models.get(undated_model_name(model))

    def find_model(self, provider: str, model: str) -> CatalogueModel | None:
        """Find a model by the name that this provider uses."""
        if (prefix := OPENROUTER_PREFIXES.get(provider)) is None:
            return self.find_priced_model(model)
        exact = self.openrouter_models.get(prefix + model)
        if exact is None and prefix:
            exact = self.openrouter_models.get(prefix + _REVISION.sub("", model.removeprefix("models/")))
        return exact or self.find_priced_model(model)

    def find_dearest_price(self) -> Price | None:
        """Return a price with the highest rate of each kind that any model has; None if no model has a price."""
        models = [*self.priced_models.values(), *self.openrouter_models.values()]
        prices = [model.price for model in models if model.price]
        if not prices:
            return None
        dearest_input = max(price.input_per_mtok for price in prices)
        writes = [price.cache_write_per_mtok for price in prices if price.cache_write_per_mtok is not None]
        return Price(
            input_per_mtok=dearest_input,
            output_per_mtok=max(price.output_per_mtok for price in prices),
            cache_write_per_mtok=max([dearest_input, *writes]),
        )


def parse_catalogue(text: str | bytes, refreshed_at: int) -> PriceCatalogue:
    """Parse OpenRouter's response to GET /api/v1/models. Raises InvalidCatalogue."""
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidCatalogue("it is not JSON") from error
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InvalidCatalogue("it has no list 'data'")
    models = {
        entry["id"]: _parse_model(entry)
        for entry in entries
        if isinstance(entry, dict) and _is_model_id(entry.get("id"))
    }
    priced_models = _index_priced_models(models)
    if not priced_models:
        makers = " or ".join(prefix.strip("/") for prefix in PRICED_MAKER_PREFIXES)
        raise InvalidCatalogue(f"it prices no model of {makers}")
    return PriceCatalogue(refreshed_at=refreshed_at, priced_models=priced_models, openrouter_models=models)


def read_stored_catalogue(resources: Resources) -> PriceCatalogue | None:
    """Read the stored catalogue.

    An unreadable one counts as none: turns run on without prices, and the next refresh replaces it.
    """
    item = resources.tables.get_item(resources.settings.pricing_table, *CATALOGUE_KEY)
    if item is None:
        return None
    try:
        # Rows from before decision 0087 have no `routed`.
        routed = zlib.decompress(bytes(item["routed"])) if "routed" in item else b"{}"
        return PriceCatalogue(
            refreshed_at=item["refreshed"],
            priced_models=_priced_models.validate_json(item["offers"], by_alias=True, by_name=False),
            openrouter_models=_openrouter_models.validate_json(routed, by_alias=True, by_name=False),
        )
    except (KeyError, TypeError, ValidationError, zlib.error):
        observability.log_exception("pricing.unreadable")
        return None


def store_catalogue(resources: Resources, catalogue: PriceCatalogue) -> None:
    """Replace the stored catalogue. Raises InvalidCatalogue if it does not fit into one item.

    It replaces the catalogue that is stored now, which may be unreadable. If another process stores one meanwhile, that
    one stays: it is as new. A copy of the write that lands late replaces no later catalogue (decision 0173).
    """
    offers = _priced_models.dump_json(catalogue.priced_models, by_alias=True, exclude_none=True)
    routed = zlib.compress(_openrouter_models.dump_json(catalogue.openrouter_models, by_alias=True, exclude_none=True))
    if len(offers) + len(routed) > MAX_STORED_CATALOGUE_BYTES:
        count = max(len(catalogue.priced_models), len(catalogue.openrouter_models))
        raise InvalidCatalogue(f"its {count:,} models are more than one item holds")
    item = {"pk": CATALOGUE_KEY[0], "sk": CATALOGUE_KEY[1], "v": 1, "refreshed": catalogue.refreshed_at}
    item |= {"offers": offers.decode(), "routed": routed}
    stored = resources.tables.get_item(resources.settings.pricing_table, *CATALOGUE_KEY)
    read_version = (stored or {}).get("version", 0)
    put = Put(
        resources.settings.pricing_table,
        item | {"version": read_version + 1},
        condition="#version = :read" if read_version else "attribute_not_exists(#version)",
        values={":read": read_version} if read_version else {},
        names={"#version": "version"},
    )
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(put)
    resources.cache.invalidate("catalogue")
    resources.cache.invalidate("catalogue, if any")


def get_catalogue(resources: Resources) -> PriceCatalogue | None:
    """Return the catalogue from the process's cache, which reads the stored one every six hours.

    While none is stored, it looks once a minute. It never fetches one.
    """

    def read() -> tuple[PriceCatalogue | None]:
        return (read_stored_catalogue(resources),)  # a tuple, because the cache does not hold None

    return resources.cache.get_or_load(
        "catalogue",
        CATALOGUE_CACHE_SECONDS,
        lambda: resources.cache.get_or_load("catalogue, if any", MISSING_CATALOGUE_CACHE_SECONDS, read)[0],
    )


def price_per_million_tokens(per_token: Any) -> Decimal | None:
    """Convert a price per token; None if it is no price: blank, no number, below zero, or absurd (decision 0040)."""
    try:
        usd = Decimal(str(per_token)) * 1_000_000
    except ArithmeticError:
        return None
    if isinstance(per_token, bool) or not usd.is_finite():
        return None
    if usd and not MIN_USD_PER_MILLION_TOKENS <= usd <= MAX_USD_PER_MILLION_TOKENS:
        return None
    usd = usd.normalize()
    return None if len(usd.as_tuple().digits) > MAX_PRICE_DIGITS else usd + 0


def _is_model_id(value: Any) -> bool:
    is_text = isinstance(value, str) and 0 < len(value) <= MAX_CATALOGUE_NAME_CHARS
    return is_text and value.isascii() and value.isprintable()


def _index_priced_models(models: Mapping[str, CatalogueModel]) -> dict[str, PricedModel]:
    """Index the models of the priced makers by both names; a normalized name is never another release's undated one."""
    by_name: dict[str, PricedModel] = {}
    by_undated_name: dict[str, PricedModel] = {}
    for model_id, model in models.items():
        if model.price and model_id.startswith(PRICED_MAKER_PREFIXES):
            priced = PricedModel(**model.model_dump(exclude={"price"}), price=model.price)
            by_name[normalize_model_name(model_id)] = priced
            by_undated_name.setdefault(undated_model_name(model_id), priced)
    return by_undated_name | by_name


def _parse_model(entry: Mapping[str, Any]) -> CatalogueModel:
    window = entry.get("context_length")
    return CatalogueModel(
        price=_parse_price(_get_dict(entry, "pricing")),
        context_window=window if type(window) is int and 0 < window <= MAX_CONTEXT_WINDOW_TOKENS else None,
        can_read_images=_list_contains(_get_dict(entry, "architecture"), "input_modalities", "image"),
        can_call_tools=_list_contains(entry, "supported_parameters", "tools"),
    )


def _parse_price(pricing: Mapping[str, Any]) -> Price | None:
    price_in = price_per_million_tokens(pricing.get("prompt"))
    price_out = price_per_million_tokens(pricing.get("completion"))
    if price_in is None or price_out is None:
        return None
    return Price(
        input_per_mtok=price_in,
        output_per_mtok=price_out,
        cache_read_per_mtok=price_per_million_tokens(pricing.get("input_cache_read")),
        cache_write_per_mtok=price_per_million_tokens(pricing.get("input_cache_write")),
    )


def _get_dict(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}


def _list_contains(entry: Mapping[str, Any], name: str, word: str) -> bool | None:
    """Return None if the member is no list."""
    value = entry.get(name)
    return word in value if isinstance(value, list) else None
