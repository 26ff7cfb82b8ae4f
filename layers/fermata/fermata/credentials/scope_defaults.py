"""Each scope's default: the credential and model a conversation uses when it names none."""

from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb import ConditionCheck, ConditionFailed, Delete, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.credentials.credential import credential_sort_key
from fermata.domain.base import DomainModel
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest
from fermata.domain.scopes import SCOPES


class ScopeDefault(DomainModel):
    scope: str
    credential_id: str
    model_id: str
    updated_at: str
    updated_by: str


def check_scope(scope: str) -> str:
    if scope not in SCOPES:
        raise InvalidRequest(f"Unknown scope {scope[:40]!r}. The scopes are {', '.join(SCOPES)}.")
    return scope


def set_default(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> ScopeDefault:
    default = _made(resources, caller, scope, credential_id, model_id)
    try:
        resources.tables.write_items(
            _put(resources, caller.tenant, default), _existing(resources, caller.tenant, credential_id)
        )
    except TransactionCanceled as refused:
        raise InvalidRequest("Credential not found. Pick an existing credential.") from refused
    _audit(caller, default)
    return default


def set_default_if_absent(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> None:
    """Like `set_default`, but only where there is none; whoever came first, or removed the credential, is right."""
    default = _made(resources, caller, scope, credential_id, model_id)
    put = _put(resources, caller.tenant, default, absent=True)
    try:
        resources.tables.write_items(put, _existing(resources, caller.tenant, credential_id))
    except TransactionCanceled:
        return
    _audit(caller, default, auto=True)


def clear_default(resources: Resources, caller: Caller, scope: str) -> None:
    place = (f"t#{caller.tenant}", f"default#{scope}")
    try:
        resources.tables.write_items(
            Delete(resources.settings.settings_table, *place, condition="attribute_exists(pk)")
        )
    except ConditionFailed:
        return
    observability.log_audit_event("ai.default.cleared", tenant=caller.tenant, user=caller.user, scope=scope)


def read_default(resources: Resources, tenant: str, scope: str) -> ScopeDefault | None:
    item = resources.tables.get_item(resources.settings.settings_table, f"t#{tenant}", f"default#{scope}")
    return ScopeDefault.model_validate(item) if item else None


def get_defaults_view(resources: Resources, tenant: str) -> dict[str, Any]:
    """Only the scopes that have one."""
    items = resources.tables.query_items(
        resources.settings.settings_table, f"t#{tenant}", min_sk="default#", max_sk="default#~"
    )
    return {item["scope"]: {"credentialId": item["credential_id"], "modelId": item["model_id"]} for item in items}


def _made(resources: Resources, caller: Caller, scope: str, credential_id: str, model_id: str) -> ScopeDefault:
    now = resources.clock.now_iso()
    return ScopeDefault(
        scope=scope, credential_id=credential_id, model_id=model_id, updated_at=now, updated_by=caller.user
    )


def _put(resources: Resources, tenant: str, default: ScopeDefault, *, absent: bool = False) -> Put:
    item = {"pk": f"t#{tenant}", "sk": f"default#{default.scope}", "v": 1, **default.model_dump()}
    return Put(resources.settings.settings_table, item, if_absent=absent)


def _existing(resources: Resources, tenant: str, credential_id: str) -> ConditionCheck:
    return ConditionCheck(
        resources.settings.settings_table, f"t#{tenant}", credential_sort_key(credential_id), "attribute_exists(pk)"
    )


def _audit(caller: Caller, default: ScopeDefault, *, auto: bool = False) -> None:
    observability.log_audit_event(
        "ai.default.updated",
        tenant=caller.tenant,
        user=caller.user,
        scope=default.scope,
        credential=default.credential_id,
        model=default.model_id,
        auto=auto,
    )
