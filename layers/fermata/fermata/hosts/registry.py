"""Hosts in the settings table: an operator names a tenant's host, gives it a new secret, takes it away.

A process remembers what it read for a minute, so a change counts everywhere a minute later.
"""

import secrets
from typing import Any
from urllib.parse import urlsplit

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Check, ConditionFailed, Delete, Put, TransactionRefused
from fermata.aws.settings import Settings
from fermata.drivers.guard import Guard
from fermata.hosts.record import SORT_KEY, HostRecord, HostSecret, partition
from fermata.words.errors import Conflict, Invalid, NotFound

REMEMBERED = 60
OVERLAP = 600
"""Seconds the old secret goes on signing after a rotation: time to give the host the new one."""
SECRET_BYTES = 48


def guard(settings: Settings) -> Guard:
    """For every line to a host: the open internet, and on the local stage this machine."""
    return Guard(loopback=settings.loopback_allowed)


def register(desk: Desk, tenant: str, url: str, *, secret: str | None = None) -> tuple[HostRecord, str | None]:
    """The tenant's host is at `url`, which may end with a path. The secret is told once, for a new host only: one that
    moves keeps its own. `secret` is for who has one already.
    """
    url = _checked(desk, url)
    old = read(desk, tenant)
    now = desk.clock.instant()
    if old is not None:
        moved = old.model_copy(update={"url": url, "version": old.version + 1, "updated_at": now})
        return _replace(desk, old, moved), None
    text = secret or secrets.token_urlsafe(SECRET_BYTES)
    sealed = _sealed(desk, tenant, text, since=int(desk.clock.time()))
    record = HostRecord(tenant=tenant, url=url, secrets=(sealed,), created_at=now, updated_at=now)
    _store_new(desk, record)
    return record, text


def rotate(desk: Desk, tenant: str, *, overlap: int = OVERLAP) -> str:
    """A new secret, told once. It signs in `overlap` seconds; until then the present one does."""
    old = _known(desk, tenant)
    now, text = desk.clock.time(), secrets.token_urlsafe(SECRET_BYTES)
    new = _sealed(desk, tenant, text, since=int(now) + overlap)
    kept = (old.signing(now),) if overlap > 0 else ()
    stamp = {"version": old.version + 1, "updated_at": desk.clock.instant()}
    _replace(desk, old, old.model_copy(update={"secrets": (*kept, new), **stamp}))
    return text


def remove(desk: Desk, tenant: str) -> None:
    old = _known(desk, tenant)
    try:
        desk.tables.write(Delete(desk.settings.settings_table, partition(tenant), SORT_KEY, *_unchanged(old)))
    except ConditionFailed as refused:
        raise _changed_meanwhile(tenant) from refused
    desk.memory.forget(("host", tenant))


def show(desk: Desk, tenant: str) -> dict[str, Any] | None:
    """Everything but the secrets; None when the tenant has no host."""
    found = read(desk, tenant)
    return found.shown() if found else None


def known(desk: Desk, tenant: str) -> HostRecord | None:
    """The host as this process last read it, at most a minute ago."""
    return desk.memory.recall(("host", tenant), REMEMBERED, lambda: read(desk, tenant))


def read(desk: Desk, tenant: str) -> HostRecord | None:
    item = desk.tables.get(desk.settings.settings_table, partition(tenant), SORT_KEY)
    return HostRecord.model_validate(item) if item else None


def _known(desk: Desk, tenant: str) -> HostRecord:
    found = read(desk, tenant)
    if found is None:
        raise NotFound(f"Tenant {tenant!r} has no host. Name it with --url.")
    return found


def _checked(desk: Desk, url: str) -> str:
    if "@" in urlsplit(url).netloc:
        raise Invalid("The host's address must not hold a user name or password: requests to it are signed.")
    guard(desk.settings).check(url)
    return url.rstrip("/")


def _sealed(desk: Desk, tenant: str, secret: str, *, since: int) -> HostSecret:
    name = new_id(8)
    sealed = desk.vault.seal(secret, purpose="host-secret", tenant=tenant, name=name)
    return HostSecret(id=name, sealed=sealed, since=since, created_at=desk.clock.instant())


def _store_new(desk: Desk, record: HostRecord) -> None:
    table = desk.settings.settings_table
    is_there = Check(table, partition(record.tenant), "tenant", "attribute_exists(pk)")
    try:
        desk.tables.write(is_there, Put(table, record.item(), absent=True))
    except TransactionRefused as refused:
        if refused.reasons[0].failed:
            raise NotFound(f"There is no tenant {record.tenant!r}.") from refused
        raise _changed_meanwhile(record.tenant) from refused


def _replace(desk: Desk, old: HostRecord, new: HostRecord) -> HostRecord:
    """Unless somebody else has changed it since it was read."""
    condition, values = _unchanged(old)
    try:
        desk.tables.write(Put(desk.settings.settings_table, new.item(), condition=condition, values=values))
    except ConditionFailed as refused:
        raise _changed_meanwhile(new.tenant) from refused
    desk.memory.forget(("host", new.tenant))
    return new


def _unchanged(old: HostRecord) -> tuple[str, dict[str, Any]]:
    return "version = :version", {":version": old.version}


def _changed_meanwhile(tenant: str) -> Conflict:
    return Conflict(f"The host of tenant {tenant!r} was changed by somebody else just now. Look, and try again.")
