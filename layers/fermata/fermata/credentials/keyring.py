"""Credentials: entered, listed, changed, removed, and opened for a provider request."""

from collections.abc import Iterable

from fermata.aws import signals
from fermata.aws.clock import may_be_id, new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Check, Delete, Item, Put, TransactionRefused, Write
from fermata.aws.vault import CannotOpen
from fermata.credentials import addresses
from fermata.credentials.credential import AuthMode, Credential, label_key, listed_key, sort_key
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from fermata.words.scopes import SCOPES

REMEMBERED = 300
MOST_KEYS = 100
CHANGED = "This credential was changed by somebody else just now. Look, and try again."
NOT_FOUND = "Credential not found or no longer accessible."


def create(
    desk: Desk,
    caller: Caller,
    provider_id: str,
    auth_mode: AuthMode,
    label: str,
    api_key: str | None,
    base_url: str | None = None,
) -> Credential:
    """A key for a provider everybody reaches at the same address, or an address of one's own and perhaps a key."""
    _check_form(desk, provider_id, auth_mode, api_key, base_url)
    identity = new_id()
    credential = Credential(
        id=identity,
        tenant=caller.tenant,
        user=caller.user,
        provider_id=provider_id,
        auth_mode=auth_mode,
        display_label=label,
        base_url=base_url,
        sealed=_sealed(desk, caller.tenant, identity, api_key) if api_key else None,
        key_id=desk.settings.key_id if api_key else None,
        created_at=desk.clock.instant(),
    )
    table = desk.settings.settings_table
    _commit(desk, credential, Put(table, _guard(credential), absent=True), Put(table, credential.item(), absent=True))
    _audit("created", credential)
    return credential


def of_caller(desk: Desk, caller: Caller) -> list[Credential]:
    """The caller's own, newest first."""
    table = desk.settings.settings_table
    items = desk.tables.query(table, f"t#{caller.tenant}", low="credential#", high="credential#~")
    own = [Credential.model_validate(item) for item in items if item["user"] == caller.user]
    return sorted(own, key=lambda credential: credential.created_at, reverse=True)


def own(desk: Desk, caller: Caller, credential_id: str) -> Credential:
    credential = read(desk, caller.tenant, credential_id)
    if credential is None or credential.user != caller.user:
        raise NotFound(NOT_FOUND)
    return credential


def change(
    desk: Desk,
    caller: Caller,
    credential_id: str,
    label: str | None,
    api_key: str | None,
    base_url: str | None = None,
) -> Credential:
    """A new key or address makes a new version; turns that run go on with it within five minutes (open_key).

    An empty key takes the key away, where there is an address.
    """
    old = own(desk, caller, credential_id)
    new = old.model_copy(update={"display_label": label or old.display_label})
    if base_url is not None and base_url != old.base_url:
        _check_move(desk, old, api_key, base_url)
        new = new.model_copy(update={"base_url": base_url, "version": old.version + 1})
    if api_key is not None:
        new = _with_key(desk, new, api_key).model_copy(update={"version": old.version + 1})
    table = desk.settings.settings_table
    writes: list[Write] = [Put(table, _guard(new)), _unchanged_put(table, old, new)]
    if new.display_label != old.display_label:
        guard = label_key(old.user, old.provider_id, old.display_label)
        writes = [Put(table, _guard(new), absent=True), writes[1], Delete(table, f"t#{old.tenant}", guard)]
    _commit(desk, new, *writes)
    _audit("updated", new)
    return new


def remove(desk: Desk, caller: Caller, credential_id: str) -> None:
    """Not while a scope's default points at it."""
    old = own(desk, caller, credential_id)
    table, pk = desk.settings.settings_table, f"t#{old.tenant}"
    unused = "attribute_not_exists(pk) OR credential_id <> :id"
    checks = [Check(table, pk, f"default#{scope}", unused, {":id": old.id}) for scope in SCOPES]
    guard = label_key(old.user, old.provider_id, old.display_label)
    # One that was renamed meanwhile has its label in another guard.
    delete = Delete(table, pk, sort_key(old.id), "display_label = :label", {":label": old.display_label})
    try:
        desk.tables.write(*checks, delete, Delete(table, pk, guard), Delete(table, pk, listed_key(old.id)))
    except TransactionRefused as refused:
        used = [scope for scope, reason in zip(SCOPES, refused.reasons, strict=False) if reason.failed]
        if not used:
            own(desk, caller, credential_id)
            raise Conflict(CHANGED) from refused
        text = f"This credential is the default of {', '.join(used)}. Choose another default there first."
        raise Conflict(text) from refused
    _audit("deleted", old)


def read(desk: Desk, tenant: str, credential_id: str) -> Credential | None:
    known = may_be_id(credential_id)
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", sort_key(credential_id)) if known else None
    return Credential.model_validate(item) if item else None


