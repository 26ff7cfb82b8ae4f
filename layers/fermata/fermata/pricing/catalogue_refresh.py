"""Fetch the price catalogue and store it, in one process at a time, and never during a turn (decision 0040)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
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


@value_dataclass(frozen=True)
class RefreshResult:
    """`outcome`: fetched | fresh (young enough) | underway (another process fetches it now)."""

    outcome: str
    models: int = 0


def refresh_catalogue(resources: Resources, *, force: bool = False, emits_age: bool = True) -> RefreshResult:
    """Fetch the catalogue if the stored one is six hours old, or in any case with `force`.

    Args:
        resources: Where it is stored.
        force: Fetch it whatever its age.
        emits_age: Emit the age as a metric, as a line on stdout. A terminal is no place for it.

    Raises:
        CatalogueUnavailable: It could not be fetched, or is no catalogue.
    """
    current = catalogue.read_stored_catalogue(resources)
    if current and emits_age:
        age_seconds = resources.clock.time() - current.refreshed_at
        observability.emit_metrics({"CatalogueAgeHours": age_seconds / 3600})
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
    """Hold the lease, which expires if it is never released. Raises ConditionFailed while another process has it."""
    now = int(resources.clock.time())
    owner = new_id()
    is_free = "attribute_not_exists(pk) OR #until <= :now OR #owner = :owner"
    lease = {"until": now + REFRESH_LEASE_SECONDS, "owner": owner}
    names = {"#until": "until", "#owner": "owner"}
    _put_lease(resources, lease, is_free, {":now": now, ":owner": owner}, names)
    try:
        yield
    finally:
        # Only its own lease: this one may have expired, or a copy of this write may land late (decision 0143).
        with suppress(ConditionFailed):
            _put_lease(resources, {"until": 0}, "#owner = :owner", {":owner": owner}, {"#owner": "owner"})


def _put_lease(resources: Resources, lease: Item, condition: str, values: Item, names: dict[str, str]) -> None:
    item = {"pk": REFRESH_LEASE_KEY[0], "sk": REFRESH_LEASE_KEY[1], "v": 1, **lease}
    resources.tables.write_items(
        Put(resources.settings.pricing_table, item, condition=condition, values=values, names=names)
    )


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
