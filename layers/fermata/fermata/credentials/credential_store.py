"""Create, list, update, delete and open credentials (decision 0042)."""

from collections.abc import Iterable

from fermata.aws import observability
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    Delete,
    ItemKey,
    Put,
    ReadItem,
    TransactionCanceled,
    Write,
)
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.credentials.credential import (
    AuthMode,
    Credential,
    credential_sort_key,
    label_sort_key,
    model_list_sort_key,
)
from fermata.credentials.credential_input_checks import check_new_credential, check_url_change
from fermata.credentials.credential_writes import (
    CredentialChanged,
    build_credential_put,
    build_label_row,
    build_removal_check,
    build_removal_put,
    build_unchanged_condition,
    read_removal_count,
)
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

CREDENTIAL_CACHE_SECONDS = 300
CREDENTIAL_BATCH_SIZE = 100
MAX_CREATION_ATTEMPTS = 3
CHANGED_BY_ANOTHER_REQUEST = "This credential has just been changed by another request. Check it, and try again."
CREDENTIAL_NOT_FOUND = "Credential not found or no longer accessible."


def create_credential(
    resources: Resources,
    caller: Caller,
    provider_id: str,
    auth_mode: AuthMode,
    label: str,
    api_key: str | None,
    base_url: str | None = None,
) -> Credential:
    """Store a credential: an API key for the provider's default URL, or a base URL with or without a key.

    Args:
        provider_id: A name of PROVIDER_MODULES.
        auth_mode: Whether the credential is a key alone, or a URL of the user's own.
        label: The display name, unique among the user's credentials of that provider.
        api_key: In plain text; it is sealed before it is stored, and never returned.
        base_url: The URL below which the provider's paths are; only with the `auth_mode` for it.

    Raises:
        InvalidRequest: The provider is unknown, or the form cannot work: a missing key, a private address.
        Conflict: The user has a credential of that provider with the same label.
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: Its plan has no keys of its own.
    """
    _require_own_keys(resources, caller)
    check_new_credential(resources.settings, provider_id, auth_mode, api_key, base_url)
    credential = Credential(
        id=new_id(),
        tenant=caller.tenant,
        user=caller.user,
        provider_id=provider_id,
        auth_mode=auth_mode,
        display_label=label,
        base_url=base_url,
        created_at=resources.clock.now_iso(),
    )
    if api_key:
        credential = _with_key(resources, credential, api_key)
    _store_new(resources, credential)
    _audit("created", credential)
    return credential


def _require_own_keys(resources: Resources, caller: Caller) -> None:
    """Check that the plan has keys of providers that people enter. Servers enter those that the plan includes."""
    # Imported here: rounds open credentials, and enter none.
    from fermata.aws.workspace_subscription import require_plan_feature
    from fermata.domain.workspace_plan import PlanFeature

    if not caller.api_key:
        require_plan_feature(resources, caller.tenant, PlanFeature.OWN_MODEL_KEY)


def list_credentials(resources: Resources, caller: Caller) -> list[Credential]:
    """Return the caller's own credentials, the newest first."""
    table = resources.settings.settings_table
    items = resources.tables.query_items(table, f"t#{caller.tenant}", min_sk="credential#", max_sk="credential#~")
    own = [Credential.from_stored(item) for item in items if item["user"] == caller.user]
    return sorted(own, key=lambda credential: credential.created_at, reverse=True)


def get_own_credential(resources: Resources, caller: Caller, credential_id: str) -> Credential:
    """Return a credential that the caller entered.

    Args:
        caller: The user who asks.
        credential_id: The id, as a client sent it.

    Raises:
        NotFound: The credential does not exist, or belongs to another user of the tenant.
    """
    credential = read_credential(resources, caller.tenant, credential_id)
    if credential is None or credential.user != caller.user:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    return credential


