"""Tenants in the settings table: their record, the issuer that finds it, the origins that find it.

    t#<tenant>          tenant       the record (wire/auth/tenant.py)
    issuer#<sha256>     tenant       which tenant's callers this issuer speaks for; one issuer, one tenant
    origin#<origin>     t#<tenant>   this tenant's pages may call from there

A process remembers what it read for a minute, so a change counts everywhere a minute later.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb import ConditionFailed, Delete, Item, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.wire.auth.tenant import (
    Tenant,
    TenantLimits,
    TenantSecret,
    check_tenant_name,
    check_tenant_origins,
    check_tenant_secret,
    check_tenant_text,
    check_tenant_url,
    generate_tenant_secret,
    normalize_origin,
)

_CACHE_SECONDS = 60
DEFAULT_SECRET_OVERLAP_SECONDS = 86_400
"""Seconds the old secret goes on counting after a rotation: as long as a token may be good for."""


def add_tenant(
    resources: Resources,
    name: str,
    *,
    issuer: str,
    audience: str,
    secret: str | None = None,
    jwks_url: str | None = None,
    origins: Iterable[str] = (),
    dialect: Dialect = "fermata",
    tool_names: ToolNameVariant = "seed",
    limits: TenantLimits | None = None,
) -> tuple[Tenant, str | None]:
    """The new tenant and its secret, which nobody can read again; no secret when its keys come from a JWKS URL."""
    local = resources.settings.fermata_stage == "local"
    if secret and jwks_url:
        raise InvalidRequest("Give a secret (HS256) or a JWKS URL (RS256, ES256), not both.")
    now = resources.clock.now_iso()
    text = None if jwks_url else check_tenant_secret(secret or generate_tenant_secret())
    tenant = Tenant(
        name=check_tenant_name(name),
        issuer=check_tenant_url("issuer", issuer, allow_http=local),
        audience=check_tenant_text("audience", audience),
        jwks_url=check_tenant_url("JWKS URL", jwks_url, allow_http=local) if jwks_url else None,
        secrets=(_sealed(resources, name, text),) if text else (),
        origins=check_tenant_origins(tuple(origins)),
        dialect=dialect,
        tool_names=tool_names,
        limits=limits or TenantLimits(),
        created_at=now,
        updated_at=now,
    )
    _store_new(resources, tenant)
    return tenant, text


def describe_tenant(resources: Resources, name: str) -> dict[str, Any]:
    """Everything but the secrets."""
    return _stored(resources, name).to_operator_view()


def rotate_tenant_secret(
    resources: Resources, name: str, *, secret: str | None = None, overlap_seconds: int = DEFAULT_SECRET_OVERLAP_SECONDS
) -> str:
    """Make a new secret the tenant's; the one before it goes on counting for `overlap` seconds, older ones end."""
    tenant = _stored(resources, name)
    if tenant.jwks_url:
        raise InvalidRequest(f"Tenant {name!r} signs with the keys at {tenant.jwks_url}. Rotate them there.")
    text = check_tenant_secret(secret or generate_tenant_secret())
    until = int(resources.clock.time()) + overlap_seconds
    kept = tuple(old.model_copy(update={"until": until}) for old in tenant.secrets[:1] if overlap_seconds > 0)
    _replace(resources, tenant, secrets=(_sealed(resources, name, text), *kept))
    return text


def update_tenant(
    resources: Resources,
    name: str,
    *,
    origins: Iterable[str] | None = None,
    dialect: Dialect | None = None,
    tool_names: ToolNameVariant | None = None,
    limits: TenantLimits | None = None,
) -> Tenant:
    """What is not given stays, each limit for itself; `origins` are all of them, not only the new ones."""
    tenant = _stored(resources, name)
    wanted: dict[str, Any] = {"dialect": dialect, "tool_names": tool_names}
    wanted["limits"] = tenant.limits.model_copy(update=limits.model_dump(exclude_unset=True)) if limits else None
    wanted["origins"] = None if origins is None else check_tenant_origins(tuple(origins))
    return _replace(resources, tenant, **{field: value for field, value in wanted.items() if value is not None})


