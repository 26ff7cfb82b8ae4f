"""Store tenants in the settings table, rotate their secrets, and find them by issuer and origin (decision 0025).

    t#<tenant>          tenant       the record (wire/auth/tenant.py)
    issuer#<sha256>     tenant       the tenant of an issuer; an issuer belongs to one tenant only
    origin#<origin>     t#<tenant>   an origin whose pages may call for this tenant

A process caches what it reads for a minute. So a change takes effect everywhere within a minute.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import forget_subscription
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.workspace_plan import Subscription
from fermata.wire.auth.fetch_signing_keys import make_key_server_guard
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
from fermata.wire.auth.tenant_erasure_mark import check_tenant_is_not_erased

_CACHE_SECONDS = 60
DEFAULT_SECRET_OVERLAP_SECONDS = 86_400
"""How long the old secret stays valid after a rotation: as long as a token may be."""


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
    """Add a tenant.

    Args:
        name: Lower-case name, part of every key. It cannot be changed.
        issuer: The `iss` of its users' tokens, an https URL that no other tenant has.
        audience: The `aud` that its tokens must contain.
        secret: The secret of HS256 tokens. By default one is generated, unless there is a `jwks_url`.
        jwks_url: Where the public keys of RS256 and ES256 tokens are.
        origins: The origins whose pages may call the API.
        dialect: The stream that its clients understand.
        tool_names: The variant of the tool names that its clients know.
        limits: Limits of rounds, thinking and token lifetime; those of the deployment by default.

    Returns:
        The tenant, and its secret, which cannot be read again. There is no secret when the keys come from a JWKS URL.

    Raises:
        InvalidRequest: A value is not allowed.
        Conflict: The name or the issuer belongs to another tenant, or a tenant of this name is being erased.
    """
    check_tenant_is_not_erased(resources, name)
    is_local = resources.settings.fermata_stage == "local"
    if secret and jwks_url:
        raise InvalidRequest("Give a secret (HS256) or a JWKS URL (RS256, ES256), not both.")
    now = resources.clock.now_iso()
    text = None if jwks_url else check_tenant_secret(secret or generate_tenant_secret())
    tenant = Tenant(
        name=check_tenant_name(name),
        issuer=check_tenant_url("issuer", issuer, allow_http=is_local),
        audience=check_tenant_text("audience", audience),
        jwks_url=_check_jwks_url(resources, jwks_url) if jwks_url else None,
        secrets=(_seal_secret(resources, name, text),) if text else (),
        origins=check_tenant_origins(tuple(origins)),
        dialect=dialect,
        tool_names=tool_names,
        limits=limits or TenantLimits(),
        created_at=now,
        updated_at=now,
    )
    _store_new_tenant(resources, tenant)
    return tenant, text


def _check_jwks_url(resources: Resources, url: str) -> str:
    check_tenant_url("JWKS URL", url, allow_http=resources.settings.fermata_stage == "local")
    make_key_server_guard(resources).check_url(url)
    return url


def describe_tenant(resources: Resources, name: str) -> dict[str, Any]:
    """Return a tenant's record without its secrets.

    Raises:
        NotFound: There is no such tenant.
    """
    return _read_tenant(resources, name).to_operator_view()


def open_newest_secret(resources: Resources, name: str) -> str:
    """Return the secret that a tenant signs with. Only an operator's key permissions open it from outside.

    Raises:
        NotFound: There is no such tenant.
        InvalidRequest: The tenant signs with keys from a JWKS URL.
    """
    tenant = _read_tenant(resources, name)
    secrets = tenant.list_valid_secrets(resources.clock.time())
    if not secrets:
        raise InvalidRequest(f"Tenant {name!r} has no secret: it signs with the keys at {tenant.jwks_url}.")
    return resources.vault.open_secret(secrets[0].sealed, purpose="caller-secret", tenant=name, name=secrets[0].id)


def rotate_tenant_secret(
    resources: Resources, name: str, *, secret: str | None = None, overlap_seconds: int = DEFAULT_SECRET_OVERLAP_SECONDS
) -> str:
    """Give a tenant a new secret. The one before stays valid for `overlap_seconds`; older ones end at once.

    Args:
        secret: The new secret; generated by default.

    Returns:
        The new secret.

    Raises:
        InvalidRequest: The tenant signs with keys from a JWKS URL, or the secret is too weak.
        Conflict: The tenant has changed meanwhile.
    """
    tenant = _read_tenant(resources, name)
    if tenant.jwks_url:
        raise InvalidRequest(f"Tenant {name!r} signs with the keys at {tenant.jwks_url}. Rotate them there.")
    text = check_tenant_secret(secret or generate_tenant_secret())
    until = int(resources.clock.time()) + overlap_seconds
    old_secrets = tuple(old.model_copy(update={"until": until}) for old in tenant.secrets[:1] if overlap_seconds > 0)
    new_secrets = (_seal_secret(resources, name, text), *old_secrets)
    _replace_tenant(resources, tenant, tenant.model_copy(update={"secrets": new_secrets}))
    return text


def update_tenant(
    resources: Resources,
    name: str,
    *,
    origins: Iterable[str] | None = None,
    dialect: Dialect | None = None,
    tool_names: ToolNameVariant | None = None,
    limits: TenantLimits | None = None,
    subscription: Subscription | None = None,
) -> Tenant:
    """Change a tenant. A value that is None stays as it is, and so does a limit that is not set in `limits`.

    Args:
        origins: All origins, not only the new ones.
        subscription: Its plan, as a whole.

    Raises:
        Conflict: The tenant has changed meanwhile.
    """
    tenant = _read_tenant(resources, name)
    changes: dict[str, Any] = {"dialect": dialect, "tool_names": tool_names, "subscription": subscription}
    changes["limits"] = tenant.limits.model_copy(update=limits.model_dump(exclude_unset=True)) if limits else None
    changes["origins"] = None if origins is None else check_tenant_origins(tuple(origins))
    update = {field: value for field, value in changes.items() if value is not None}
    return _replace_tenant(resources, tenant, tenant.model_copy(update=update))


def get_tenant(resources: Resources, name: str) -> Tenant:
    """Return a tenant as this process last read it, at most a minute ago.

    Raises:
        NotFound: There is no such tenant.
    """
    return resources.cache.get_or_load(("tenant", name), _CACHE_SECONDS, lambda: _read_tenant(resources, name))


def find_tenant(resources: Resources, name: str) -> Tenant | None:
    """Return a tenant as `get_tenant` does, or None if there is no such tenant."""
    try:
        return get_tenant(resources, name)
    except NotFound:
        return None


def find_tenant_by_issuer(resources: Resources, issuer: str) -> Tenant | None:
    """Find the tenant whose callers' tokens this issuer signs."""

    def load() -> str | None:
        item = resources.tables.get_item(
            resources.settings.settings_table, _build_issuer_key(issuer), "tenant", consistent=False
        )
        return str(item["tenant"]) if item else None

    name = resources.cache.get_or_load(("issuer", issuer), _CACHE_SECONDS, load)
    tenant = find_tenant(resources, name) if name else None
    return tenant if tenant and tenant.issuer == issuer else None


