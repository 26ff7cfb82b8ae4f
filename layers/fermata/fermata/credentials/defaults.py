"""Each scope's default: the credential and model a conversation uses when it names none."""

from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Check, Delete, Put, TransactionRefused
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
    now = desk.clock.instant()
    default = Default(
        scope=scope, credential_id=credential_id, model_id=model_id, updated_at=now, updated_by=caller.user
    )
    table, pk = desk.settings.settings_table, f"t#{caller.tenant}"
    try:
        desk.tables.write(
            Put(table, {"pk": pk, "sk": f"default#{scope}", "v": 1, **default.model_dump()}),
            Check(table, pk, sort_key(credential_id), "attribute_exists(pk)"),
        )
    except TransactionRefused as refused:
        raise Invalid("Credential not found. Pick an existing credential.") from refused
    return default


def clear_default(desk: Desk, caller: Caller, scope: str) -> None:
    desk.tables.write(Delete(desk.settings.settings_table, f"t#{caller.tenant}", f"default#{scope}"))


def read(desk: Desk, tenant: str, scope: str) -> Default | None:
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", f"default#{scope}")
    return Default.model_validate(item) if item else None


def defaults_view(desk: Desk, tenant: str) -> dict[str, Any]:
    """Only the scopes that have one."""
    items = desk.tables.query(desk.settings.settings_table, f"t#{tenant}", low="default#", high="default#~")
    return {item["scope"]: {"credentialId": item["credential_id"], "modelId": item["model_id"]} for item in items}
