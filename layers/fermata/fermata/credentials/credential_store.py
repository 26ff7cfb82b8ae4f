"""Create, list, update and delete credentials (decision 0042). `open_credential.py` reads them for turns."""

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    Delete,
    Put,
    TransactionCanceled,
    Write,
)
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import require_plan_feature
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
from fermata.credentials.open_credential import CREDENTIAL_NOT_FOUND, read_credential
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.workspace_plan import PlanFeature

MAX_CREATION_ATTEMPTS = 3
CHANGED_BY_ANOTHER_REQUEST = "This credential has just been changed by another request. Check it, and try again."


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
