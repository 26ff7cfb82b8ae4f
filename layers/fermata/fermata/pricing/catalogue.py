"""The catalogue: what each model costs and how much it holds, as OpenRouter publishes it.

One item holds all of it. Whoever reads it sees one whole catalogue, and replacing it is one write.
"""

import json
import zlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.pricing.names import exact_name, pricing_key
from fermata.pricing.prices import Price
from fermata.words.base import Word

KEPT = ("anthropic/", "openai/")
ROUTER = "openrouter"
PLACE = ("catalogue", "current")
MEMORY_SECONDS = 6 * 3600
LOOK_AGAIN_SECONDS = 60
MOST_USD = Decimal(1_000_000)
LEAST_USD = Decimal("1e-12")
"""Of a million tokens; what is given away costs 0."""
MOST_TOKENS = 10**9
MOST_DIGITS = 20
MOST_CHARS = 300
"""Of a model's name."""
MOST_BYTES = 350_000
"""An item of DynamoDB holds 400 KB."""


class NotACatalogue(ValueError):
    """What was read is not a list of priced models."""


class Listed(Word):
    """One model of the catalogue. `sees` and `calls` are None where the catalogue does not say."""

    price: Price | None = None
    context_window: int | None = None
    sees: bool | None = None
    calls: bool | None = None


class Offer(Listed):
    """One that has a price, for everybody who has it from its maker."""

    price: Price


_offers: TypeAdapter[dict[str, Offer]] = TypeAdapter(dict[str, Offer])
_routed: TypeAdapter[dict[str, Listed]] = TypeAdapter(dict[str, Listed])


class Catalogue(Word):
    """`offers`, of the makers in KEPT: by exact name, and by pricing key, where the release without a date speaks for
    all. `routed`: every model that OpenRouter has, of any maker, by its id there and by nothing else.
    """

    refreshed: int
    """Epoch seconds."""
    offers: dict[str, Offer]
    routed: dict[str, Listed] = Field(default_factory=dict)

    def offer(self, model: str) -> Offer | None:
        return self.offers.get(exact_name(model)) or self.offers.get(pricing_key(model))

    def listed(self, provider: str, model: str) -> Listed | None:
        """A model as this provider names it."""
        exact = self.routed.get(model) if provider == ROUTER else None
        return exact or self.offer(model)


def parse(text: str | bytes, refreshed: int) -> Catalogue:
    """OpenRouter's answer to GET /api/v1/models. Without both prices a model is no offer."""
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise NotACatalogue("it is not JSON") from error
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise NotACatalogue("it has no list 'data'")
    routed = {model["id"]: _listed(model) for model in models if isinstance(model, dict) and _is_name(model.get("id"))}
    offers = _named(routed)
    if not offers:
        raise NotACatalogue("it prices no model of " + " or ".join(prefix.strip("/") for prefix in KEPT))
    return Catalogue(refreshed=refreshed, offers=offers, routed=routed)


def stored(desk: Desk) -> Catalogue | None:
    """One that cannot be understood is as good as none: turns go on unpriced, and the next refresh replaces it."""
    item = desk.tables.get(desk.settings.pricing_table, *PLACE)
    if item is None:
        return None
    try:
        offers = _offers.validate_json(item["offers"])
        routed = _routed.validate_json(zlib.decompress(bytes(item["routed"]))) if "routed" in item else {}
        return Catalogue(refreshed=item["refreshed"], offers=offers, routed=routed)
    except (KeyError, TypeError, ValidationError, zlib.error):
        signals.failed("pricing.unreadable")
        return None


def keep(desk: Desk, catalogue: Catalogue) -> None:
    """Replace the stored catalogue, wholly."""
    offers = _offers.dump_json(catalogue.offers, exclude_none=True)
    routed = zlib.compress(_routed.dump_json(catalogue.routed, exclude_none=True))
    if len(offers) + len(routed) > MOST_BYTES:
        models = max(len(catalogue.offers), len(catalogue.routed))
        raise NotACatalogue(f"its {models:,} models are more than one item holds")
    item = {"pk": PLACE[0], "sk": PLACE[1], "v": 1, "refreshed": catalogue.refreshed}
    item |= {"offers": offers.decode(), "routed": routed}
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


def _is_name(identity: Any) -> bool:
    return (
        isinstance(identity, str) and 0 < len(identity) <= MOST_CHARS and identity.isascii() and identity.isprintable()
    )


def _named(routed: Mapping[str, Listed]) -> dict[str, Offer]:
    """Every offer under both of its names. A name that is somebody's exact one is never lent to another release."""
    exact: dict[str, Offer] = {}
    lent: dict[str, Offer] = {}
    for name, listed in routed.items():
        if listed.price and name.startswith(KEPT):
            offer = Offer(**listed.model_dump(exclude={"price"}), price=listed.price)
            exact[exact_name(name)] = offer
            lent.setdefault(pricing_key(name), offer)
    return lent | exact


def _listed(model: Mapping[str, Any]) -> Listed:
    window = model.get("context_length")
    return Listed(
        price=_price(_members(model, "pricing")),
        context_window=window if type(window) is int and 0 < window <= MOST_TOKENS else None,
        sees=_says(_members(model, "architecture"), "input_modalities", "image"),
        calls=_says(model, "supported_parameters", "tools"),
    )


def _price(pricing: Mapping[str, Any]) -> Price | None:
    price_in, price_out = per_mtok(pricing.get("prompt")), per_mtok(pricing.get("completion"))
    if price_in is None or price_out is None:
        return None
    return Price(
        input_per_mtok=price_in,
        output_per_mtok=price_out,
        cache_read_per_mtok=per_mtok(pricing.get("input_cache_read")),
        cache_write_per_mtok=per_mtok(pricing.get("input_cache_write")),
    )


def _members(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _says(value: Mapping[str, Any], name: str, word: str) -> bool | None:
    found = value.get(name)
    return word in found if isinstance(found, list) else None
