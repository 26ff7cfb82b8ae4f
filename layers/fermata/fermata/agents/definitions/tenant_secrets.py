"""Keep the secrets of a tenant that its agents name: `{_secret: NAME}` in a connection, an endpoint or a header.

    t#<tenant>   secret#<NAME>   the sealed value, who has entered it and when; for a day, that it was removed

A secret is opened where it is used, and is part of no definition, turn, log or response (decision 0359).
"""

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from fermata.agents.definitions.resolve_operators import SECRET_OPERATOR, read_operator
from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    Item,
    ItemKey,
    Put,
    TransactionCanceled,
)
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

MAX_SECRETS = 100
MAX_VALUE_BYTES = 4096
"""KMS seals no more."""
NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
_SECRET_NAME = re.compile(NAME_PATTERN)
_SORT_KEY_PREFIX = "secret#"
_ROW_CACHE_SECONDS = 60
_REMOVED_SECONDS = 86_400
"""How long it is known that a secret was removed: longer than any copy of the write that has entered it is under way
(decision 0324)."""
_CHANGED_MESSAGE = "The secret has just been changed by another request. Enter it again."


def list_secret_views(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the names of a tenant's secrets, by name, with who has entered each and when. Never a value."""
    return [
        {"name": row["name"], "updatedAt": row["updated_at"], "updatedBy": row["updated_by"]}
        for row in _read_rows(resources, tenant)
    ]


def set_secret(resources: Resources, caller: Caller, name: str, value: str) -> dict[str, Any]:
    """Enter a secret, or replace it. Turns that run use the new value within a few minutes.

    Args:
        caller: The administrator.
        name: The name that definitions use.
        value: The value. It cannot be read again.

    Returns:
        The view of the secret.

    Raises:
        InvalidRequest: The name or the value is not allowed, or the tenant has too many secrets.
        Conflict: Another request has just changed it.
    """
    if not _SECRET_NAME.fullmatch(name):
        raise InvalidRequest("The name of a secret begins with a letter, and has letters, digits, - and _ only.")
    if not value or len(value.encode()) > MAX_VALUE_BYTES:
        raise InvalidRequest(f"A secret has 1 to {MAX_VALUE_BYTES} bytes.")
    before = resources.tables.get_item_by_key(build_secret_key(resources, caller.tenant, name))
    if not _is_entered(before):
        _make_room(resources, caller.tenant, name)
    item = _make_row(resources, caller, name, value, before)
    table = resources.settings.settings_table
    is_new = before is None
    put = Put(
        table,
        item,
        if_absent=is_new,
        condition="" if is_new else "version = :before",
        values={} if before is None else {":before": before["version"]},
    )
    tenant_exists = ConditionCheck(table, f"t#{caller.tenant}", "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(put, tenant_exists)
    except TransactionCanceled as error:
        if error.reasons[0].item != item:  # else the answer to an earlier attempt was lost
            raise Conflict(_CHANGED_MESSAGE) from error
    _forget(resources, caller.tenant, name)
    observability.log_audit_event("ai.secret.set", tenant=caller.tenant, user=caller.user, secret=name)
    return {"name": name, "updatedAt": item["updated_at"], "updatedBy": item["updated_by"]}


def remove_secret(resources: Resources, caller: Caller, name: str) -> None:
    """Remove a secret. What still names it fails from then on.

    Args:
        caller: The administrator.
        name: The secret's name.

    Raises:
        NotFound: The tenant has no such secret.
        Conflict: Another request has just changed it.
    """
    key = build_secret_key(resources, caller.tenant, name)
    row = resources.tables.get_item_by_key(key)
    if row is None or not _is_entered(row):
        raise NotFound(f"There is no secret {name[:64]!r}.")
    removed: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "name": name, "version": row["version"] + 1}
    removed["removedUntil"] = int(resources.clock.time()) + _REMOVED_SECONDS
    put = Put(key.table, removed, condition="version = :read", values={":read": row["version"]})
    try:
        resources.tables.write_items(put)
    except ConditionFailed as error:
        if error.item != removed:  # else a copy of this write was faster
            raise Conflict(_CHANGED_MESSAGE) from error
    _forget(resources, caller.tenant, name)
    observability.log_audit_event("ai.secret.removed", tenant=caller.tenant, user=caller.user, secret=name)


def open_tenant_secret(resources: Resources, tenant: str, name: str) -> str:
    """Return a secret in plain text. A warm process makes no AWS call.

    Args:
        resources: The settings table and the vault.
        tenant: The tenant's name.
        name: The secret's name.

    Raises:
        Conflict: The tenant has no such secret, or it can no longer be opened.
    """
    key = build_secret_key(resources, tenant, name)
    row = resources.cache.get_or_load(
        ("tenant secret", tenant, name), _ROW_CACHE_SECONDS, lambda: resources.tables.get_item_by_key(key)
    )
    if row is None or not _is_entered(row):
        raise Conflict(f"The secret {name!r} is not entered. An administrator enters it.")
    try:
        return resources.vault.open_secret(
            bytes(row["sealed"]), purpose="tool-secret", tenant=tenant, name=_make_seal_name(name)
        )
    except SecretUndecryptable as error:
        raise Conflict(f"The secret {name!r} can no longer be opened. An administrator enters it again.") from error


def resolve_secrets(resources: Resources, tenant: str, value: Any) -> Any:
    """Return a value in which each reference `{_secret: NAME}` is replaced by the secret. Never store or log it.

    Args:
        resources: The settings table and the vault.
        tenant: The tenant's name.
        value: JSON.

    Raises:
        Conflict: A secret is not entered.
    """
    if found := read_operator(value):
        return open_tenant_secret(resources, tenant, str(found[1])) if found[0] == SECRET_OPERATOR else value
    if isinstance(value, Mapping):
        return {name: resolve_secrets(resources, tenant, member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolve_secrets(resources, tenant, member) for member in value]
    return value


def build_secret_key(resources: Resources, tenant: str, name: str) -> ItemKey:
    """Return the key of the row with a secret."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", f"{_SORT_KEY_PREFIX}{name}")


def _read_rows(resources: Resources, tenant: str) -> list[Item]:
    return [row for row in _read_rows_with_removed(resources, tenant) if _is_entered(row)]


def _read_rows_with_removed(resources: Resources, tenant: str) -> list[Item]:
    return resources.tables.query_items(
        resources.settings.settings_table, f"t#{tenant}", min_sk=_SORT_KEY_PREFIX, max_sk=f"{_SORT_KEY_PREFIX}~"
    )


def _make_room(resources: Resources, tenant: str, name: str) -> None:
    """Delete the rows of other secrets that were removed long ago. Raises InvalidRequest if there are too many left."""
    now, left = resources.clock.time(), 0
    for row in _read_rows_with_removed(resources, tenant):
        if _is_entered(row) or row["removedUntil"] > now or row["name"] == name:
            left += row["name"] != name
            continue
        key = build_secret_key(resources, tenant, row["name"])
        with contextlib.suppress(ConditionFailed):  # else it was entered again
            resources.tables.write_items(Delete(*key, condition="version = :read", values={":read": row["version"]}))
    if left >= MAX_SECRETS:
        message = f"A tenant has {MAX_SECRETS} secrets at most, with those removed today. Remove one that is not used."
        raise InvalidRequest(message)


def _is_entered(row: Item | None) -> bool:
    """Return whether a row holds a secret. That of a removed one does not."""
    return row is not None and "sealed" in row


def _make_row(resources: Resources, caller: Caller, name: str, value: str, before: Item | None) -> Item:
    """Return the row of a secret. Versions go on after a removal, so that no late copy of a write fits again."""
    key = build_secret_key(resources, caller.tenant, name)
    now_ms = int(resources.clock.time() * 1000)
    return {
        "pk": key.pk,
        "sk": key.sk,
        "v": 1,
        "name": name,
        "version": max(now_ms, before["version"] + 1 if before else 1),
        "sealed": resources.vault.seal_secret(
            value, purpose="tool-secret", tenant=caller.tenant, name=_make_seal_name(name)
        ),
        "updated_at": resources.clock.now_iso(),
        "updated_by": caller.user,
    }


def _make_seal_name(name: str) -> str:
    return f"secret {name}"


def _forget(resources: Resources, tenant: str, name: str) -> None:
    resources.cache.invalidate(("tenant secret", tenant, name))