def existing(desk: Desk, tenant: str, credential_ids: Iterable[str]) -> frozenset[str]:
    """Those of them that have not been removed; asks nobody about none, and once about a hundred."""
    keys = [(f"t#{tenant}", sort_key(identity)) for identity in sorted(set(credential_ids)) if may_be_id(identity)]
    parts = [keys[start : start + MOST_KEYS] for start in range(0, len(keys), MOST_KEYS)]
    found = [desk.tables.batch_get(desk.settings.settings_table, part) for part in parts]
    return frozenset(item["id"] for items in found for item in items.values())


def opened(desk: Desk, tenant: str, credential_id: str, version: int) -> tuple[Credential, str]:
    """A credential and its key in plain text ("" when it has none); a warm process asks AWS nothing.

    There is one key, the newest: a turn that was started with an earlier version uses the new one as soon as this
    process reads the row again, so that an old key can be revoked five minutes after it was replaced. `version`
    keeps a turn started after the change from ever getting the old one.
    """

    def load() -> Credential | None:
        return read(desk, tenant, credential_id)

    credential = desk.memory.recall(("credential", tenant, credential_id, version), REMEMBERED, load)
    if credential is None:
        raise NotFound(NOT_FOUND)
    if credential.sealed is None:
        return credential, ""
    if not credential.is_current(desk.settings.key_id):
        raise sealed_elsewhere(credential)
    try:
        key = desk.vault.open(credential.sealed, purpose="provider-key", tenant=tenant, name=credential_id)
    except CannotOpen as error:
        raise sealed_elsewhere(credential) from error
    return credential, key


def open_key(desk: Desk, tenant: str, credential_id: str, version: int) -> str:
    return opened(desk, tenant, credential_id, version)[1]


def sealed_elsewhere(credential: Credential) -> Conflict:
    return Conflict(f"The key of credential {credential.display_label!r} can no longer be opened. Enter it again.")


def _check_form(desk: Desk, provider: str, auth_mode: AuthMode, api_key: str | None, base_url: str | None) -> None:
    from fermata.drivers.driver import driver_for  # here, because drivers load httpx, which most requests do without

    driver_for(provider)
    if auth_mode == "baseUrl":
        if base_url is None:
            raise Invalid("Send the server's address as 'baseUrl'.")
        addresses.guard(desk.settings).check(base_url)
        return
    if addresses.home(desk.settings, provider) is None:
        raise Invalid(f"{provider} is a server of your own: send authMode 'baseUrl' and its address as 'baseUrl'.")
    if not api_key:
        raise Invalid("Send the provider's key as 'apiKey'.")
    if base_url is not None:
        raise Invalid(
            "With authMode 'apiKey' there is no 'baseUrl'; send authMode 'baseUrl' for an address of your own."
        )


def _check_move(desk: Desk, old: Credential, api_key: str | None, base_url: str) -> None:
    """A stored key never follows to another host: whoever may change the address could read it there."""
    if old.auth_mode == "apiKey":
        raise Invalid("This credential has no address of its own. Enter another one, with authMode 'baseUrl'.")
    addresses.guard(desk.settings).check(base_url)
    if old.sealed is not None and api_key is None and not addresses.is_same_place(old.base_url, base_url):
        raise Invalid("The new address is on another host. Send its key along as 'apiKey' (empty when it needs none).")


def _with_key(desk: Desk, credential: Credential, api_key: str) -> Credential:
    if api_key:
        sealed = _sealed(desk, credential.tenant, credential.id, api_key)
        return credential.model_copy(update={"sealed": sealed, "key_id": desk.settings.key_id})
    if credential.auth_mode == "apiKey":
        raise Invalid("'apiKey' must not be empty: this credential is nothing but its key.")
    return credential.model_copy(update={"sealed": None, "key_id": None})


def _sealed(desk: Desk, tenant: str, credential_id: str, api_key: str) -> bytes:
    return desk.vault.seal(api_key, purpose="provider-key", tenant=tenant, name=credential_id)


def _guard(credential: Credential) -> Item:
    key = label_key(credential.user, credential.provider_id, credential.display_label)
    return {"pk": f"t#{credential.tenant}", "sk": key, "v": 1, "credential": credential.id}


def _unchanged_put(table: str, old: Credential, new: Credential) -> Put:
    held = "version = :version AND display_label = :label"
    return Put(table, new.item(), condition=held, values={":version": old.version, ":label": old.display_label})


def _commit(desk: Desk, credential: Credential, *writes: Write) -> None:
    """The first write is the one that keeps the label free of doubles."""
    try:
        desk.tables.write(*writes)
    except TransactionRefused as refused:
        if refused.reasons[0].failed:
            label, provider = credential.display_label, credential.provider_id
            raise Conflict(f"You have a credential {label!r} for {provider} already.") from refused
        raise Conflict(CHANGED) from refused


def _audit(what: str, credential: Credential) -> None:
    signals.audit(
        f"ai.credential.{what}",
        tenant=credential.tenant,
        user=credential.user,
        credential=credential.id,
        provider=credential.provider_id,
        auth_mode=credential.auth_mode,
        version=credential.version,
    )
