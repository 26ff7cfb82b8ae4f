"""The catalogue: what each model costs and how much it holds, as OpenRouter publishes it.

One item holds all of it. Whoever reads it sees one whole catalogue, and replacing it is one write.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.pricing.names import exact_name, pricing_key
from fermata.pricing.prices import Price
from fermata.words.base import Word

KEPT = ("anthropic/", "openai/")
PLACE = ("catalogue", "current")
MEMORY_SECONDS = 6 * 3600
LOOK_AGAIN_SECONDS = 60
MOST_USD = Decimal(1_000_000)
LEAST_USD = Decimal("1e-12")
"""Of a million tokens; what is given away costs 0."""
MOST_TOKENS = 10**9
MOST_DIGITS = 20
MOST_BYTES = 350_000
"""An item of DynamoDB holds 400 KB."""


class NotACatalogue(ValueError):
    """What was read is not a list of priced models."""


class Offer(Word):
    """One model of the catalogue. `sees` and `calls` are None where the catalogue does not say."""

    price: Price
    context_window: int | None = None
    sees: bool | None = None
    calls: bool | None = None


_offers: TypeAdapter[dict[str, Offer]] = TypeAdapter(dict[str, Offer])


class Catalogue(Word):
    """`offers` by exact name, and by pricing key, where the release without a date speaks for all."""

    refreshed: int
    """Epoch seconds."""
    offers: dict[str, Offer]

    def offer(self, model: str) -> Offer | None:
        return self.offers.get(exact_name(model)) or self.offers.get(pricing_key(model))


def parse(text: str | bytes, refreshed: int) -> Catalogue:
    """OpenRouter's answer to GET /api/v1/models. Models of other makers, or without both prices, are left out."""
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise NotACatalogue("it is not JSON") from error
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise NotACatalogue("it has no list 'data'")
    offers = _named(model for model in models if isinstance(model, dict) and _is_kept(model.get("id")))
    if not offers:
        raise NotACatalogue("it prices no model of " + " or ".join(prefix.strip("/") for prefix in KEPT))
    return Catalogue(refreshed=refreshed, offers=offers)


def stored(desk: Desk) -> Catalogue | None:
    """One that cannot be understood is as good as none: turns go on unpriced, and the next refresh replaces it."""
    item = desk.tables.get(desk.settings.pricing_table, *PLACE)
    if item is None:
        return None
    try:
        return Catalogue(refreshed=item["refreshed"], offers=_offers.validate_json(item["offers"]))
    except (KeyError, ValidationError):
        signals.failed("pricing.unreadable")
        return None


def keep(desk: Desk, catalogue: Catalogue) -> None:
    """Replace the stored catalogue, wholly."""
    offers = _offers.dump_json(catalogue.offers, exclude_none=True)
    if len(offers) > MOST_BYTES:
        raise NotACatalogue(f"its {len(catalogue.offers):,} models are more than one item holds")
    item = {"pk": PLACE[0], "sk": PLACE[1], "v": 1, "refreshed": catalogue.refreshed, "offers": offers.decode()}
    desk.tables.write(Put(desk.settings.pricing_table, item))
    desk.memory.forget("catalogue")
    desk.memory.forget("catalogue, if any")


def known(desk: Desk) -> Catalogue | None:
    """What this process knows: read at most every six hours, never fetched. While there is none, every minute."""

    def look() -> tuple[Catalogue | None]:
        return (stored(desk),)

    return desk.memory.recall(
        "catalogue", MEMORY_SECONDS, lambda: desk.memory.recall("catalogue, if any", LOOK_AGAIN_SECONDS, look)[0]
    )


def per_mtok(per_token: Any) -> Decimal | None:
    """A price per token as a price per million. None for what is no price: blank, not a number, below zero, absurd."""
    try:
        usd = Decimal(str(per_token)) * 1_000_000
    except ArithmeticError:
        return None
    if isinstance(per_token, bool) or not usd.is_finite() or (usd and not LEAST_USD <= usd <= MOST_USD):
        return None
    usd = usd.normalize()
    return None if len(usd.as_tuple().digits) > MOST_DIGITS else usd + 0


def _is_kept(identity: Any) -> bool:
    return isinstance(identity, str) and identity.startswith(KEPT) and identity.isascii() and identity.isprintable()


def _named(models: Iterable[Mapping[str, Any]]) -> dict[str, Offer]:
    """Every offer under both of its names. A name that is somebody's exact one is never lent to another release."""
    exact: dict[str, Offer] = {}
    lent: dict[str, Offer] = {}
    for model in models:
        offer = _offer(model)
        if offer is not None:
            exact[exact_name(model["id"])] = offer
            lent.setdefault(pricing_key(model["id"]), offer)
    return lent | exact


def _offer(model: Mapping[str, Any]) -> Offer | None:
    pricing = _members(model, "pricing")
    price_in, price_out = per_mtok(pricing.get("prompt")), per_mtok(pricing.get("completion"))
    if price_in is None or price_out is None:
        return None
    window = model.get("context_length")
    price = Price(
        input_per_mtok=price_in,
        output_per_mtok=price_out,
        cache_read_per_mtok=per_mtok(pricing.get("input_cache_read")),
        cache_write_per_mtok=per_mtok(pricing.get("input_cache_write")),
    )
    return Offer(
        price=price,
        context_window=window if type(window) is int and 0 < window <= MOST_TOKENS else None,
        sees=_says(_members(model, "architecture"), "input_modalities", "image"),
        calls=_says(model, "supported_parameters", "tools"),
    )


def _members(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _says(value: Mapping[str, Any], name: str, word: str) -> bool | None:
    found = value.get(name)
    return word in found if isinstance(found, list) else None
