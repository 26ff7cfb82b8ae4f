"""Register, change, list and remove the remote tools of a tenant."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionCheck, ConditionFailed, Delete, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.remote_tools.registration_checks import check_endpoint, check_scopes, check_static_headers
from fermata.remote_tools.reserved_names import is_built_in_name
from fermata.remote_tools.tool_definition import (
    MAX_SECRET_BYTES,
    RegisteredTool,
    RegisteredTools,
    ToolDefinition,
    ToolSecrets,
    build_definition_key,
    build_tools_key,
    encode_tool_secrets,
    index_by_id,
    open_tool_secrets,
    seal_tool_secrets,
    to_tool_view,
)
from fermata.remote_tools.tool_manifest import ToolManifest, normalize_tool_name, parse_manifest
from fermata.signed_requests.signature import make_signing_secret

MAX_TOOLS = 64
MAX_RETIRED_VERSIONS = 200


class StoredTool(NamedTuple):
    """A tool after a change. `signing_secret` is set when it is new; it cannot be read again."""

    view: dict[str, Any]
    signing_secret: str | None = None


class ToolChange(NamedTuple):
    """What changes of a tool. None keeps what is there."""

    enabled: bool | None = None
    headers: Mapping[str, str] | None = None
    rotates_secret: bool = False


def list_registered_tools(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the views of all tools, by name."""
    registered = read_registered_tools(resources, tenant)
    definitions = read_definitions(resources, tenant, [tool.definition for tool in registered.tools.values()])
    found = [tool for _, tool in sorted(registered.tools.items()) if tool.definition in definitions]
    return [to_tool_view(tool, definitions[tool.definition]) for tool in found]


def register_tool(
    resources: Resources,
    caller: Caller,
    manifest_json: Any,
    endpoint: str,
    *,
    headers: Mapping[str, str] | None = None,
    scopes: Collection[str] = (),
    forwards_authorization: bool = False,
    replace: bool = False,
) -> StoredTool:
    """Register a remote tool, or replace one. A tool that is replaced keeps its signing secret.

    Args:
        caller: The administrator.
        manifest_json: The manifest as it was sent.
        endpoint: The URL that its calls are posted to.
        headers: Headers of the tenant that every call has. They are sealed.
        scopes: The scopes whose turns are offered the tool; none for all.
        forwards_authorization: Whether its calls have the Authorization header of the turn's user. A replacement has
            to say so again.
        replace: Whether a tool of this name is replaced.

    Raises:
        InvalidManifest: A member of the manifest is wrong.
        InvalidRequest: The endpoint, a header or a scope is not allowed, or the tenant has too many tools.
        Conflict: The name is that of a built-in tool, or is taken and `replace` is false, or the list of tools has
            just changed.
    """
    manifest = parse_manifest(manifest_json)
    check_endpoint(resources, endpoint)
    check_scopes(scopes)
    sent_headers = check_static_headers(headers or {})
    key = normalize_tool_name(manifest.name)
    if is_built_in_name(manifest.name):
        raise Conflict(f"{manifest.name} is a built-in tool, which cannot be replaced. Choose another name.")
    registered = read_registered_tools(resources, caller.tenant)
    old = registered.tools.get(key)
    if old is not None and not replace:
        raise Conflict(f"There is a tool {old.name} already. Send 'replace': true to replace it.")
    if old is None and len(registered.tools) >= MAX_TOOLS:
        raise InvalidRequest(f"A tenant has {MAX_TOOLS} tools at most. Remove one that is not used.")
    kept = _open_secrets(resources, caller.tenant, old.definition).signing_secrets if old else ()
    new_secret = None if kept else make_signing_secret()
    secrets = ToolSecrets(headers=sent_headers, signing_secrets=kept or (new_secret or "",))
    definition = make_definition(
        resources,
        caller.tenant,
        manifest,
        endpoint,
        tuple(sorted(scopes)),
        secrets,
        forwards_authorization=forwards_authorization,
    )
    now = resources.clock.now_iso()
    tool = RegisteredTool(
        name=manifest.name,
        definition=definition.id,
        enabled=manifest.enabled,
        scopes=definition.scopes,
        forwards_authorization=forwards_authorization,
        registered_at=old.registered_at if old else now,
        updated_at=now,
    )
    store_tool(resources, caller, registered, key, tool, definition)
    observability.log_audit_event("ai.tool.registered", tenant=caller.tenant, user=caller.user, tool=manifest.name)
    return StoredTool(to_tool_view(tool, definition), new_secret)


