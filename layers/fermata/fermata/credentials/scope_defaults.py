"""Store each scope's default: the credential and model of a conversation that names none."""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    ItemKey,
    Put,
    ReadItem,
    TransactionCanceled,
)
from fermata.aws.resources import Resources
from fermata.credentials.credential import credential_sort_key
from fermata.domain.base import DomainModel
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest
from fermata.domain.scopes import SCOPES


class ScopeDefault(DomainModel):
    """The default of one scope, as its row stores it."""

    scope: str
    credential_id: str
    model_id: str
    updated_at: str
    updated_by: str


def check_scope(scope: str) -> str:
    """Return the scope.

    Raises:
        InvalidRequest: It is none of SCOPES.
    """
    if scope not in SCOPES:
        raise InvalidRequest(f"Unknown scope {scope[:40]!r}. The scopes are {', '.join(SCOPES)}.")
    return scope


def set_default(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> ScopeDefault:
    """Set a scope's default for all users of the tenant, in place of the one before.

    Args:
        scope: One of SCOPES; see `check_scope`.
        credential_id: A credential of any user of the tenant.
        model_id: The provider's name of the model. It is not looked up here.

    Raises:
        InvalidRequest: The tenant has no such credential.
    """
    default = _make_default(resources, caller, scope, credential_id, model_id)
    try:
        resources.tables.write_items(
            _put_default(resources, caller.tenant, default),
            _check_credential_exists(resources, caller.tenant, credential_id),
        )
    except TransactionCanceled as error:
        raise InvalidRequest("Credential not found. Pick an existing credential.") from error
    _audit(caller, default)
    return default


def set_default_if_absent(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> None:
    """Set a scope's default if it has none. Does nothing if another request set it, or deleted the credential."""
    default = _make_default(resources, caller, scope, credential_id, model_id)
    put = _put_default(resources, caller.tenant, default, if_absent=True)
    try:
        resources.tables.write_items(put, _check_credential_exists(resources, caller.tenant, credential_id))
    except TransactionCanceled:
        return
    _audit(caller, default, is_automatic=True)


def clear_default(resources: Resources, caller: Caller, scope: str) -> None:
    """Remove a scope's default, if it has one. A default that another request sets meanwhile stays."""
    default = read_default(resources, caller.tenant, scope)
    if default is None:
        return
    key = (f"t#{caller.tenant}", f"default#{scope}")
    # A copy of this write that lands late must not remove a later default (decision 0143).
    values = {":credential": default.credential_id, ":at": default.updated_at}
    condition = "credential_id = :credential AND updated_at = :at"
    delete = Delete(resources.settings.settings_table, *key, condition, values)
    try:
        resources.tables.write_items(delete)
    except ConditionFailed:
        return
    observability.log_audit_event("ai.default.cleared", tenant=caller.tenant, user=caller.user, scope=scope)


def build_default_key(resources: Resources, tenant: str, scope: str) -> ItemKey:
    """Return the key of the row with a scope's default."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", f"default#{scope}")


def read_default(
    resources: Resources, tenant: str, scope: str, read_item: ReadItem | None = None
) -> ScopeDefault | None:
    """Return a scope's default, or None if it has none.

    Args:
        tenant: The tenant's name.
        scope: One of SCOPES.
        read_item: Reads the row; by default from its table.
    """
    item = (read_item or resources.tables.get_item_by_key)(build_default_key(resources, tenant, scope))
    return ScopeDefault.model_validate(item) if item else None


def get_defaults_view(resources: Resources, tenant: str) -> dict[str, Any]:
    """Return the defaults in their wire form, by scope; scopes without a default are absent."""
    items = resources.tables.query_items(
        resources.settings.settings_table, f"t#{tenant}", min_sk="default#", max_sk="default#~"
    )
    return {item["scope"]: {"credentialId": item["credential_id"], "modelId": item["model_id"]} for item in items}


def _make_default(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> ScopeDefault:
    now = resources.clock.now_iso()
    return ScopeDefault(
        scope=scope, credential_id=credential_id, model_id=model_id, updated_at=now, updated_by=caller.user
    )


def _put_default(resources: Resources, tenant: str, default: ScopeDefault, *, if_absent: bool = False) -> Put:
    item = {"pk": f"t#{tenant}", "sk": f"default#{default.scope}", "v": 1, **default.model_dump()}
    return Put(resources.settings.settings_table, item, if_absent=if_absent)


def _check_credential_exists(resources: Resources, tenant: str, credential_id: str) -> ConditionCheck:
    return ConditionCheck(
        resources.settings.settings_table, f"t#{tenant}", credential_sort_key(credential_id), "attribute_exists(pk)"
    )


def _audit(caller: Caller, default: ScopeDefault, *, is_automatic: bool = False) -> None:
    observability.log_audit_event(
        "ai.default.updated",
        tenant=caller.tenant,
        user=caller.user,
        scope=default.scope,
        credential=default.credential_id,
        model=default.model_id,
        auto=is_automatic,
    )
