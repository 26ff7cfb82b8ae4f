"""Store each scope's default: the credential and model of a conversation that names none.

A default's row counts its versions, and stays when the default is removed. So a copy of a write that lands late finds
another version than the one it replaces (decision 0173).
"""

import contextlib
from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Item,
    ItemKey,
    Put,
    ReadItem,
    TransactionCanceled,
)
from fermata.aws.resources import Resources
from fermata.credentials.credential import credential_sort_key
from fermata.domain.agent_ids import SCOPES
from fermata.domain.base import DomainModel
from fermata.domain.caller import Caller
from fermata.domain.errors import IdRefused, InvalidRequest, ServiceUnavailable

MAX_CHANGE_ATTEMPTS = 5


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
        ServiceUnavailable: Other requests changed the default in each of MAX_CHANGE_ATTEMPTS attempts.
    """
    default = _make_default(resources, caller, scope, credential_id, model_id)
    for _ in range(MAX_CHANGE_ATTEMPTS):
        if _replace_default(resources, caller.tenant, default, _read_row(resources, caller.tenant, scope)):
            _audit(caller, default)
            return default
    raise ServiceUnavailable("Other requests are changing this default. Try again.", retry_after=1)


def set_default_if_absent(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> None:
    """Set a scope's default if it has none. Does nothing if another request set it, or deleted the credential."""
    default = _make_default(resources, caller, scope, credential_id, model_id)
    row = _read_row(resources, caller.tenant, scope)
    if row is not None and "credential_id" in row:
        return
    with contextlib.suppress(InvalidRequest):
        if _replace_default(resources, caller.tenant, default, row):
            _audit(caller, default, is_automatic=True)


def clear_default(resources: Resources, caller: Caller, scope: str) -> None:
    """Remove a scope's default, if it has one. A default that another request sets meanwhile stays.

    Args:
        caller: The user who removes it, for the audit log.
        scope: One of SCOPES.
    """
    row = _read_row(resources, caller.tenant, scope)
    if row is None or "credential_id" not in row:
        return
    removed = {"scope": scope, "updated_at": resources.clock.now_iso(), "updated_by": caller.user}
    put = _build_put(resources, caller.tenant, removed, row)
    try:
        resources.tables.write_items(put)
    except ConditionFailed as refused:
        if refused.item != put.item:  # else a copy of this write was faster
            return
    observability.log_audit_event("ai.default.cleared", tenant=caller.tenant, user=caller.user, scope=scope)


def build_default_key(resources: Resources, tenant: str, scope: str) -> ItemKey:
    """Return the key of the row with a scope's default.

    Args:
        tenant: The tenant's name.
        scope: One of SCOPES.
    """
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
    return ScopeDefault.model_validate(item) if item and "credential_id" in item else None


def get_defaults_view(resources: Resources, tenant: str) -> dict[str, Any]:
    """Return the defaults in their wire form, by scope; scopes without a default are absent."""
    items = resources.tables.query_items(
        resources.settings.settings_table, f"t#{tenant}", min_sk="default#", max_sk="default#~"
    )
    defaults = [item for item in items if "credential_id" in item]
    return {item["scope"]: {"credentialId": item["credential_id"], "modelId": item["model_id"]} for item in defaults}


def _make_default(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> ScopeDefault:
    now = resources.clock.now_iso()
    return ScopeDefault(
        scope=scope, credential_id=credential_id, model_id=model_id, updated_at=now, updated_by=caller.user
    )


def _read_row(resources: Resources, tenant: str, scope: str) -> Item | None:
    return resources.tables.get_item_by_key(build_default_key(resources, tenant, scope))


def _replace_default(resources: Resources, tenant: str, default: ScopeDefault, row: Item | None) -> bool:
    """Store a default in place of the row that was read, and return whether it is stored.

    Raises:
        InvalidRequest: The tenant has no such credential.
    """
    put = _build_put(resources, tenant, default.model_dump(), row)
    try:
        resources.tables.write_items(_check_credential_exists(resources, tenant, default.credential_id), put)
    except TransactionCanceled as error:
        if error.reasons[0].condition_failed:
            raise IdRefused("Credential not found. Pick an existing credential.") from error
        return error.reasons[1].item == put.item
    return True


def _build_put(resources: Resources, tenant: str, content: Item, row: Item | None) -> Put:
    """Return the write that stores the next version of a row. Rows from before decision 0173 have no version."""
    read_version = (row or {}).get("version", 0)
    key = {"pk": f"t#{tenant}", "sk": f"default#{content['scope']}", "v": 1}
    condition = "#version = :read" if read_version else "attribute_not_exists(#version)"
    return Put(
        resources.settings.settings_table,
        {**key, **content, "version": read_version + 1},
        condition=condition,
        values={":read": read_version} if read_version else {},
        names={"#version": "version"},
    )


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


def choose_model_of_default(resources: Resources, tenant: str, scope: str, model_id: str) -> tuple[str, str]:
    """Return the credential of a scope's default, and the model that a client names of it.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        scope: One of SCOPES.
        model_id: The provider's name of the model.

    Raises:
        InvalidRequest: The scope has no default.
    """
    default = read_default(resources, tenant, scope)
    if default is None:
        raise InvalidRequest(f"The scope '{scope}' has no default model. Set one, and name no model until then.")
    return default.credential_id, model_id