def is_registered_origin(resources: Resources, origin: str) -> bool:
    """Return whether any tenant lists this origin. No more can be checked before the caller is known."""
    normalized = normalize_origin(origin)
    if normalized is None:
        return False

    def load() -> bool | None:
        table = resources.settings.settings_table
        return bool(resources.tables.query_items(table, f"origin#{normalized}", limit=1, consistent=False)) or None

    return bool(resources.cache.get_or_load(("origin", normalized), _CACHE_SECONDS, load))


def _read_tenant(resources: Resources, name: str) -> Tenant:
    item = resources.tables.get_item(resources.settings.settings_table, f"t#{name}", "tenant")
    if item is None:
        raise NotFound(f"There is no tenant {name!r}.")
    return Tenant.from_row(item)


def _seal_secret(resources: Resources, tenant: str, secret: str) -> TenantSecret:
    secret_id = new_id(8)
    sealed = resources.vault.seal_secret(secret, purpose="caller-secret", tenant=tenant, name=secret_id)
    return TenantSecret(id=secret_id, sealed=sealed, created_at=resources.clock.now_iso())


def _store_new_tenant(resources: Resources, tenant: Tenant) -> None:
    table = resources.settings.settings_table
    issuer: Item = {"pk": _build_issuer_key(tenant.issuer), "sk": "tenant", "v": 1}
    issuer |= {"tenant": tenant.name, "issuer": tenant.issuer}
    try:
        resources.tables.write_items(
            Put(table, _tenant_to_item(tenant), if_absent=True),
            Put(table, issuer, if_absent=True),
            *(_build_origin_put(table, tenant.name, origin) for origin in tenant.origins),
        )
    except TransactionCanceled as error:
        if error.reasons[0].condition_failed:
            raise Conflict(f"There is a tenant {tenant.name!r} already.") from error
        owner = (error.reasons[1].item or {}).get("tenant")
        raise Conflict(f"The issuer {tenant.issuer} belongs to tenant {owner!r}. Each tenant has its own.") from error


