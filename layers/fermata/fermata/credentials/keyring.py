"""Credentials: entered, listed, changed, removed, and opened for a provider request."""

from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Check, Delete, Item, Put, TransactionRefused, Write
from fermata.aws.vault import CannotOpen
from fermata.credentials.credential import AuthMode, Credential, label_key, sort_key
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Invalid, NotFound
from fermata.words.scopes import SCOPES

SERVED = {("anthropic", "apiKey")}
REMEMBERED = 300
NOT_FOUND = "Credential not found or no longer accessible."


def create(
    desk: Desk, caller: Caller, provider_id: str, auth_mode: AuthMode, label: str, api_key: str | None
) -> Credential:
    if (provider_id, auth_mode) not in SERVED:
        served = ", ".join(f"{provider} with {mode}" for provider, mode in sorted(SERVED))
        raise Invalid(f"Provider {provider_id!r} with {auth_mode} is not served. Served: {served}.")
    if api_key is None:
        raise Invalid("Send the provider's key as 'apiKey'.")
    credential = Credential(
        id=(identity := new_id()),
        tenant=caller.tenant,
        user=caller.user,
        provider_id=provider_id,
        auth_mode=auth_mode,
        display_label=label,
        sealed=_sealed(desk, caller.tenant, identity, api_key),
        key_id=desk.settings.key_id,
        created_at=desk.clock.instant(),
    )
    table = desk.settings.settings_table
    _commit(desk, credential, Put(table, _guard(credential), absent=True), Put(table, credential.item(), absent=True))
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


def change(desk: Desk, caller: Caller, credential_id: str, label: str | None, api_key: str | None) -> Credential:
    """A new key makes a new version; turns that run go on with it within five minutes (open_key)."""
    old = own(desk, caller, credential_id)
    new = old.model_copy(update={"display_label": label or old.display_label})
    if api_key is not None:
        sealed = _sealed(desk, old.tenant, old.id, api_key)
        update = {"sealed": sealed, "key_id": desk.settings.key_id, "version": old.version + 1}
        new = new.model_copy(update=update)
    table = desk.settings.settings_table
    writes: list[Write] = [Put(table, _guard(new)), _unchanged_put(table, old, new)]
    if new.display_label != old.display_label:
        guard = label_key(old.user, old.provider_id, old.display_label)
        writes = [Put(table, _guard(new), absent=True), writes[1], Delete(table, f"t#{old.tenant}", guard)]
    _commit(desk, new, *writes)
    return new


def remove(desk: Desk, caller: Caller, credential_id: str) -> None:
    """Not while a scope's default points at it."""
    old = own(desk, caller, credential_id)
    table, pk = desk.settings.settings_table, f"t#{old.tenant}"
    unused = "attribute_not_exists(pk) OR credential_id <> :id"
    checks = [Check(table, pk, f"default#{scope}", unused, {":id": old.id}) for scope in SCOPES]
    guard = label_key(old.user, old.provider_id, old.display_label)
    try:
        desk.tables.write(*checks, Delete(table, pk, sort_key(old.id)), Delete(table, pk, guard))
    except TransactionRefused as refused:
        used = [scope for scope, reason in zip(SCOPES, refused.reasons, strict=False) if reason.failed]
        text = f"This credential is the default of {', '.join(used)}. Choose another default there first."
        raise Conflict(text) from refused


def read(desk: Desk, tenant: str, credential_id: str) -> Credential | None:
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", sort_key(credential_id))
    return Credential.model_validate(item) if item else None


def open_key(desk: Desk, tenant: str, credential_id: str, version: int) -> str:
    """The provider's key, in plain text; a warm process asks AWS nothing.

    There is one key, the newest: a turn that was started with an earlier version uses the new one as soon as this
    process reads the row again, so that an old key can be revoked five minutes after it was replaced. `version`
    keeps a turn started after the change from ever getting the old one.
    """

    def load() -> Credential | None:
        return read(desk, tenant, credential_id)

    credential = desk.memory.recall(("credential", tenant, credential_id, version), REMEMBERED, load)
    if credential is None:
        raise NotFound(NOT_FOUND)
    try:
        return desk.vault.open(credential.sealed, purpose="provider-key", tenant=tenant, name=credential_id)
    except CannotOpen as error:
        raise sealed_elsewhere(credential) from error


def sealed_elsewhere(credential: Credential) -> Conflict:
    return Conflict(f"The key of credential {credential.display_label!r} can no longer be opened. Enter it again.")


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
        raise Conflict("This credential was changed by somebody else just now. Look, and try again.") from refused
