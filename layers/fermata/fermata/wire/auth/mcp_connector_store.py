"""Store MCP connectors in the settings table, and authenticate the assistants that present their tokens.

    t#<tenant>    connector#<id>    the connector (wire/auth/mcp_connector.py)

A process caches what it reads for a minute, so a connector that is revoked is refused everywhere within a minute.
"""

from collections.abc import Iterable

from fermata.aws import observability
from fermata.aws.api_key_rows import api_key_partition
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, Update
from fermata.aws.last_uses import read_last_uses, store_last_use
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from fermata.wire.auth.api_key import generate_api_key_id, generate_api_secret, hash_api_secret
from fermata.wire.auth.mcp_connector import ConnectorToken, ConnectorType, McpConnector, parse_connector_token

MAX_CONNECTORS = 50
"""Connectors of a tenant that are not revoked."""
_SORT_KEY_PREFIX = "connector#"
_NO_CONNECTOR = "You have no such connector."
_CACHE_SECONDS = 60
_LIVE_CACHE_SECONDS = 30
_RECORD_INTERVAL_SECONDS = 3_600
_REVOKED_SECONDS = 30 * 86_400


def create_connector(
    resources: Resources,
    caller: Caller,
    label: str,
    kind: ConnectorType,
    capabilities: Iterable[str],
    *,
    expires_in_seconds: int | None,
    space: str = "",
) -> tuple[McpConnector, str]:
    """Create a connector for the caller.

    Args:
        label: What people call it.
        kind: Whether the assistant runs on the user's machine.
        capabilities: What it may do: no more than the caller may, and nothing about keys or decisions.
        expires_in_seconds: Its lifetime; None for one that ends only when it is revoked.
        space: The content space that its agents work in. It is not looked up here.

    Returns:
        The connector, and its token, which cannot be read again.

    Raises:
        Forbidden: The caller lacks one of the capabilities.
        InvalidRequest: A capability is for people only, or the tenant has too many connectors.
    """
    granted = _check_grant(caller, frozenset(capabilities))
    connectors = _read_connectors(resources, caller.tenant)
    now = resources.clock.time()
    if sum(one.is_live(now) for one in connectors) >= MAX_CONNECTORS:
        raise InvalidRequest(f"A tenant has {MAX_CONNECTORS} connectors at most. Revoke those that are not used.")
    _delete_long_ended(resources, connectors, now)
    secret = generate_api_secret()
    connector = McpConnector(
        id=generate_api_key_id(),
        tenant=caller.tenant,
        created_by=caller.user,
        label=label,
        kind=kind,
        capabilities=granted,
        sha256=hash_api_secret(secret),
        created_at=iso_from_epoch(now),
        expires_at=None if expires_in_seconds is None else int(now) + expires_in_seconds,
        space=space,
    )
    resources.tables.write_items(Put(resources.settings.settings_table, _to_item(connector), if_absent=True))
    observability.log_audit_event(
        "ai.mcp_connector.created", tenant=caller.tenant, user=caller.user, connector=connector.id
    )
    return connector, str(ConnectorToken(connector.tenant, connector.id, secret))


