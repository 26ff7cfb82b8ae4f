"""Credentials: entered, listed, changed, removed, and opened for a provider request."""

from collections.abc import Iterable

from fermata.aws import observability
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.dynamodb import ConditionCheck, Delete, Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.credentials import provider_urls
from fermata.credentials.credential import (
    AuthMode,
    Credential,
    credential_sort_key,
    label_sort_key,
    model_list_sort_key,
)
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.scopes import SCOPES
from fermata.drivers.registry import get_provider

CREDENTIAL_CACHE_SECONDS = 300
CREDENTIAL_BATCH_SIZE = 100
CREDENTIAL_CHANGED = "This credential was changed by somebody else just now. Look, and try again."
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
    """A key for a provider everybody reaches at the same address, or an address of one's own and perhaps a key."""
    _check_form(resources, provider_id, auth_mode, api_key, base_url)
    identity = new_id()
    credential = Credential(
        id=identity,
        tenant=caller.tenant,
        user=caller.user,
        provider_id=provider_id,
        auth_mode=auth_mode,
        display_label=label,
        base_url=base_url,
        sealed=_seal_key(resources, caller.tenant, identity, api_key) if api_key else None,
        key_id=resources.settings.key_id if api_key else None,
        created_at=resources.clock.now_iso(),
    )
    table = resources.settings.settings_table
    _commit(
        resources,
        credential,
        Put(table, _label_guard(credential), if_absent=True),
        Put(table, credential.to_row(), if_absent=True),
    )
    _audit("created", credential)
    return credential


def list_credentials(resources: Resources, caller: Caller) -> list[Credential]:
    """The caller's own, newest first."""
    table = resources.settings.settings_table
    items = resources.tables.query_items(table, f"t#{caller.tenant}", min_sk="credential#", max_sk="credential#~")
    own = [Credential.model_validate(item) for item in items if item["user"] == caller.user]
    return sorted(own, key=lambda credential: credential.created_at, reverse=True)


def get_own_credential(resources: Resources, caller: Caller, credential_id: str) -> Credential:
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
    """A new key or address makes a new version; turns that run go on with it within five minutes (open_key).

    An empty key takes the key away, where there is an address.
    """
    old = get_own_credential(resources, caller, credential_id)
    new = old.model_copy(update={"display_label": label or old.display_label})
    if base_url is not None and base_url != old.base_url:
        _check_move(resources, old, api_key, base_url)
        new = new.model_copy(update={"base_url": base_url, "version": old.version + 1})
    if api_key is not None:
        new = _with_key(resources, new, api_key).model_copy(update={"version": old.version + 1})
    table = resources.settings.settings_table
    writes: list[Write] = [Put(table, _label_guard(new)), _unchanged_put(table, old, new)]
    if new.display_label != old.display_label:
        guard = label_sort_key(old.user, old.provider_id, old.display_label)
        writes = [Put(table, _label_guard(new), if_absent=True), writes[1], Delete(table, f"t#{old.tenant}", guard)]
    _commit(resources, new, *writes)
    _audit("updated", new)
    return new


def delete_credential(resources: Resources, caller: Caller, credential_id: str) -> None:
    """Not while a scope's default points at it."""
    old = get_own_credential(resources, caller, credential_id)
    table, pk = resources.settings.settings_table, f"t#{old.tenant}"
    unused = "attribute_not_exists(pk) OR credential_id <> :id"
    checks = [ConditionCheck(table, pk, f"default#{scope}", unused, {":id": old.id}) for scope in SCOPES]
    guard = label_sort_key(old.user, old.provider_id, old.display_label)
    # One that was renamed meanwhile has its label in another guard.
    delete = Delete(table, pk, credential_sort_key(old.id), "display_label = :label", {":label": old.display_label})
    try:
        resources.tables.write_items(
            *checks, delete, Delete(table, pk, guard), Delete(table, pk, model_list_sort_key(old.id))
        )
    except TransactionCanceled as refused:
        used = [scope for scope, reason in zip(SCOPES, refused.reasons, strict=False) if reason.condition_failed]
        if not used:
            get_own_credential(resources, caller, credential_id)
            raise Conflict(CREDENTIAL_CHANGED) from refused
        text = f"This credential is the default of {', '.join(used)}. Choose another default there first."
        raise Conflict(text) from refused
    _audit("deleted", old)


def read_credential(resources: Resources, tenant: str, credential_id: str) -> Credential | None:
    known = is_valid_id(credential_id)
    item = (
        resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", credential_sort_key(credential_id))
        if known
        else None
    )
    return Credential.model_validate(item) if item else None


def find_existing_ids(resources: Resources, tenant: str, credential_ids: Iterable[str]) -> frozenset[str]:
    """Those of them that have not been removed; asks nobody about none, and once about a hundred."""
    keys = [
        (f"t#{tenant}", credential_sort_key(identity))
        for identity in sorted(set(credential_ids))
        if is_valid_id(identity)
    ]
    parts = [keys[start : start + CREDENTIAL_BATCH_SIZE] for start in range(0, len(keys), CREDENTIAL_BATCH_SIZE)]
    found = [resources.tables.batch_get_items(resources.settings.settings_table, part) for part in parts]
    return frozenset(item["id"] for items in found for item in items.values())