def change_tool(resources: Resources, caller: Caller, name: str, change: ToolChange) -> StoredTool:
    """Enable or disable a tool, replace its headers, or give it another signing secret.

    After a rotation, requests carry the signatures of both secrets, until the next rotation drops the older one.

    Args:
        caller: The administrator.
        name: The tool's name, in any case.
        change: What is changed.

    Raises:
        NotFound: The tenant has no such tool.
        InvalidRequest: A header is not allowed.
        Conflict: The list of tools has just changed.
    """
    registered = read_registered_tools(resources, caller.tenant)
    key, tool = _find_tool(registered, name)
    definition = _read_definition(resources, caller.tenant, tool.definition)
    if definition.is_built_in and (change.headers is not None or change.rotates_secret):
        raise InvalidRequest(f"{tool.name} is a built-in tool: send its new key with PUT.")
    new_secret = make_signing_secret() if change.rotates_secret else None
    update: dict[str, Any] = {"updated_at": resources.clock.now_iso()}
    if change.enabled is not None:
        update["enabled"] = change.enabled
    new_definition = None
    if change.headers is not None or new_secret:
        old = _open_secrets(resources, caller.tenant, tool.definition)
        headers = old.headers if change.headers is None else check_static_headers(change.headers)
        signing = (*old.signing_secrets[-1:], new_secret) if new_secret else old.signing_secrets
        new_definition = make_definition(
            resources,
            caller.tenant,
            definition.parsed_manifest,
            definition.endpoint,
            definition.scopes,
            ToolSecrets(headers=headers, signing_secrets=signing),
            forwards_authorization=definition.forwards_authorization,
        )
        update["definition"] = new_definition.id
    changed = tool.model_copy(update=update)
    store_tool(resources, caller, registered, key, changed, new_definition)
    observability.log_audit_event("ai.tool.changed", tenant=caller.tenant, user=caller.user, tool=tool.name)
    return StoredTool(to_tool_view(changed, new_definition or definition), new_secret)


def remove_tool(resources: Resources, caller: Caller, name: str) -> None:
    """Remove a tool. Turns that run may not call it any more.

    Args:
        caller: The administrator.
        name: The tool's name, in any case.

    Raises:
        NotFound: The tenant has no such tool.
        Conflict: The list of tools has just changed.
    """
    registered = read_registered_tools(resources, caller.tenant)
    key, tool = _find_tool(registered, name)
    store_tool(resources, caller, registered, key, None, None)
    observability.log_audit_event("ai.tool.removed", tenant=caller.tenant, user=caller.user, tool=tool.name)


def read_registered_tools(resources: Resources, tenant: str) -> RegisteredTools:
    """Return the list of a tenant's tools as it is stored now."""
    return RegisteredTools.from_item(resources.tables.get_item_by_key(build_tools_key(resources, tenant)))


def read_definitions(resources: Resources, tenant: str, ids: Collection[str]) -> dict[str, ToolDefinition]:
    """Return versions of tools by their ids; those that are gone are missing."""
    if not ids:
        return {}
    return index_by_id(
        resources.tables.batch_get_by_keys({build_definition_key(resources, tenant, one) for one in ids})
    )


