"""Register, rotate and remove tenants' hosts, which are items of the settings table.

Processes cache a host for HOST_CACHE_SECONDS, so a change takes effect everywhere a minute later.
"""

import secrets
from typing import Any
from urllib.parse import urlsplit

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Item,
    Put,
    TransactionCanceled,
)
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.aws.settings import Settings
from fermata.content.content_space import read_space
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.host_record import (
    CONTENT_SCHEME,
    HOST_SORT_KEY,
    HostRecord,
    HostSecret,
    host_partition,
    is_registered_host,
    parse_host_space,
)

HOST_CACHE_SECONDS = 60
HOST_SECRET_OVERLAP_SECONDS = 600
"""How long the old secret signs after a rotation, so that the host can install the new one."""
HOST_SECRET_BYTES = 48


def make_host_guard(settings: Settings) -> UrlGuard:
    """Return the guard of connections to hosts: public addresses, and on the local stage this machine."""
    return UrlGuard(loopback=settings.is_loopback_allowed, on_refusal=log_refused_address)


def register_host(
    resources: Resources, tenant: str, url: str, *, secret: str | None = None
) -> tuple[HostRecord, str | None]:
    """Register a tenant's host, or change its URL.

    Args:
        url: The base URL, which may have a path; or `content:site/environment` for a space of the content store.
        secret: An existing secret for a new host. By default one is generated.

    Returns:
        The record, and the secret if a server has got one. It cannot be read again. A server that changes its URL
        keeps its secret, unless the content store was the host in between, which has none.

    Raises:
        NotFound: There is no such tenant or space.
        InvalidRequest: The URL is not allowed.
        Conflict: The host was changed at the same time.
    """
    url = _check_address(resources, tenant, url)
    old = read_host(resources, tenant)
    now = resources.clock.now_iso()
    kept_secrets = old.secrets if old else ()
    text, signing_secrets = _choose_secrets(resources, tenant, url, kept_secrets, secret)
    if old is not None:
        changes = {"url": url, "secrets": signing_secrets, "version": old.version + 1, "updated_at": now}
        return _replace(resources, old, old.model_copy(update=changes)), text
    removed = _read_row(resources, tenant)
    version = removed["version"] + 1 if removed else 1
    record = HostRecord(
        tenant=tenant, url=url, secrets=signing_secrets, version=version, created_at=now, updated_at=now
    )
    _store_new(resources, record)
    return record, text


def _choose_secrets(
    resources: Resources, tenant: str, url: str, kept_secrets: tuple[HostSecret, ...], secret: str | None
) -> tuple[str | None, tuple[HostSecret, ...]]:
    """Return the text of a new secret if there is one, and the secrets of a host with this address."""
    if url.startswith(CONTENT_SCHEME):
        return None, ()
    if kept_secrets:
        return None, kept_secrets
    text = secret or secrets.token_urlsafe(HOST_SECRET_BYTES)
    return text, (_seal(resources, tenant, text, since=int(resources.clock.time())),)


def rotate_host_secret(resources: Resources, tenant: str, *, overlap_seconds: int = HOST_SECRET_OVERLAP_SECONDS) -> str:
    """Give the host a new secret, which signs requests after a delay; until then the current one does.

    Args:
        tenant: The tenant's name.
        overlap_seconds: The delay, in which the host installs the new secret. 0 replaces a lost secret at once.

    Returns:
        The new secret. It cannot be read again.

    Raises:
        NotFound: The tenant has no host.
        InvalidRequest: The host is the content store, which needs no secret.
        Conflict: The host was changed at the same time.
    """
    old = _require_host(resources, tenant)
    if old.space is not None:
        raise InvalidRequest("The content store is asked without a secret, so there is none to rotate.")
    now = resources.clock.time()
    text = secrets.token_urlsafe(HOST_SECRET_BYTES)
    new_secret = _seal(resources, tenant, text, since=int(now) + overlap_seconds)
    kept_secrets = (old.get_signing_secret(now),) if overlap_seconds > 0 else ()
    changes = {"version": old.version + 1, "updated_at": resources.clock.now_iso()}
    _replace(resources, old, old.model_copy(update={"secrets": (*kept_secrets, new_secret), **changes}))
    return text