def _replace_tenant(resources: Resources, old: Tenant, new: Tenant) -> Tenant:
    """Replace a tenant's record on condition that it has not changed since it was read."""
    table = resources.settings.settings_table
    new = new.model_copy(update={"version": old.version + 1, "updated_at": resources.clock.now_iso()})
    removed_origins = set(old.origins) - set(new.origins)
    added_origins = set(new.origins) - set(old.origins)
    try:
        resources.tables.write_items(
            Put(table, _tenant_to_item(new), condition="version = :version", values={":version": old.version}),
            *(Delete(table, f"origin#{origin}", f"t#{new.name}") for origin in sorted(removed_origins)),
            *(_build_origin_put(table, new.name, origin) for origin in sorted(added_origins)),
        )
    except (ConditionFailed, TransactionCanceled) as error:
        if not _is_stored(error, new):
            raise Conflict(
                f"Tenant {old.name!r} has just been changed by another request. Check it, and try again."
            ) from error
    resources.cache.invalidate(("tenant", new.name))
    forget_subscription(resources, new.name)
    return new


def _is_stored(error: ConditionFailed | TransactionCanceled, tenant: Tenant) -> bool:
    """Return whether a refused write was the repetition of one that was accepted, but whose response was lost."""
    item = error.item if isinstance(error, ConditionFailed) else error.reasons[0].item
    return item is not None and Tenant.from_row(item) == tenant


def list_tenant_index_keys(item: Item) -> list[tuple[str, str]]:
    """Return the keys of the rows by which a stored tenant is found: of its issuer and of its origins."""
    tenant = Tenant.from_row(item)
    origins = [(f"origin#{origin}", f"t#{tenant.name}") for origin in tenant.origins]
    return [(_build_issuer_key(tenant.issuer), "tenant"), *origins]


def _tenant_to_item(tenant: Tenant) -> Item:
    return {"pk": f"t#{tenant.name}", "sk": "tenant", "v": 1, **tenant.model_dump(exclude_none=True)}


def _build_origin_put(table: str, tenant: str, origin: str) -> Put:
    return Put(table, {"pk": f"origin#{origin}", "sk": f"t#{tenant}", "v": 1, "tenant": tenant})


def _build_issuer_key(issuer: str) -> str:
    """Hash the issuer: a token that is not verified yet may contain any text."""
    return f"issuer#{hashlib.sha256(issuer.encode('utf-8', 'surrogatepass')).hexdigest()}"