def make_definition(
    resources: Resources,
    tenant: str,
    manifest: ToolManifest,
    endpoint: str,
    scopes: tuple[str, ...],
    secrets: ToolSecrets,
    *,
    options: dict[str, str] | None = None,
    forwards_authorization: bool = False,
) -> ToolDefinition:
    """Return a new version of a tool, with its secrets sealed. It is not stored yet.

    Args:
        tenant: The tenant's name.
        manifest: The valid manifest.
        endpoint: Where it is called.
        scopes: The scopes whose turns are offered the tool; empty for all.
        secrets: Headers and signing secrets.
        options: Of a built-in tool.
        forwards_authorization: Whether it receives the Authorization header of users.

    Raises:
        InvalidRequest: The secrets are too long.
    """
    if len(encode_tool_secrets(secrets).encode()) > MAX_SECRET_BYTES:
        raise InvalidRequest("The headers have more characters than can be sealed.")
    definition_id = new_id()
    return ToolDefinition(
        id=definition_id,
        tenant=tenant,
        manifest=manifest.to_wire(),
        endpoint=endpoint,
        scopes=scopes,
        header_names=tuple(sorted(secrets.headers)),
        options=options or {},
        forwards_authorization=forwards_authorization,
        created_at=resources.clock.now_iso(),
        sealed=seal_tool_secrets(resources, tenant, definition_id, secrets),
    )


def _find_tool(registered: RegisteredTools, name: str) -> tuple[str, RegisteredTool]:
    key = normalize_tool_name(name)
    if key not in registered.tools:
        raise NotFound(f"The tenant has no tool {name[:120]!r}.")
    return key, registered.tools[key]


def _read_definition(resources: Resources, tenant: str, definition_id: str) -> ToolDefinition:
    return ToolDefinition.from_item(
        resources.tables.get_item_by_key(build_definition_key(resources, tenant, definition_id)) or {}
    )


def _open_secrets(resources: Resources, tenant: str, definition_id: str) -> ToolSecrets:
    """Open the secrets of a version. If they cannot be opened any more, there are none, and a new one is made."""
    definition = _read_definition(resources, tenant, definition_id)
    return open_tool_secrets(resources, definition) or ToolSecrets(headers={}, signing_secrets=())


def store_tool(
    resources: Resources,
    caller: Caller,
    registered: RegisteredTools,
    key: str,
    tool: RegisteredTool | None,
    definition: ToolDefinition | None,
) -> None:
    """Store the list with one changed line, and with it the new version of the tool.

    Versions that no turn can use any more are deleted afterwards.

    Args:
        caller: The administrator.
        registered: The list as it was read.
        key: The name that is changed, from `normalize_tool_name`.
        tool: Its new line; None to remove it.
        definition: Its new version; None if that stays.

    Raises:
        Conflict: The list has changed since it was read, or too often.
    """
    now = int(resources.clock.time())
    tools = {other: line for other, line in registered.tools.items() if other != key} | ({key: tool} if tool else {})
    current = {line.definition for line in tools.values()}
    retired = registered.retired | {
        line.definition: now for line in registered.tools.values() if line.definition not in current
    }
    expired = [one for one, since in retired.items() if since < now - resources.settings.turn_lifetime_seconds]
    kept = {one: since for one, since in retired.items() if one not in expired}
    if len(kept) > MAX_RETIRED_VERSIONS:
        raise Conflict("The tools were changed too often lately. Running turns may still use their former versions.")
    changed = RegisteredTools(tools=tools, retired=kept, version=registered.version + 1)
    _write_list(resources, caller.tenant, changed, definition)
    for definition_id in expired:
        resources.tables.write_items(Delete(*build_definition_key(resources, caller.tenant, definition_id)))


def _write_list(resources: Resources, tenant: str, changed: RegisteredTools, definition: ToolDefinition | None) -> None:
    table, is_new = resources.settings.settings_table, changed.version == 1
    put = Put(
        table,
        changed.to_item(tenant),
        if_absent=is_new,
        condition="" if is_new else "version = :before",
        values={} if is_new else {":before": changed.version - 1},
    )
    writes = (put, Put(table, definition.to_item(), if_absent=True)) if definition else (put,)
    tenant_exists = ConditionCheck(table, f"t#{tenant}", "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(*writes, tenant_exists)
    except (ConditionFailed, TransactionCanceled) as error:
        raise Conflict("The tools have just been changed by another request. Look at them, and try again.") from error
