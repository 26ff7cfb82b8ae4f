"""Store API keys in the settings table: create, rotate, revoke and list them (decision 0256).

t#<tenant>#apikeys    <id>    the key (wire/auth/api_key.py)
"""

from collections.abc import Iterable

from fermata.aws.api_key_rows import api_key_partition
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, Update
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription
from fermata.domain.agent_ids import SCOPES, is_scope
from fermata.domain.caller import Caller, Capability
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import ApiError, Conflict, Forbidden, InvalidRequest, NotFound
from fermata.domain.plan_refusals import check_plan_quota
from fermata.domain.workspace_plan import PlanQuota
from fermata.wire.auth.api_key import (
    TENANT_WIDE_CAPABILITIES,
    ApiKeySecret,
    ApiKeyText,
    ServerApiKey,
    generate_api_key_id,
    generate_api_secret,
    hash_api_secret,
    sort_api_keys,
)

MAX_API_KEYS = 100
"""Keys of a tenant that are not revoked."""
API_SECRET_OVERLAP_SECONDS = 86_400
_NO_KEY = "The tenant has no such API key."
_REVOKED_SECONDS = 30 * 86_400
"""How long the row of a revoked key is kept, so that a late copy of a write finds it."""


def create_api_key(
    resources: Resources,
    caller: Caller,
    label: str,
    capabilities: Iterable[str],
    *,
    scopes: Iterable[str] | None = None,
    expires_in_seconds: int | None = None,
) -> tuple[ServerApiKey, str]:
    """Create a key of the caller's tenant.

    Args:
        label: What people call it.
        capabilities: What it may do: no more than the caller may, and nothing about keys.
        scopes: The scopes it is for; None for all.
        expires_in_seconds: Its lifetime; None for one that ends only when it is revoked.

    Returns:
        The key, and its text, which cannot be read again.

    Raises:
        Forbidden: The caller lacks one of the capabilities.
        InvalidRequest: There is no such scope, a capability concerns all scopes, or the tenant has too many keys.
    """
    granted = _check_grant(caller, frozenset(capabilities))
    key_scopes = None if scopes is None else _check_scopes(frozenset(scopes), granted)
    return store_new_key(resources, caller, label, granted, key_scopes, expires_in_seconds)


def store_new_key(
    resources: Resources,
    caller: Caller,
    label: str,
    granted: frozenset[str],
    scopes: frozenset[str] | None,
    expires_in_seconds: int | None,
    rules: ConversationKeyRules | None = None,
) -> tuple[ServerApiKey, str]:
    """Store a new key and return it with its text. Its rights were checked before.

    Args:
        caller: Who creates it.
        label: What people call it.
        granted: Its capabilities.
        scopes: The scopes it is for; None for all.
        expires_in_seconds: Its lifetime; None for one that ends only when it is revoked.
        rules: Of a key of the Conversation API.

    Raises:
        InvalidRequest: The tenant has too many keys.
        PlanUpgradeRequired: It has as many keys of the Conversation API as its plan has.
    """
    keys = list_api_keys(resources, caller.tenant)
    _check_count(resources, caller.tenant, keys, is_conversation=rules is not None, added=1)
    now = resources.clock.time()
    _delete_long_revoked(resources, keys, now)
    secret = generate_api_secret()
    key = ServerApiKey(
        id=generate_api_key_id(),
        tenant=caller.tenant,
        label=label,
        capabilities=granted,
        scopes=scopes,
        secrets=(ApiKeySecret(sha256=hash_api_secret(secret), created_at=iso_from_epoch(now)),),
        created_by=caller.user,
        created_at=iso_from_epoch(now),
        expires_at=None if expires_in_seconds is None else int(now) + expires_in_seconds,
        conversation=rules,
    )
    resources.tables.write_items(Put(resources.settings.settings_table, _api_key_to_item(key), if_absent=True))
    _refuse_key_beyond_limit(resources, key)
    return key, str(ApiKeyText(key.mark, key.tenant, key.id, secret))