def revoke_connector(resources: Resources, caller: Caller, connector_id: str) -> None:
    """Revoke a connector of the caller. Idempotent. It is refused everywhere within a minute.

    Args:
        caller: Whose connector it is.
        connector_id: Its id, as a client sent it.

    Raises:
        NotFound: The caller has no such connector.
    """
    update = Update(
        resources.settings.settings_table,
        f"t#{caller.tenant}",
        f"{_SORT_KEY_PREFIX}{connector_id[:64]}",
        "SET revoked_at = if_not_exists(revoked_at, :now)",
        values={":now": int(resources.clock.time()), ":user": caller.user},
        condition="created_by = :user",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        raise NotFound(_NO_CONNECTOR) from None
    resources.cache.invalidate(("mcp connector", caller.tenant, connector_id))
    observability.log_audit_event(
        "ai.mcp_connector.revoked", tenant=caller.tenant, user=caller.user, connector=connector_id
    )


def list_connector_views(resources: Resources, caller: Caller) -> list[dict[str, object]]:
    """Return the caller's connectors as clients see them, the newest first."""
    own = [one for one in _read_connectors(resources, caller.tenant) if one.created_by == caller.user]
    uses = read_last_uses(resources, api_key_partition(caller.tenant)) if own else {}
    ordered = sorted(own, key=lambda one: (one.created_at, one.id), reverse=True)
    return [one.to_view(uses.get(_SORT_KEY_PREFIX + one.id)) for one in ordered]


def has_live_connector(resources: Resources, tenant: str) -> bool:
    """Return whether an assistant of the tenant may call. A warm process asks twice a minute."""

    def look() -> str:
        now = resources.clock.time()
        return "yes" if any(one.is_live(now) for one in _read_connectors(resources, tenant)) else "no"

    return resources.cache.get_or_load(("has mcp connector", tenant), _LIVE_CACHE_SECONDS, look) == "yes"


def authenticate_connector(resources: Resources, text: str) -> McpConnector:
    """Authenticate the assistant that sent a token, and return its connector.

    Raises:
        Unauthorized: It is no token, or one that is revoked or has expired.
    """
    parts = parse_connector_token(text)
    if parts is None:
        raise Unauthorized("Unauthorized", reason="malformed")
    connector = resources.cache.get_or_load(
        ("mcp connector", parts.tenant, parts.id),
        _CACHE_SECONDS,
        lambda: _read_connector(resources, parts.tenant, parts.id),
    )
    if connector is None or not connector.is_valid(parts.secret, resources.clock.time()):
        raise Unauthorized("Unauthorized: the connector is unknown, revoked or expired.", reason="api_key")
    _record_use(resources, connector)
    return connector


def _check_grant(caller: Caller, capabilities: frozenset[str]) -> frozenset[str]:
    if people_only := sorted(capabilities & {Capability.KEYS, Capability.APPROVE}):
        raise InvalidRequest(f"A connector cannot have {', '.join(people_only)}: people do that.")
    if missing := sorted(capabilities - caller.capabilities):
        raise Forbidden(f"Forbidden: you lack what the connector is to be allowed: {', '.join(missing)}.")
    return capabilities


def _read_connectors(resources: Resources, tenant: str) -> list[McpConnector]:
    rows = resources.tables.query_items(
        resources.settings.settings_table, f"t#{tenant}", min_sk=_SORT_KEY_PREFIX, max_sk=f"{_SORT_KEY_PREFIX}~"
    )
    return [McpConnector.from_row(row) for row in rows]


def _read_connector(resources: Resources, tenant: str, connector_id: str) -> McpConnector | None:
    item = resources.tables.get_item(
        resources.settings.settings_table, f"t#{tenant}", f"{_SORT_KEY_PREFIX}{connector_id}"
    )
    return McpConnector.from_row(item) if item else None


def _record_use(resources: Resources, connector: McpConnector) -> None:
    """Record that the connector is used now, at most once an hour in each process. A write that fails is logged."""

    def write() -> bool:
        name = _SORT_KEY_PREFIX + connector.id
        store_last_use(resources, api_key_partition(connector.tenant), name, "mcp_connector")
        return True

    resources.cache.get_or_load(("mcp connector used", connector.tenant, connector.id), _RECORD_INTERVAL_SECONDS, write)


def _delete_long_ended(resources: Resources, connectors: Iterable[McpConnector], now: float) -> None:
    for one in connectors:
        ended_at = one.revoked_at if one.revoked_at is not None else one.expires_at
        if ended_at is not None and ended_at < now - _REVOKED_SECONDS:
            key = (f"t#{one.tenant}", f"{_SORT_KEY_PREFIX}{one.id}")
            resources.tables.write_items(Delete(resources.settings.settings_table, *key))


def _to_item(connector: McpConnector) -> Item:
    """Build the row. The set is stored as a sorted list, because DynamoDB stores no empty set."""
    fields = connector.model_dump(exclude_none=True) | {"capabilities": sorted(connector.capabilities)}
    return {"pk": f"t#{connector.tenant}", "sk": f"{_SORT_KEY_PREFIX}{connector.id}", "v": 1, **fields}