def remove_host(resources: Resources, tenant: str) -> None:
    """Remove a tenant's host with its secrets. Other processes may call it for HOST_CACHE_SECONDS more.

    A row with its version stays, so that a copy of its registration that lands late is refused (decision 0173).

    Raises:
        NotFound: The tenant has no host.
        Conflict: The host was changed at the same time.
    """
    old = _require_host(resources, tenant)
    removed: Item = {"pk": host_partition(tenant), "sk": HOST_SORT_KEY, "v": 1, "version": old.version + 1}
    removed |= {"removed_at": resources.clock.now_iso()}
    condition, values = _version_condition(old)
    try:
        resources.tables.write_items(
            Put(resources.settings.settings_table, removed, condition=condition, values=values)
        )
    except ConditionFailed as error:
        if error.item != removed:  # otherwise this write was repeated, because its response was lost
            raise _conflict(tenant) from error
    resources.cache.invalidate(("host", tenant))


def describe_host(resources: Resources, tenant: str) -> dict[str, Any] | None:
    """Return the host without its secrets, or None if the tenant has no host."""
    record = read_host(resources, tenant)
    return record.to_operator_view() if record else None


def get_cached_host(resources: Resources, tenant: str) -> HostRecord | None:
    """Return the host as this process last read it, at most HOST_CACHE_SECONDS ago."""
    return resources.cache.get_or_load(("host", tenant), HOST_CACHE_SECONDS, lambda: read_host(resources, tenant))


def read_host(resources: Resources, tenant: str) -> HostRecord | None:
    """Return a tenant's host as it is stored now, or None if it has none."""
    item = _read_row(resources, tenant)
    return HostRecord.from_row(item) if item and is_registered_host(item) else None


def _read_row(resources: Resources, tenant: str) -> Item | None:
    return resources.tables.get_item(resources.settings.settings_table, host_partition(tenant), HOST_SORT_KEY)


def _require_host(resources: Resources, tenant: str) -> HostRecord:
    record = read_host(resources, tenant)
    if record is None:
        raise NotFound(f"Tenant {tenant!r} has no host. Name it with --url.")
    return record


def _check_address(resources: Resources, tenant: str, url: str) -> str:
    """Return the address of a host as it is stored: a URL that may be asked, or a space of this tenant that exists."""
    if (space := parse_host_space(tenant, url)) is not None:
        read_space(resources, space)
        return f"{CONTENT_SCHEME}{space.name}"
    if "@" in urlsplit(url).netloc:
        raise InvalidRequest("The host's address must not hold a user name or password: requests to it are signed.")
    make_host_guard(resources.settings).check_url_and_host(url)
    return url.rstrip("/")


def _seal(resources: Resources, tenant: str, secret: str, *, since: int) -> HostSecret:
    name = new_id(8)
    sealed = resources.vault.seal_secret(secret, purpose="host-secret", tenant=tenant, name=name)
    return HostSecret(id=name, sealed=sealed, since=since, created_at=resources.clock.now_iso())


def _store_new(resources: Resources, record: HostRecord) -> None:
    table = resources.settings.settings_table
    tenant_exists = ConditionCheck(table, host_partition(record.tenant), "tenant", "attribute_exists(pk)")
    is_new = record.version == 1
    replaced: Item = {} if is_new else {":removed": record.version - 1}
    put = Put(
        table,
        record.to_item(),
        if_absent=is_new,
        condition="" if is_new else "version = :removed AND attribute_exists(removed_at)",
        values=replaced,
    )
    try:
        resources.tables.write_items(tenant_exists, put)
    except TransactionCanceled as error:
        if error.reasons[0].condition_failed:
            raise NotFound(f"There is no tenant {record.tenant!r}.") from error
        raise _conflict(record.tenant) from error


def _replace(resources: Resources, old: HostRecord, new: HostRecord) -> HostRecord:
    """Store `new` unless the record has changed since `old` was read."""
    condition, values = _version_condition(old)
    try:
        resources.tables.write_items(
            Put(resources.settings.settings_table, new.to_item(), condition=condition, values=values)
        )
    except ConditionFailed as error:
        # It is stored when this write was repeated, because its response was lost.
        if error.item is None or HostRecord.from_row(error.item) != new:
            raise _conflict(new.tenant) from error
    resources.cache.invalidate(("host", new.tenant))
    return new


def _version_condition(old: HostRecord) -> tuple[str, dict[str, Any]]:
    """Build the condition that a host is unchanged. One that was registered again may have the same version."""
    return "version = :version AND created_at = :created", {":version": old.version, ":created": old.created_at}


def _conflict(tenant: str) -> Conflict:
    return Conflict(f"The host of tenant {tenant!r} has just been changed by another request. Check it, and try again.")
