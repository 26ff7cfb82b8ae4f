"""Fetches the catalogue and keeps it, one process at a time. Never on the way of a turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Put
from fermata.pricing import catalogue
from fermata.pricing.catalogue import MEMORY_SECONDS, NotACatalogue

LEASE = ("catalogue", "lease")
LEASE_SECONDS = 60
FETCH_SECONDS = 30.0
MOST_BYTES = 32 * 1024 * 1024
MOST_AGE = MEMORY_SECONDS - 300
"""A little less than six hours, so that a schedule which comes early by a breath still counts."""


class CatalogueUnavailable(RuntimeError):
    """The catalogue could not be had; what was known stays."""


@dataclass(frozen=True)
class Refreshed:
    """`how`: fetched | fresh (young enough) | underway (somebody else fetches it now)."""

    how: str
    models: int = 0


def refresh(desk: Desk, *, force: bool = False) -> Refreshed:
    """Make sure that the stored catalogue is younger than six hours; with `force`, fetch it whatever its age."""
    held = catalogue.stored(desk)
    if held and not force and desk.clock.time() - held.refreshed < MOST_AGE:
        return Refreshed("fresh", len(held.offers))
    try:
        with _lease(desk):
            fresh = _fetched(desk)
            catalogue.keep(desk, fresh)
    except ConditionFailed:
        return Refreshed("underway")
    signals.tell("pricing.refreshed", models=len(fresh.offers))
    return Refreshed("fetched", len(fresh.offers))


@contextmanager
def _lease(desk: Desk) -> Iterator[None]:
    """Raises ConditionFailed while somebody else has it. One that was never given back runs out by itself."""
    _put_lease(desk, until=int(desk.clock.time()) + LEASE_SECONDS)
    try:
        yield
    finally:
        _put_lease(desk, until=0)


def _put_lease(desk: Desk, until: int) -> None:
    item = {"pk": LEASE[0], "sk": LEASE[1], "v": 1, "until": until}
    free = "attribute_not_exists(pk) OR #until <= :now" if until else ""
    values = {":now": int(desk.clock.time())} if until else {}
    names = {"#until": "until"} if until else {}
    desk.tables.write(Put(desk.settings.pricing_table, item, condition=free, values=values, names=names))


def _fetched(desk: Desk) -> catalogue.Catalogue:
    url = desk.settings.catalogue_url
    try:
        return catalogue.parse(_body(desk, url), int(desk.clock.time()))
    except (httpx.HTTPError, httpx.InvalidURL, NotACatalogue) as problem:
        raise CatalogueUnavailable(f"The price catalogue at {url} could not be read: {problem}") from problem


def _body(desk: Desk, url: str) -> bytes:
    deadline = desk.clock.monotonic() + FETCH_SECONDS
    body = bytearray()
    # A redirect is not followed: the address in the settings is the one that was decided.
    headers = {"accept": "application/json"}
    with httpx.stream("GET", url, timeout=10, headers=headers, trust_env=False) as answer:
        if answer.status_code != 200:
            raise NotACatalogue(f"it answers {answer.status_code}")
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > MOST_BYTES or desk.clock.monotonic() > deadline:
                raise NotACatalogue(f"it has more than {MOST_BYTES:,} bytes, or takes more than {FETCH_SECONDS:g} s")
    return bytes(body)
