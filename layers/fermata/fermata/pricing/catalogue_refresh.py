"""Fetch the price catalogue and store it, in one process at a time, and never during a turn (decision 0040)."""

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
"""Slightly less than six hours, so that a schedule that fires a little early still refreshes."""


class CatalogueUnavailable(RuntimeError):
    """The catalogue could not be fetched; the stored one stays."""


@dataclass(frozen=True)
class RefreshResult:
    """`outcome`: fetched | fresh (young enough) | underway (another process fetches it now)."""

    outcome: str
    models: int = 0


def refresh_catalogue(resources: Resources, *, force: bool = False) -> RefreshResult:
    """Fetch the catalogue if the stored one is six hours old, or in any case with `force`.

    Raises:
        CatalogueUnavailable: It could not be fetched, or is no catalogue.
    """
    current = catalogue.read_stored_catalogue(resources)
    if current and not force and resources.clock.time() - current.refreshed_at < MAX_CATALOGUE_AGE_SECONDS:
        return RefreshResult("fresh", len(current.priced_models))
    try:
        with _hold_lease(resources):
            fetched = _fetch_catalogue(resources)
            catalogue.store_catalogue(resources, fetched)
    except ConditionFailed:
        return RefreshResult("underway")
    observability.log_event("pricing.refreshed", models=len(fetched.priced_models))
    return RefreshResult("fetched", len(fetched.priced_models))


@contextmanager
def _hold_lease(resources: Resources) -> Iterator[None]:
    """Raises ConditionFailed while another process has the lease. A lease that is never released expires."""
    _put_lease(resources, expires_at=int(resources.clock.time()) + REFRESH_LEASE_SECONDS)
    try:
        yield
    finally:
        _put_lease(resources, expires_at=0)


def _put_lease(resources: Resources, expires_at: int) -> None:
    """Take the lease if it is free; release it with `expires_at` 0."""
    item = {"pk": REFRESH_LEASE_KEY[0], "sk": REFRESH_LEASE_KEY[1], "v": 1, "until": expires_at}
    put = Put(resources.settings.pricing_table, item)
    if expires_at:
        put = Put(
            resources.settings.pricing_table,
            item,
            condition="attribute_not_exists(pk) OR #until <= :now",
            values={":now": int(resources.clock.time())},
            names={"#until": "until"},
        )
    resources.tables.write_items(put)


def _fetch_catalogue(resources: Resources) -> catalogue.PriceCatalogue:
    url = resources.settings.catalogue_url
    try:
        return catalogue.parse_catalogue(_download(resources, url), int(resources.clock.time()))
    except (httpx.HTTPError, httpx.InvalidURL, InvalidCatalogue) as error:
        raise CatalogueUnavailable(f"The price catalogue at {url} could not be read: {error}") from error


def _download(resources: Resources, url: str) -> bytes:
    deadline = resources.clock.monotonic() + MAX_FETCH_SECONDS
    body = bytearray()
    # Redirects are not followed: the operator has chosen the URL in the settings.
    headers = {"accept": "application/json"}
    with httpx.stream("GET", url, timeout=10, headers=headers, trust_env=False) as response:
        if response.status_code != 200:
            raise InvalidCatalogue(f"it answers {response.status_code}")
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_FETCHED_CATALOGUE_BYTES or resources.clock.monotonic() > deadline:
                limits = f"{MAX_FETCHED_CATALOGUE_BYTES:,} bytes, or takes more than {MAX_FETCH_SECONDS:g} s"
                raise InvalidCatalogue(f"it has more than {limits}")
    return bytes(body)