def update_credential(
    resources: Resources,
    caller: Caller,
    credential_id: str,
    label: str | None,
    api_key: str | None,
    base_url: str | None = None,
) -> Credential:
    """Change what is not None. A new key or URL makes a new version (`open_credential`).

    Args:
        credential_id: A credential that the caller entered.
        label: The new display name.
        api_key: The new key in plain text. An empty one removes the key, if the credential has its own URL.
        base_url: The new URL. Another host needs its key entered again.

    Raises:
        InvalidRequest: The new form cannot work, or the key would follow to another host.
        NotFound: The caller has no such credential.
        Conflict: The new label is taken, or another request changed the credential meanwhile.
    """
    old = get_own_credential(resources, caller, credential_id)
    if api_key or base_url:
        _require_own_keys(resources, caller)
    new = old.model_copy(update={"display_label": label or old.display_label})
    if base_url is not None and base_url != old.base_url:
        check_url_change(resources.settings, old, api_key, base_url)
        new = new.model_copy(update={"base_url": base_url, "version": old.version + 1})
    if api_key is not None:
        new = _with_key(resources, new, api_key).model_copy(update={"version": old.version + 1})
    if new == old:
        return old
    table = resources.settings.settings_table
    new = new.model_copy(update={"revision": old.revision + 1})
    writes: list[Write] = [Put(table, build_label_row(new)), build_credential_put(table, old, new)]
    if new.display_label != old.display_label:
        old_label = label_sort_key(old.user, old.provider_id, old.display_label)
        writes[0] = Put(table, build_label_row(new), if_absent=True)
        writes.append(Delete(table, f"t#{old.tenant}", old_label))
    _commit(resources, new, *writes)
    _audit("updated", new)
    return new


def delete_credential(resources: Resources, caller: Caller, credential_id: str) -> None:
    """Delete a credential, unless it is the default of a scope.

    Args:
        caller: The user who entered it.
        credential_id: The id, as a client sent it.

    Raises:
        NotFound: The caller has no such credential.
        Conflict: It is a default, or another request changed it meanwhile.
    """
    old = get_own_credential(resources, caller, credential_id)
    table, pk = resources.settings.settings_table, f"t#{old.tenant}"
    is_unused = "attribute_not_exists(credential_id) OR credential_id <> :id"
    checks = [ConditionCheck(table, pk, f"default#{scope}", is_unused, {":id": old.id}) for scope in SCOPES]
    # A credential that was renamed meanwhile has another label row.
    deletes = [
        Delete(table, pk, credential_sort_key(old.id), *build_unchanged_condition(old)),
        Delete(table, pk, label_sort_key(old.user, old.provider_id, old.display_label)),
        Delete(table, pk, model_list_sort_key(old.id)),
    ]
    removal = build_removal_put(resources, old.tenant, read_removal_count(resources, old.tenant))
    try:
        resources.tables.write_items(*checks, *deletes, removal)
    except TransactionCanceled as error:
        scopes = [scope for scope, reason in zip(SCOPES, error.reasons, strict=False) if reason.condition_failed]
        if not scopes:
            get_own_credential(resources, caller, credential_id)
            raise Conflict(CHANGED_BY_ANOTHER_REQUEST) from error
        message = f"This credential is the default of {', '.join(scopes)}. Choose another default there first."
        raise Conflict(message) from error
    _audit("deleted", old)


def build_credential_key(resources: Resources, tenant: str, credential_id: str) -> ItemKey:
    """Return the key of a credential's row.

    Args:
        tenant: The tenant's name.
        credential_id: A well-formed id.
    """
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", credential_sort_key(credential_id))


def read_credential(
    resources: Resources, tenant: str, credential_id: str, read_item: ReadItem | None = None
) -> Credential | None:
    """Return a credential of any user of the tenant; None without one.

    Args:
        resources: The settings table.
        tenant: The tenant's name.
        credential_id: The id, as a client sent it.
        read_item: Reads the row; by default with a request.
    """
    if not is_valid_id(credential_id):
        return None
    item = (read_item or resources.tables.get_item_by_key)(build_credential_key(resources, tenant, credential_id))
    return Credential.from_stored(item) if item else None