def open_credential(resources: Resources, tenant: str, credential_id: str, version: int) -> tuple[Credential, str]:
    """A credential and its key in plain text ("" when it has none); a warm process asks AWS nothing.

    There is one key, the newest: a turn that was started with an earlier version uses the new one as soon as this
    process reads the row again, so that an old key can be revoked five minutes after it was replaced. `version`
    keeps a turn started after the change from ever getting the old one.
    """

    def load() -> Credential | None:
        return read_credential(resources, tenant, credential_id)

    credential = resources.cache.get_or_load(
        ("credential", tenant, credential_id, version), CREDENTIAL_CACHE_SECONDS, load
    )
    if credential is None:
        raise NotFound(CREDENTIAL_NOT_FOUND)
    if credential.sealed is None:
        return credential, ""
    if not credential.is_current(resources.settings.key_id):
        raise unreadable_key_error(credential)
    try:
        key = resources.vault.open_secret(credential.sealed, purpose="provider-key", tenant=tenant, name=credential_id)
    except SecretUndecryptable as error:
        raise unreadable_key_error(credential) from error
    return credential, key


def open_api_key(resources: Resources, tenant: str, credential_id: str, version: int) -> str:
    return open_credential(resources, tenant, credential_id, version)[1]


def unreadable_key_error(credential: Credential) -> Conflict:
    return Conflict(f"The key of credential {credential.display_label!r} can no longer be opened. Enter it again.")


def _check_form(
    resources: Resources, provider: str, auth_mode: AuthMode, api_key: str | None, base_url: str | None
) -> None:
    get_provider(provider)
    if auth_mode == "baseUrl":
        if base_url is None:
            raise InvalidRequest("Send the server's address as 'baseUrl'.")
        provider_urls.make_url_guard(resources.settings).check_url_and_host(base_url)
        return
    if provider_urls.get_default_url(resources.settings, provider) is None:
        raise InvalidRequest(
            f"{provider} is a server of your own: send authMode 'baseUrl' and its address as 'baseUrl'."
        )
    if not api_key:
        raise InvalidRequest("Send the provider's key as 'apiKey'.")
    if base_url is not None:
        raise InvalidRequest(
            "With authMode 'apiKey' there is no 'baseUrl'; send authMode 'baseUrl' for an address of your own."
        )


def _check_move(resources: Resources, old: Credential, api_key: str | None, base_url: str) -> None:
    """A stored key never follows to another host: whoever may change the address could read it there."""
    if old.auth_mode == "apiKey":
        raise InvalidRequest("This credential has no address of its own. Enter another one, with authMode 'baseUrl'.")
    provider_urls.make_url_guard(resources.settings).check_url_and_host(base_url)
    if old.sealed is not None and api_key is None and not provider_urls.is_same_origin(old.base_url, base_url):
        raise InvalidRequest(
            "The new address is on another host. Send its key along as 'apiKey' (empty when it needs none)."
        )


def _with_key(resources: Resources, credential: Credential, api_key: str) -> Credential:
    if api_key:
        sealed = _seal_key(resources, credential.tenant, credential.id, api_key)
        return credential.model_copy(update={"sealed": sealed, "key_id": resources.settings.key_id})
    if credential.auth_mode == "apiKey":
        raise InvalidRequest("'apiKey' must not be empty: this credential is nothing but its key.")
    return credential.model_copy(update={"sealed": None, "key_id": None})


def _seal_key(resources: Resources, tenant: str, credential_id: str, api_key: str) -> bytes:
    return resources.vault.seal_secret(api_key, purpose="provider-key", tenant=tenant, name=credential_id)


def _label_guard(credential: Credential) -> Item:
    key = label_sort_key(credential.user, credential.provider_id, credential.display_label)
    return {"pk": f"t#{credential.tenant}", "sk": key, "v": 1, "credential": credential.id}


def _unchanged_put(table: str, old: Credential, new: Credential) -> Put:
    held = "version = :version AND display_label = :label"
    return Put(table, new.to_row(), condition=held, values={":version": old.version, ":label": old.display_label})


def _commit(resources: Resources, credential: Credential, *writes: Write) -> None:
    """The first write is the one that keeps the label free of doubles."""
    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled as refused:
        if refused.reasons[0].condition_failed:
            label, provider = credential.display_label, credential.provider_id
            raise Conflict(f"You have a credential {label!r} for {provider} already.") from refused
        raise Conflict(CREDENTIAL_CHANGED) from refused


def _audit(what: str, credential: Credential) -> None:
    observability.log_audit_event(
        f"ai.credential.{what}",
        tenant=credential.tenant,
        user=credential.user,
        credential=credential.id,
        provider=credential.provider_id,
        auth_mode=credential.auth_mode,
        version=credential.version,
    )
