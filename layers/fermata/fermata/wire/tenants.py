"""Tenants in the settings table: their record, the issuer that finds it, the origins that find it.

    t#<tenant>          tenant       the record (wire/tenant.py)
    issuer#<sha256>     tenant       which tenant's callers this issuer speaks for; one issuer, one tenant
    origin#<origin>     t#<tenant>   this tenant's pages may call from there

A process remembers what it read for a minute, so a change counts everywhere a minute later.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Delete, Item, Put, TransactionRefused
from fermata.wire.tenant import (
    Limits,
    Secret,
    Tenant,
    checked_name,
    checked_origins,
    checked_secret,
    checked_text,
    checked_url,
    new_secret,
    normal_origin,
)
from fermata.words.dialect import Dialect, ToolNames
from fermata.words.errors import Conflict, Invalid, NotFound

REMEMBERED = 60
OVERLAP = 86_400
"""Seconds the old secret goes on counting after a rotation: as long as a token may be good for."""


def add_tenant(
    desk: Desk,
    name: str,
    *,
    issuer: str,
    audience: str,
    secret: str | None = None,
    jwks_url: str | None = None,
    origins: Iterable[str] = (),
    dialect: Dialect = "fermata",
    tool_names: ToolNames = "seed",
    limits: Limits | None = None,
) -> tuple[Tenant, str | None]:
    """The new tenant and its secret, which nobody can read again; no secret when its keys come from a JWKS URL."""
    local = desk.settings.fermata_stage == "local"
    if secret and jwks_url:
        raise Invalid("Give a secret (HS256) or a JWKS URL (RS256, ES256), not both.")
    now = desk.clock.instant()
    text = None if jwks_url else checked_secret(secret or new_secret())
    tenant = Tenant(
        name=checked_name(name),
        issuer=checked_url("issuer", issuer, local=local),
        audience=checked_text("audience", audience),
        jwks_url=checked_url("JWKS URL", jwks_url, local=local) if jwks_url else None,
        secrets=(_sealed(desk, name, text),) if text else (),
        origins=checked_origins(tuple(origins)),
        dialect=dialect,
        tool_names=tool_names,
        limits=limits or Limits(),
        created_at=now,
        updated_at=now,
    )
    _store_new(desk, tenant)
    return tenant, text


def show_tenant(desk: Desk, name: str) -> dict[str, Any]:
    """Everything but the secrets."""
    return _stored(desk, name).shown()


def rotate_secret(desk: Desk, name: str, *, secret: str | None = None, overlap: int = OVERLAP) -> str:
    """Make a new secret the tenant's; the one before it goes on counting for `overlap` seconds, older ones end."""
    tenant = _stored(desk, name)
    if tenant.jwks_url:
        raise Invalid(f"Tenant {name!r} signs with the keys at {tenant.jwks_url}. Rotate them there.")
    text = checked_secret(secret or new_secret())
    until = int(desk.clock.time()) + overlap
    kept = tuple(old.model_copy(update={"until": until}) for old in tenant.secrets[:1] if overlap > 0)
    _replace(desk, tenant, secrets=(_sealed(desk, name, text), *kept))
    return text


def change_tenant(
    desk: Desk,
    name: str,
    *,
    origins: Iterable[str] | None = None,
    dialect: Dialect | None = None,
    tool_names: ToolNames | None = None,
    limits: Limits | None = None,
) -> Tenant:
    """What is not given stays, each limit for itself; `origins` are all of them, not only the new ones."""
    tenant = _stored(desk, name)
    wanted: dict[str, Any] = {"dialect": dialect, "tool_names": tool_names}
    wanted["limits"] = tenant.limits.model_copy(update=limits.model_dump(exclude_unset=True)) if limits else None
    wanted["origins"] = None if origins is None else checked_origins(tuple(origins))
    return _replace(desk, tenant, **{field: value for field, value in wanted.items() if value is not None})


def tenant_of(desk: Desk, name: str) -> Tenant:
    """The tenant as this process last read it, at most a minute ago."""
    return desk.memory.recall(("tenant", name), REMEMBERED, lambda: _stored(desk, name))