def get_tenant(resources: Resources, name: str) -> Tenant:
    """The tenant as this process last read it, at most a minute ago."""
    return resources.cache.get_or_load(("tenant", name), _CACHE_SECONDS, lambda: _stored(resources, name))


def find_tenant_by_issuer(resources: Resources, issuer: str) -> Tenant | None:
    def load() -> str | None:
        item = resources.tables.get_item(
            resources.settings.settings_table, _issuer_key(issuer), "tenant", consistent=False
        )
        return str(item["tenant"]) if item else None

    name = resources.cache.get_or_load(("issuer", issuer), _CACHE_SECONDS, load)
    tenant = get_tenant(resources, name) if name else None
    return tenant if tenant and tenant.issuer == issuer else None


def is_registered_origin(resources: Resources, origin: str) -> bool:
    """Whether any tenant's pages may call from there; all that can be asked before the caller is known."""
    wanted = normalize_origin(origin)
    if wanted is None:
        return False

    def load() -> bool | None:
        table = resources.settings.settings_table
        return bool(resources.tables.query_items(table, f"origin#{wanted}", limit=1, consistent=False)) or None

    return bool(resources.cache.get_or_load(("origin", wanted), _CACHE_SECONDS, load))


def _stored(resources: Resources, name: str) -> Tenant:
    item = resources.tables.get_item(resources.settings.settings_table, f"t#{name}", "tenant")
    if item is None:
        raise NotFound(f"There is no tenant {name!r}.")
    return Tenant.model_validate(item)


def _sealed(resources: Resources, tenant: str, secret: str) -> TenantSecret:
    key = new_id(8)
    sealed = resources.vault.seal_secret(secret, purpose="caller-secret", tenant=tenant, name=key)
    return TenantSecret(id=key, sealed=sealed, created_at=resources.clock.now_iso())


def _store_new(resources: Resources, tenant: Tenant) -> None:
    table = resources.settings.settings_table
    issuer: Item = {"pk": _issuer_key(tenant.issuer), "sk": "tenant", "v": 1}
    issuer |= {"tenant": tenant.name, "issuer": tenant.issuer}
    try:
        resources.tables.write_items(
            Put(table, _item(tenant), if_absent=True),
            Put(table, issuer, if_absent=True),
            *(_origin_put(table, tenant.name, origin) for origin in tenant.origins),
        )
    except TransactionCanceled as refused:
        if refused.reasons[0].condition_failed:
            raise Conflict(f"There is a tenant {tenant.name!r} already.") from refused
        owner = (refused.reasons[1].item or {}).get("tenant")
        raise Conflict(f"The issuer {tenant.issuer} belongs to tenant {owner!r}. Each tenant has its own.") from refused


def _replace(resources: Resources, old: Tenant, **changes: Any) -> Tenant:
    """Store the tenant anew, unless somebody else has changed it since it was read."""
    table = resources.settings.settings_table
    stamp = {"version": old.version + 1, "updated_at": resources.clock.now_iso()}
    new = old.model_copy(update=changes | stamp)
    gone, come = set(old.origins) - set(new.origins), set(new.origins) - set(old.origins)
    try:
        resources.tables.write_items(
            Put(table, _item(new), condition="version = :version", values={":version": old.version}),
            *(Delete(table, f"origin#{origin}", f"t#{new.name}") for origin in sorted(gone)),
            *(_origin_put(table, new.name, origin) for origin in sorted(come)),
        )
    except (ConditionFailed, TransactionCanceled) as refused:
        raise Conflict(f"Tenant {old.name!r} was changed by somebody else just now. Look, and try again.") from refused
    resources.cache.invalidate(("tenant", new.name))
    return new


def _item(tenant: Tenant) -> Item:
    return {"pk": f"t#{tenant.name}", "sk": "tenant", "v": 1, **tenant.model_dump(exclude_none=True)}


def _origin_put(table: str, tenant: str, origin: str) -> Put:
    return Put(table, {"pk": f"origin#{origin}", "sk": f"t#{tenant}", "v": 1, "tenant": tenant})


def _issuer_key(issuer: str) -> str:
    """Hashed, because a token nobody has checked yet may name anything."""
    return f"issuer#{hashlib.sha256(issuer.encode('utf-8', 'surrogatepass')).hexdigest()}"