def rotate_api_key(
    resources: Resources, caller: Caller, key_id: str, *, overlap_seconds: int = API_SECRET_OVERLAP_SECONDS
) -> tuple[ServerApiKey, str]:
    """Give a key a new secret. The one before stays valid for a while; older ones end at once.

    Args:
        caller: Who rotates it. The key may do no more than the caller.
        key_id: The id of the key, as a client sent it.
        overlap_seconds: How long the secret before stays valid.

    Returns:
        The key, and its new text, which cannot be read again.

    Raises:
        NotFound: The caller's tenant has no such key, or it is revoked.
        Forbidden: The key may do what the caller may not.
        Conflict: The key was rotated meanwhile.
    """
    key = read_live_key(resources, caller.tenant, key_id)
    if key.conversation is not None:
        require_content_manager(caller)
    else:
        _check_grant(caller, key.capabilities)
    now = resources.clock.time()
    secret = generate_api_secret()
    newest = ApiKeySecret(sha256=hash_api_secret(secret), created_at=iso_from_epoch(now))
    old = key.secrets[0].model_copy(update={"until": int(now) + overlap_seconds})
    rotated = key.model_copy(update={"secrets": (newest, old) if overlap_seconds > 0 else (newest,)})
    return replace_key(resources, key, rotated), str(ApiKeyText(key.mark, key.tenant, key_id, secret))