def find_existing_ids(resources: Resources, tenant: str, credential_ids: Iterable[str]) -> frozenset[str]:
    """Return the ids whose credentials exist. Costs one read for each hundred ids, and none for no ids.

    Args:
        tenant: The tenant's name.
        credential_ids: In any order; malformed and repeated ones are not looked up.
    """
    valid_ids = sorted(credential_id for credential_id in set(credential_ids) if is_valid_id(credential_id))
    keys = [(f"t#{tenant}", credential_sort_key(credential_id)) for credential_id in valid_ids]
    batches = [keys[start : start + CREDENTIAL_BATCH_SIZE] for start in range(0, len(keys), CREDENTIAL_BATCH_SIZE)]
    items = [resources.tables.batch_get_items(resources.settings.settings_table, batch) for batch in batches]
    return frozenset(item["id"] for batch in items for item in batch.values())


def open_credential(resources: Resources, tenant: str, credential_id: str, version: int) -> tuple[Credential, str]:
    """Return a credential and its API key in plain text ("" if it has none). A warm process makes no AWS call.

    Only the newest key is stored. A turn that started with an earlier version gets the new key as soon as this process
    reads the row again, so an old key can be revoked five minutes after it was replaced.

    Args:
        tenant: The tenant's name.
        credential_id: A credential of any user of the tenant.
        version: The version that the turn started with. It is part of the cache key, so that a turn that starts after
            a change never gets the old key.

    Raises:
        NotFound: The credential was deleted.
        Conflict: Its key can no longer be decrypted.
    """
    key = ("credential", tenant, credential_id, version)
    credential = resources.cache.get_or_load(
        key, CREDENTIAL_CACHE_SECONDS, lambda: read_credential(resources, tenant, credential_id)
    )
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if credential.sealed_key is None:
        return credential, ""
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    try:
        api_key = resources.vault.open_secret(
            credential.sealed_key, purpose="provider-key", tenant=tenant, name=credential_id
        )
    except SecretUndecryptable as error:
        raise unreadable_key_error(credential) from error
    return credential, api_key


def open_api_key(resources: Resources, tenant: str, credential_id: str, version: int) -> str:
    """Return a credential's API key in plain text. Arguments and errors are those of `open_credential`."""
    return open_credential(resources, tenant, credential_id, version)[1]


def unreadable_key_error(credential: Credential) -> Conflict:
    """Describe a credential whose API key was encrypted with another KMS key."""
    return Conflict(f"The key of credential {credential.display_label!r} can no longer be opened. Enter it again.")


def _store_new(resources: Resources, credential: Credential) -> None:
    """Store a new credential, unless one was removed since: then this may be a late copy of the write that made it."""
    table = resources.settings.settings_table
    rows = [Put(table, row, if_absent=True) for row in (build_label_row(credential), credential.to_row())]
    for attempt in range(1, MAX_CREATION_ATTEMPTS + 1):
        removal_count = read_removal_count(resources, credential.tenant)
        try:
            _commit(resources, credential, *rows, build_removal_check(resources, credential.tenant, removal_count))
            return
        except CredentialChanged:
            if attempt == MAX_CREATION_ATTEMPTS:
                raise


def _with_key(resources: Resources, credential: Credential, api_key: str) -> Credential:
    if api_key:
        sealed = _seal_key(resources, credential.tenant, credential.id, api_key)
        return credential.model_copy(update={"sealed_key": sealed, "kms_key_id": resources.settings.key_id})
    if credential.auth_mode == "apiKey":
        raise InvalidRequest("'apiKey' must not be empty: this credential consists of its key only.")
    return credential.model_copy(update={"sealed_key": None, "kms_key_id": None})


def _seal_key(resources: Resources, tenant: str, credential_id: str, api_key: str) -> bytes:
    return resources.vault.seal_secret(api_key, purpose="provider-key", tenant=tenant, name=credential_id)


def _commit(resources: Resources, credential: Credential, *writes: Write) -> None:
    """Write the rows. The first write is the label row, which fails if the label is taken."""
    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled as error:
        if error.reasons[0].condition_failed:
            label, provider = credential.display_label, credential.provider_id
            raise Conflict(f"You have a credential {label!r} for {provider} already.") from error
        raise CredentialChanged(CHANGED_BY_ANOTHER_REQUEST) from error


def _audit(action: str, credential: Credential) -> None:
    observability.log_audit_event(
        f"ai.credential.{action}",
        tenant=credential.tenant,
        user=credential.user,
        credential=credential.id,
        provider=credential.provider_id,
        auth_mode=credential.auth_mode,
        version=credential.version,
    )