def tenant_of_issuer(desk: Desk, issuer: str) -> Tenant | None:
    def load() -> str | None:
        item = desk.tables.get(desk.settings.settings_table, _issuer_key(issuer), "tenant", consistent=False)
        return str(item["tenant"]) if item else None

    name = desk.memory.recall(("issuer", issuer), REMEMBERED, load)
    tenant = tenant_of(desk, name) if name else None
    return tenant if tenant and tenant.issuer == issuer else None


def origin_is_known(desk: Desk, origin: str) -> bool:
    """Whether any tenant's pages may call from there; all that can be asked before the caller is known."""
    wanted = normal_origin(origin)
    if wanted is None:
        return False

    def load() -> bool | None:
        table = desk.settings.settings_table
        return bool(desk.tables.query(table, f"origin#{wanted}", limit=1, consistent=False)) or None

    return bool(desk.memory.recall(("origin", wanted), REMEMBERED, load))


def _stored(desk: Desk, name: str) -> Tenant:
    item = desk.tables.get(desk.settings.settings_table, f"t#{name}", "tenant")
    if item is None:
        raise NotFound(f"There is no tenant {name!r}.")
    return Tenant.model_validate(item)


def _sealed(desk: Desk, tenant: str, secret: str) -> Secret:
    key = new_id(8)
    sealed = desk.vault.seal(secret, purpose="caller-secret", tenant=tenant, name=key)
    return Secret(id=key, sealed=sealed, created_at=desk.clock.instant())


def _store_new(desk: Desk, tenant: Tenant) -> None:
    table = desk.settings.settings_table
    issuer: Item = {"pk": _issuer_key(tenant.issuer), "sk": "tenant", "v": 1}
    issuer |= {"tenant": tenant.name, "issuer": tenant.issuer}
    try:
        desk.tables.write(
            Put(table, _item(tenant), absent=True),
            Put(table, issuer, absent=True),
            *(_origin_put(table, tenant.name, origin) for origin in tenant.origins),
        )
    except TransactionRefused as refused:
        if refused.reasons[0].failed:
            raise Conflict(f"There is a tenant {tenant.name!r} already.") from refused
        owner = (refused.reasons[1].item or {}).get("tenant")
        raise Conflict(f"The issuer {tenant.issuer} belongs to tenant {owner!r}. Each tenant has its own.") from refused


def _replace(desk: Desk, old: Tenant, **changes: Any) -> Tenant:
    """Store the tenant anew, unless somebody else has changed it since it was read."""
    table = desk.settings.settings_table
    stamp = {"version": old.version + 1, "updated_at": desk.clock.instant()}
    new = old.model_copy(update=changes | stamp)
    gone, come = set(old.origins) - set(new.origins), set(new.origins) - set(old.origins)
    try:
        desk.tables.write(
            Put(table, _item(new), condition="version = :version", values={":version": old.version}),
            *(Delete(table, f"origin#{origin}", f"t#{new.name}") for origin in sorted(gone)),
            *(_origin_put(table, new.name, origin) for origin in sorted(come)),
        )
    except (ConditionFailed, TransactionRefused) as refused:
        raise Conflict(f"Tenant {old.name!r} was changed by somebody else just now. Look, and try again.") from refused
    desk.memory.forget(("tenant", new.name))
    return new


def _item(tenant: Tenant) -> Item:
    return {"pk": f"t#{tenant.name}", "sk": "tenant", "v": 1, **tenant.model_dump(exclude_none=True)}


def _origin_put(table: str, tenant: str, origin: str) -> Put:
    return Put(table, {"pk": f"origin#{origin}", "sk": f"t#{tenant}", "v": 1, "tenant": tenant})


def _issuer_key(issuer: str) -> str:
    """Hashed, because a token nobody has checked yet may name anything."""
    return f"issuer#{hashlib.sha256(issuer.encode('utf-8', 'surrogatepass')).hexdigest()}"