def revoke_api_key(resources: Resources, tenant: str, key_id: str) -> None:
    """Revoke a key. Idempotent. It is refused everywhere within a minute.

    The row's version is not looked at, so that no rotation at the same time can keep the key valid (decision 0396).

    Args:
        tenant: The tenant's name.
        key_id: The id of the key, as a client sent it.

    Raises:
        NotFound: The tenant has no such key.
    """
    update = Update(
        resources.settings.settings_table,
        api_key_partition(tenant),
        key_id,
        "SET revoked_at = if_not_exists(revoked_at, :now), version = version + :one",
        values={":now": int(resources.clock.time()), ":one": 1},
        condition="attribute_exists(pk)",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        raise NotFound(_NO_KEY) from None
    resources.cache.invalidate(("api key", tenant, key_id))


def list_api_keys(resources: Resources, tenant: str) -> list[ServerApiKey]:
    """Return all keys of a tenant, the newest first, also those that were revoked within a month."""
    items = resources.tables.query_items(resources.settings.settings_table, api_key_partition(tenant))
    return sort_api_keys(map(ServerApiKey.from_row, items))


def require_content_manager(caller: Caller) -> None:
    """Raise Forbidden unless a caller may manage content, as keys of the Conversation API may."""
    if not caller.has_capability(Capability.CONTENT):
        raise Forbidden(f"Forbidden: keys of the Conversation API need {Capability.CONTENT}.")


def _check_grant(caller: Caller, capabilities: frozenset[str]) -> frozenset[str]:
    if Capability.KEYS in capabilities:
        raise InvalidRequest(f"A key cannot have the capability {Capability.KEYS}: keys are managed by people.")
    if missing := sorted(capabilities - caller.capabilities):
        raise Forbidden(f"Forbidden: you lack what the key is to be allowed: {', '.join(missing)}.")
    return capabilities


def _check_scopes(scopes: frozenset[str], capabilities: frozenset[str]) -> frozenset[str]:
    if tenant_wide := sorted(capabilities & TENANT_WIDE_CAPABILITIES):
        raise InvalidRequest(f"A key for some scopes cannot have {', '.join(tenant_wide)}, which concerns all of them.")
    if unknown := sorted(scope for scope in scopes if not is_scope(scope)):
        raise InvalidRequest(f"There is no scope {', '.join(unknown)}. Scopes are {', '.join(SCOPES)}.")
    return scopes


def _refuse_key_beyond_limit(resources: Resources, key: ServerApiKey) -> None:
    """Delete a key that was stored beside others that were created at the same time, if they are too many.

    Raises:
        InvalidRequest: The tenant has more than MAX_API_KEYS.
        PlanUpgradeRequired: It has more keys of the Conversation API than its plan has.
    """
    keys = list_api_keys(resources, key.tenant)
    try:
        _check_count(resources, key.tenant, keys, is_conversation=key.conversation is not None)
    except ApiError:
        condition, values = "version = :version", {":version": key.version}
        table = resources.settings.settings_table
        resources.tables.write_items(Delete(table, api_key_partition(key.tenant), key.id, condition, values))
        raise


def _check_count(
    resources: Resources, tenant: str, keys: Iterable[ServerApiKey], *, is_conversation: bool, added: int = 0
) -> None:
    """Check that a tenant may have so many keys. The plan limits those of the Conversation API only.

    Raises:
        InvalidRequest: The tenant has too many keys.
        PlanLocked: Nobody pays for it.
        PlanUpgradeRequired: It has more keys of the Conversation API than its plan has.
    """
    live = [key for key in keys if key.revoked_at is None]
    if len(live) + added > MAX_API_KEYS:
        raise InvalidRequest(f"A tenant has {MAX_API_KEYS} keys at most. Revoke those that are not used.")
    if is_conversation:
        wanted = count_conversation_keys(live) + added
        check_plan_quota(read_subscription(resources, tenant), PlanQuota.API_KEYS, wanted, resources.clock.time())


def count_conversation_keys(keys: Iterable[ServerApiKey]) -> int:
    """Return how many keys are of the Conversation API and not revoked."""
    return sum(key.revoked_at is None and key.conversation is not None for key in keys)


def _delete_long_revoked(resources: Resources, keys: Iterable[ServerApiKey], now: float) -> None:
    for key in keys:
        if key.is_revoked_before(now - _REVOKED_SECONDS):
            resources.tables.write_items(
                Delete(resources.settings.settings_table, api_key_partition(key.tenant), key.id)
            )


def read_api_key(resources: Resources, tenant: str, key_id: str) -> ServerApiKey | None:
    """Return a key as it is stored now, also one that is revoked."""
    item = resources.tables.get_item(resources.settings.settings_table, api_key_partition(tenant), key_id)
    return ServerApiKey.from_row(item) if item else None


def read_live_key(resources: Resources, tenant: str, key_id: str) -> ServerApiKey:
    """Return a key that is not revoked.

    Raises:
        NotFound: The tenant has none under this id.
    """
    key = read_api_key(resources, tenant, key_id)
    if key is None or key.revoked_at is not None:
        raise NotFound(_NO_KEY)
    return key


def replace_key(resources: Resources, old: ServerApiKey, new: ServerApiKey) -> ServerApiKey:
    """Replace a key's row on condition that it has not changed since it was read.

    Raises:
        NotFound: It was revoked meanwhile.
        Conflict: It was rotated meanwhile.
    """
    new = new.model_copy(update={"version": old.version + 1})
    put = Put(
        resources.settings.settings_table,
        _api_key_to_item(new),
        condition="version = :version",
        values={":version": old.version},
    )
    try:
        resources.tables.write_items(put)
    except ConditionFailed as refused:
        stored = ServerApiKey.from_row(refused.item) if refused.item else None
        if stored is None or stored.revoked_at is not None:
            raise NotFound(_NO_KEY) from refused
        if stored != new:
            raise Conflict("This key has just been changed by another request. Look, and try again.") from refused
    resources.cache.invalidate(("api key", new.tenant, new.id))
    return new


def _api_key_to_item(key: ServerApiKey) -> Item:
    """Build the row. Sets are stored as sorted lists, because DynamoDB stores no empty set."""
    fields = key.model_dump(exclude_none=True) | {"capabilities": sorted(key.capabilities)}
    if key.scopes is not None:
        fields["scopes"] = sorted(key.scopes)
    return {"pk": api_key_partition(key.tenant), "sk": key.id, "v": 1, **fields}
