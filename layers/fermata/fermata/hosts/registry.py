"""Hosts in the settings table: an operator names a tenant's host, gives it a new secret, takes it away.

A process remembers what it read for a minute, so a change counts everywhere a minute later.
"""

import secrets
from typing import Any
from urllib.parse import urlsplit

from fermata.aws.clock import new_id
from fermata.aws.dynamodb import ConditionCheck, ConditionFailed, Delete, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.aws.settings import Settings
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.host_record import HOST_SORT_KEY, HostRecord, HostSecret, host_partition

HOST_CACHE_SECONDS = 60
HOST_SECRET_OVERLAP_SECONDS = 600
"""Seconds the old secret goes on signing after a rotation: time to give the host the new one."""
HOST_SECRET_BYTES = 48


def make_host_guard(settings: Settings) -> UrlGuard:
    """For every line to a host: the open internet, and on the local stage this machine."""
    return UrlGuard(loopback=settings.is_loopback_allowed)


def register_host(
    resources: Resources, tenant: str, url: str, *, secret: str | None = None
) -> tuple[HostRecord, str | None]:
    """The tenant's host is at `url`, which may end with a path. The secret is told once, for a new host only: one that
    moves keeps its own. `secret` is for who has one already.
    """
    url = _checked(resources, url)
    old = read_host(resources, tenant)
    now = resources.clock.now_iso()
    if old is not None:
        moved = old.model_copy(update={"url": url, "version": old.version + 1, "updated_at": now})
        return _replace(resources, old, moved), None
    text = secret or secrets.token_urlsafe(HOST_SECRET_BYTES)
    sealed = _sealed(resources, tenant, text, since=int(resources.clock.time()))
    record = HostRecord(tenant=tenant, url=url, secrets=(sealed,), created_at=now, updated_at=now)
    _store_new(resources, record)
    return record, text


def rotate_host_secret(resources: Resources, tenant: str, *, overlap_seconds: int = HOST_SECRET_OVERLAP_SECONDS) -> str:
    """A new secret, told once. It signs in `overlap` seconds; until then the present one does."""
    old = _known(resources, tenant)
    now, text = resources.clock.time(), secrets.token_urlsafe(HOST_SECRET_BYTES)
    new = _sealed(resources, tenant, text, since=int(now) + overlap_seconds)
    kept = (old.get_signing_secret(now),) if overlap_seconds > 0 else ()
    stamp = {"version": old.version + 1, "updated_at": resources.clock.now_iso()}
    _replace(resources, old, old.model_copy(update={"secrets": (*kept, new), **stamp}))
    return text


def remove_host(resources: Resources, tenant: str) -> None:
    old = _known(resources, tenant)
    try:
        resources.tables.write_items(
            Delete(resources.settings.settings_table, host_partition(tenant), HOST_SORT_KEY, *_unchanged(old))
        )
    except ConditionFailed as refused:
        raise _changed_meanwhile(tenant) from refused
    resources.cache.invalidate(("host", tenant))


def describe_host(resources: Resources, tenant: str) -> dict[str, Any] | None:
    """Everything but the secrets; None when the tenant has no host."""
    found = read_host(resources, tenant)
    return found.to_operator_view() if found else None


def get_cached_host(resources: Resources, tenant: str) -> HostRecord | None:
    """The host as this process last read it, at most a minute ago."""
    return resources.cache.get_or_load(("host", tenant), HOST_CACHE_SECONDS, lambda: read_host(resources, tenant))


def read_host(resources: Resources, tenant: str) -> HostRecord | None:
    item = resources.tables.get_item(resources.settings.settings_table, host_partition(tenant), HOST_SORT_KEY)
    return HostRecord.model_validate(item) if item else None


def _known(resources: Resources, tenant: str) -> HostRecord:
    found = read_host(resources, tenant)
    if found is None:
        raise NotFound(f"Tenant {tenant!r} has no host. Name it with --url.")
    return found


def _checked(resources: Resources, url: str) -> str:
    if "@" in urlsplit(url).netloc:
        raise InvalidRequest("The host's address must not hold a user name or password: requests to it are signed.")
    make_host_guard(resources.settings).check_url_and_host(url)
    return url.rstrip("/")


def _sealed(resources: Resources, tenant: str, secret: str, *, since: int) -> HostSecret:
    name = new_id(8)
    sealed = resources.vault.seal_secret(secret, purpose="host-secret", tenant=tenant, name=name)
    return HostSecret(id=name, sealed=sealed, since=since, created_at=resources.clock.now_iso())


def _store_new(resources: Resources, record: HostRecord) -> None:
    table = resources.settings.settings_table
    is_there = ConditionCheck(table, host_partition(record.tenant), "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(is_there, Put(table, record.to_item(), if_absent=True))
    except TransactionCanceled as refused:
        if refused.reasons[0].condition_failed:
            raise NotFound(f"There is no tenant {record.tenant!r}.") from refused
        raise _changed_meanwhile(record.tenant) from refused


def _replace(resources: Resources, old: HostRecord, new: HostRecord) -> HostRecord:
    """Unless somebody else has changed it since it was read."""
    condition, values = _unchanged(old)
    try:
        resources.tables.write_items(
            Put(resources.settings.settings_table, new.to_item(), condition=condition, values=values)
        )
    except ConditionFailed as refused:
        raise _changed_meanwhile(new.tenant) from refused
    resources.cache.invalidate(("host", new.tenant))
    return new


def _unchanged(old: HostRecord) -> tuple[str, dict[str, Any]]:
    return "version = :version", {":version": old.version}


def _changed_meanwhile(tenant: str) -> Conflict:
    return Conflict(f"The host of tenant {tenant!r} was changed by somebody else just now. Look, and try again.")
