"""Fetches the catalogue and keeps it, one process at a time. Never on the way of a turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from fermata.aws import observability
from fermata.aws.dynamodb import ConditionFailed, Put
from fermata.aws.resources import Resources
from fermata.pricing import catalogue
from fermata.pricing.catalogue import CATALOGUE_CACHE_SECONDS, InvalidCatalogue

REFRESH_LEASE_KEY = ("catalogue", "lease")
REFRESH_LEASE_SECONDS = 60
MAX_FETCH_SECONDS = 30.0
MAX_FETCHED_CATALOGUE_BYTES = 32 * 1024 * 1024
MAX_CATALOGUE_AGE_SECONDS = CATALOGUE_CACHE_SECONDS - 300
"""A little less than six hours, so that a schedule which comes early by a breath still counts."""


class CatalogueUnavailable(RuntimeError):
    """The catalogue could not be had; what was known stays."""


@dataclass(frozen=True)
class RefreshResult:
    """`how`: fetched | fresh (young enough) | underway (somebody else fetches it now)."""

    outcome: str
    models: int = 0


def refresh_catalogue(resources: Resources, *, force: bool = False) -> RefreshResult:
    """Make sure that the stored catalogue is younger than six hours; with `force`, fetch it whatever its age."""
    held = catalogue.read_stored_catalogue(resources)
    if held and not force and resources.clock.time() - held.refreshed < MAX_CATALOGUE_AGE_SECONDS:
        return RefreshResult("fresh", len(held.offers))
    try:
        with _hold_lease(resources):
            fresh = _fetch_catalogue(resources)
            catalogue.store_catalogue(resources, fresh)
    except ConditionFailed:
        return RefreshResult("underway")
    observability.log_event("pricing.refreshed", models=len(fresh.offers))
    return RefreshResult("fetched", len(fresh.offers))


@contextmanager
def _hold_lease(resources: Resources) -> Iterator[None]:
    """Raises ConditionFailed while somebody else has it. One that was never given back runs out by itself."""
    _put_lease(resources, until=int(resources.clock.time()) + REFRESH_LEASE_SECONDS)
    try:
        yield
    finally:
        _put_lease(resources, until=0)


def _put_lease(resources: Resources, until: int) -> None:
    item = {"pk": REFRESH_LEASE_KEY[0], "sk": REFRESH_LEASE_KEY[1], "v": 1, "until": until}
    free = "attribute_not_exists(pk) OR #until <= :now" if until else ""
    values = {":now": int(resources.clock.time())} if until else {}
    names = {"#until": "until"} if until else {}
    resources.tables.write_items(
        Put(resources.settings.pricing_table, item, condition=free, values=values, names=names)
    )


def _fetch_catalogue(resources: Resources) -> catalogue.PriceCatalogue:
    url = resources.settings.catalogue_url
    try:
        return catalogue.parse_catalogue(_download(resources, url), int(resources.clock.time()))
    except (httpx.HTTPError, httpx.InvalidURL, InvalidCatalogue) as problem:
        raise CatalogueUnavailable(f"The price catalogue at {url} could not be read: {problem}") from problem


def _download(resources: Resources, url: str) -> bytes:
    deadline = resources.clock.monotonic() + MAX_FETCH_SECONDS
    body = bytearray()
    # A redirect is not followed: the address in the settings is the one that was decided.
    headers = {"accept": "application/json"}
    with httpx.stream("GET", url, timeout=10, headers=headers, trust_env=False) as answer:
        if answer.status_code != 200:
            raise InvalidCatalogue(f"it answers {answer.status_code}")
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > MAX_FETCHED_CATALOGUE_BYTES or resources.clock.monotonic() > deadline:
                raise InvalidCatalogue(
                    f"it has more than {MAX_FETCHED_CATALOGUE_BYTES:,} bytes, "
                    f"or takes more than {MAX_FETCH_SECONDS:g} s"
                )
    return bytes(body)
