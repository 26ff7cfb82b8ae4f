"""Each scope's default: the credential and model a conversation uses when it names none."""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Check, ConditionFailed, Delete, Put, TransactionRefused
from fermata.credentials.credential import sort_key
from fermata.words.base import Word
from fermata.words.caller import Caller
from fermata.words.errors import Invalid
from fermata.words.scopes import SCOPES


class Default(Word):
    scope: str
    credential_id: str
    model_id: str
    updated_at: str
    updated_by: str


def known_scope(scope: str) -> str:
    if scope not in SCOPES:
        raise Invalid(f"Unknown scope {scope[:40]!r}. The scopes are {', '.join(SCOPES)}.")
    return scope


def set_default(desk: Desk, caller: Caller, scope: str, credential_id: str, model_id: str) -> Default:
    default = _made(desk, caller, scope, credential_id, model_id)
    try:
        desk.tables.write(_put(desk, caller.tenant, default), _existing(desk, caller.tenant, credential_id))
    except TransactionRefused as refused:
        raise Invalid("Credential not found. Pick an existing credential.") from refused
    _audit(caller, default)
    return default


def fill(desk: Desk, caller: Caller, scope: str, credential_id: str, model_id: str) -> None:
    """Like `set_default`, but only where there is none; whoever came first, or removed the credential, is right."""
    default = _made(desk, caller, scope, credential_id, model_id)
    put = _put(desk, caller.tenant, default, absent=True)
    try:
        desk.tables.write(put, _existing(desk, caller.tenant, credential_id))
    except TransactionRefused:
        return
    _audit(caller, default, auto=True)


def clear_default(desk: Desk, caller: Caller, scope: str) -> None:
    place = (f"t#{caller.tenant}", f"default#{scope}")
    try:
        desk.tables.write(Delete(desk.settings.settings_table, *place, condition="attribute_exists(pk)"))
    except ConditionFailed:
        return
    signals.audit("ai.default.cleared", tenant=caller.tenant, user=caller.user, scope=scope)


def read(desk: Desk, tenant: str, scope: str) -> Default | None:
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", f"default#{scope}")
    return Default.model_validate(item) if item else None


def defaults_view(desk: Desk, tenant: str) -> dict[str, Any]:
    """Only the scopes that have one."""
    items = desk.tables.query(desk.settings.settings_table, f"t#{tenant}", low="default#", high="default#~")
    return {item["scope"]: {"credentialId": item["credential_id"], "modelId": item["model_id"]} for item in items}


def _made(desk: Desk, caller: Caller, scope: str, credential_id: str, model_id: str) -> Default:
    now = desk.clock.instant()
    return Default(scope=scope, credential_id=credential_id, model_id=model_id, updated_at=now, updated_by=caller.user)


def _put(desk: Desk, tenant: str, default: Default, *, absent: bool = False) -> Put:
    item = {"pk": f"t#{tenant}", "sk": f"default#{default.scope}", "v": 1, **default.model_dump()}
    return Put(desk.settings.settings_table, item, absent=absent)


def _existing(desk: Desk, tenant: str, credential_id: str) -> Check:
    return Check(desk.settings.settings_table, f"t#{tenant}", sort_key(credential_id), "attribute_exists(pk)")


def _audit(caller: Caller, default: Default, *, auto: bool = False) -> None:
    signals.audit(
        "ai.default.updated",
        tenant=caller.tenant,
        user=caller.user,
        scope=default.scope,
        credential=default.credential_id,
        model=default.model_id,
        auto=auto,
    )
